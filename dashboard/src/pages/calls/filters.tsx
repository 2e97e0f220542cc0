/** Which calls are shown. All of it is in the address. */
import { useState, type ReactElement } from 'react';
import { endpointNames, type CallFilter } from '../../api/calls.ts';
import { faultNames, faults } from '../../api/errors.ts';
import {
  useKeyNames,
  useModelNames,
  useStatus,
  useUpstreamModels,
  useUsedNames,
} from '../../api/names.ts';
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

const endpoints = [
  { value: '', label: 'Any endpoint' },
  ...Object.entries(endpointNames).map(([value, label]) => ({ value, label })),
];
const faultChoices = [
  { value: '', label: 'Any fault' },
  ...faults.map((value) => ({ value, label: faultNames[value] })),
];

/** Filters with a field that is always in sight. */
const first = ['since', 'model', 'key', 'user', 'provider', 'outcome', 'status'] as const;
/** With one among the others. */
const more = [
  'team',
  'tag',
  'upstream_model',
  'endpoint',
  'fault',
  'error',
  'reason',
  'mode',
  'min_cost_usd',
  'min_ms',
  'notes',
] as const;
const withoutField = ['until'] as const;
/** What people call those that are not always in sight. */
const labels: { readonly [N in (typeof more)[number] | (typeof withoutField)[number]]: string } = {
  team: 'Team',
  tag: 'Tag',
  upstream_model: 'Answering model',
  endpoint: 'Endpoint',
  fault: 'Fault',
  error: 'Error code',
  reason: 'Reason',
  mode: 'Mode',
  min_cost_usd: 'Cost at least, $',
  min_ms: 'Duration at least, ms',
  notes: 'Text in notes',
  until: 'Until',
};
const names = [...first, ...more, ...withoutField] as const;

/** The part of an address that chooses calls. */
export function filterOf(search: Search): CallFilter {
  return Object.fromEntries(
    names.flatMap((name) => (search[name] === undefined ? [] : [[name, search[name]]])),
  );
}

interface FiltersProps {
  readonly search: Search;
  readonly change: (change: Search) => void;
}

/** What a field of a filter needs. */
type FieldOf = (name: (typeof names)[number]) => {
  readonly value: string;
  readonly onChange: (value: string) => void;
};

export function Filters({
  search,
  change,
  onFind,
}: FiltersProps & { readonly onFind: (id: string) => void }): ReactElement {
  const [isMore, setMore] = useState(false);
  const [areUsersWanted, setUsersWanted] = useState(false);
  const users = useUsedNames('user', areUsersWanted);
  const keys = useKeyNames();
  const models = useModelNames();
  const providers = useStatus().data?.providers.split(',') ?? [];
  // Tables show names, the ledger has ids; a name of several keys stays as it is typed.
  const keyIdOf = (typed: string): string => {
    const found = keys.data?.filter(({ name }) => name === typed) ?? [];
    return found.length === 1 ? (found[0]?.id ?? typed) : typed;
  };
  const chosen = names.filter((name) => search[name] !== undefined);
  const labelled: FieldOf = (name) => ({
    value: search[name] ?? '',
    onChange: (value) => change({ [name]: value }),
  });
  const field = (name: (typeof first)[number]) => ({ ...labelled(name), quietLabel: true });
  return (
    <div role="search" aria-label="Calls">
      <div className={styles.filters}>
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
          label="User"
          placeholder="User"
          {...field('user')}
          onFocus={() => setUsersWanted(true)}
          offers={(users.data ?? []).map((value) => ({ value }))}
        />
        <DelayedField
          label="Provider"
          placeholder="Provider"
          {...field('provider')}
          offers={providers.map((value) => ({ value }))}
        />
        <SelectField label="Outcome" {...field('outcome')} choices={outcomes} />
        <DelayedField
          label="Status"
          placeholder="Status"
          inputMode="numeric"
          {...field('status')}
        />
        <Button icon="filter" aria-expanded={isMore} onClick={() => setMore(!isMore)}>
          More
        </Button>
        <Chips search={search} change={change} isMore={isMore} />
        {chosen.length === 0 ? null : (
          <Button
            look="quiet"
            onClick={() => change(Object.fromEntries(names.map((name) => [name, undefined])))}
          >
            Clear
          </Button>
        )}
      </div>
      {isMore ? <MoreFilters field={labelled} onFind={onFind} /> : null}
    </div>
  );
}

interface MoreFiltersProps {
  readonly field: FieldOf;
  readonly onFind: (id: string) => void;
}

function MoreFilters({ field, onFind }: MoreFiltersProps): ReactElement {
  const teams = useUsedNames('team').data ?? [];
  const tags = useUsedNames('tag').data ?? [];
  const upstreams = useUpstreamModels().data ?? [];
  const offered = (values: readonly string[]) => values.map((value) => ({ value }));
  return (
    <div className={styles.more}>
      <DelayedField label={labels.team} {...field('team')} offers={offered(teams)} />
      <DelayedField label={labels.tag} {...field('tag')} offers={offered(tags)} />
      <DelayedField
        label={labels.upstream_model}
        {...field('upstream_model')}
        offers={offered(upstreams)}
      />
      <SelectField label={labels.endpoint} {...field('endpoint')} choices={endpoints} />
      <SelectField label={labels.fault} {...field('fault')} choices={faultChoices} />
      <DelayedField label={labels.error} {...field('error')} />
      <DelayedField label={labels.reason} {...field('reason')} />
      <SelectField label={labels.mode} {...field('mode')} choices={modes} />
      <DelayedField label={labels.min_cost_usd} inputMode="decimal" {...field('min_cost_usd')} />
      <DelayedField label={labels.min_ms} inputMode="numeric" {...field('min_ms')} />
      <DelayedField label={labels.notes} {...field('notes')} />
      <DelayedField
        label="Request id"
        value=""
        onChange={(id) => (id === '' ? undefined : onFind(id.trim()))}
      />
    </div>
  );
}

/** Back from now, or between dates: the end of these is beside it, and can be taken away. */
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

/** What was chosen and has no field in sight. */
function Chips({
  search,
  change,
  isMore,
}: FiltersProps & { readonly isMore: boolean }): ReactElement {
  const hidden = isMore ? withoutField : [...withoutField, ...more];
  return (
    <>
      {hidden.map((name) =>
        search[name] === undefined ? null : (
          <Button
            key={name}
            small
            icon="close"
            className={styles.chip}
            aria-label={`Remove filter ${labels[name]}: ${search[name]}`}
            onClick={() => change({ [name]: undefined })}
          >
            <span className={styles.chipText}>{`${labels[name]}: ${search[name]}`}</span>
          </Button>
        ),
      )}
    </>
  );
}
