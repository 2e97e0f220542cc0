/** Which calls are shown. All of it stands in the address. */
import { useState, type ReactElement } from 'react';
import type { CallFilter } from '../../api/calls.ts';
import { useKeyNames, useModelNames, useStatus } from '../../api/names.ts';
import type { Search } from '../../api/search.ts';
import { Button } from '../../components/button.tsx';
import { Dates } from '../../components/dates.tsx';
import { DelayedField } from '../../components/delayed-field.tsx';
import { SelectField } from '../../components/field.tsx';
import styles from './page.module.css';

const periods = [
  { value: '', label: 'All time' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
];
const ownDates = { value: 'own', label: 'Dates…' };
const outcomes = [
  { value: '', label: 'Any outcome' },
  { value: 'ok', label: 'ok' },
  { value: 'failed', label: 'failed' },
  { value: 'canceled', label: 'canceled' },
];
const modes = [
  { value: '', label: 'Any mode' },
  { value: 'relay', label: 'relay' },
  { value: 'translate', label: 'translate' },
];

const names = [
  'since',
  'until',
  'key',
  'team',
  'tag',
  'user',
  'model',
  'provider',
  'status',
  'outcome',
  'mode',
  'notes',
  'endpoint',
  'fault',
  'error',
  'reason',
  'upstream_model',
  'min_cost_usd',
  'min_ms',
] as const;

/** The part of an address that chooses calls. */
export function filterOf(search: Search): CallFilter {
  return Object.fromEntries(
    names.flatMap((name) => (search[name] === undefined ? [] : [[name, search[name]]])),
  );
}

/** Filters that have no field of their own here, but may come with an address. */
const others = [
  'team',
  'tag',
  'user',
  'endpoint',
  'until',
  'fault',
  'error',
  'reason',
  'upstream_model',
  'min_cost_usd',
  'min_ms',
] as const;

interface FiltersProps {
  readonly search: Search;
  readonly change: (change: Search) => void;
}

export function Filters({ search, change }: FiltersProps): ReactElement {
  const keys = useKeyNames();
  const models = useModelNames();
  const providers = useStatus().data?.providers.split(',') ?? [];
  // Tables show names, the ledger has ids; a name of several keys stays as it is typed.
  const keyIdOf = (typed: string): string => {
    const found = keys.data?.filter(({ name }) => name === typed) ?? [];
    return found.length === 1 ? (found[0]?.id ?? typed) : typed;
  };
  const chosen = names.filter((name) => search[name] !== undefined);
  const field = (name: string) => ({
    quietLabel: true,
    value: search[name] ?? '',
    onChange: (value: string) => change({ [name]: value }),
  });
  return (
    <div className={styles.filters} role="search" aria-label="Calls">
      <PeriodField search={search} change={change} />
      <DelayedField
        label="Model"
        placeholder="Model"
        {...field('model')}
        offers={(models.data ?? []).map((value) => ({ value }))}
      />
      <DelayedField
        label="Key"
        placeholder="Key"
        {...field('key')}
        onChange={(typed) => change({ key: keyIdOf(typed) })}
        offers={(keys.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
      />
      <DelayedField
        label="Provider"
        placeholder="Provider"
        {...field('provider')}
        offers={providers.map((value) => ({ value }))}
      />
      <SelectField label="Outcome" {...field('outcome')} choices={outcomes} />
      <DelayedField label="Status" placeholder="Status" inputMode="numeric" {...field('status')} />
      <SelectField label="Mode" {...field('mode')} choices={modes} />
      <DelayedField label="Text in notes" placeholder="Text in notes" {...field('notes')} />
      <Others search={search} change={change} />
      {chosen.length === 0 ? null : (
        <Button
          look="quiet"
          onClick={() => change(Object.fromEntries(names.map((name) => [name, undefined])))}
        >
          Clear
        </Button>
      )}
    </div>
  );
}

/** Back from now, or between dates: the end of these stands beside it, and can be taken away. */
function PeriodField({ search, change }: FiltersProps): ReactElement {
  const [isChoosing, setChoosing] = useState(false);
  const since = search['since'] ?? '';
  const isKnown = periods.some(({ value }) => value === since);
  const shown = isKnown ? periods : [...periods, { value: since, label: `Since ${since}` }];
  return (
    <>
      <SelectField
        label="Period"
        quietLabel
        value={since}
        onChange={(value) =>
          value === ownDates.value ? setChoosing(true) : change({ since: value, until: undefined })
        }
        choices={[...shown, ownDates]}
      />
      <Dates
        open={isChoosing}
        onClose={() => setChoosing(false)}
        onChosen={(from, until) => change({ since: from, until })}
      />
    </>
  );
}

function Others({ search, change }: FiltersProps): ReactElement {
  return (
    <>
      {others.map((name) =>
        search[name] === undefined ? null : (
          <Button
            key={name}
            small
            icon="close"
            className={styles.chip}
            aria-label={`Without ${name} ${search[name]}`}
            onClick={() => change({ [name]: undefined })}
          >
            <span className={styles.chipText}>{`${name}: ${search[name]}`}</span>
          </Button>
        ),
      )}
    </>
  );
}
