/** Which entries are shown. All of it is in the address. */
import { useState, type ReactElement } from 'react';
import { useKeyNames } from '../../api/names.ts';
import type { Search } from '../../api/search.ts';
import { Button } from '../../components/button.tsx';
import { Dates } from '../../components/dates.tsx';
import { DelayedField } from '../../components/delayed-field.tsx';
import { SelectField } from '../../components/field.tsx';
import { filterNames } from './api.ts';
import styles from './audit.module.css';

const periods = [
  { value: '', label: 'All time' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
  { value: '90d', label: 'Last 90 days' },
];
const ownDates = { value: 'own', label: 'Dates…' };

/** Actors other than the people who sign in. */
const actors = [
  { value: 'admin', label: 'admin token' },
  { value: 'command', label: 'command line' },
  { value: 'config', label: 'configuration' },
  { value: 'start', label: 'gateway start' },
];

const actions = [
  'admin_token.create',
  'admin_token.revoke',
  'audit.cut',
  'config',
  'config.apply',
  'config.reload',
  'key',
  'key.create',
  'key.update',
  'key.rotate',
  'key.revoke',
  'person',
  'session.end',
  'store.backup',
  'tag',
  'team',
  'webhook.test',
].map((value) => ({ value }));

interface AuditFiltersProps {
  readonly search: Search;
  readonly change: (change: Search) => void;
}

export function AuditFilters({ search, change }: AuditFiltersProps): ReactElement {
  const keys = useKeyNames();
  const field = (name: (typeof filterNames)[number]) => ({
    quietLabel: true,
    value: search[name] ?? '',
    onChange: (value: string) => change({ [name]: value.trim() }),
  });
  const isChosen = filterNames.some((name) => search[name] !== undefined);
  return (
    <div className={styles.filters} role="search" aria-label="Audit log">
      <DelayedField
        label="Subject"
        placeholder="Subject, e.g. team:research"
        {...field('subject')}
        offers={(keys.data ?? []).map(({ id, name }) => ({ value: `key:${id}`, label: name }))}
      />
      <DelayedField label="Who" placeholder="Who" {...field('actor')} offers={actors} />
      <DelayedField label="Action" placeholder="Action" {...field('action')} offers={actions} />
      <PeriodField search={search} change={change} />
      {isChosen ? (
        <Button
          look="quiet"
          onClick={() => change(Object.fromEntries(filterNames.map((name) => [name, undefined])))}
        >
          Clear
        </Button>
      ) : null}
    </div>
  );
}

function PeriodField({ search, change }: AuditFiltersProps): ReactElement {
  const [isChoosing, setChoosing] = useState(false);
  const { since = '', until } = search;
  const isKnown = until === undefined && periods.some(({ value }) => value === since);
  const own = { value: 'chosen', label: 'Chosen dates' };
  return (
    <>
      <SelectField
        label="Period"
        quietLabel
        value={isKnown ? since : own.value}
        onChange={(value) =>
          value === ownDates.value ? setChoosing(true) : change({ since: value, until: undefined })
        }
        choices={[...periods, ...(isKnown ? [] : [own]), ownDates]}
      />
      <Dates
        open={isChoosing}
        onClose={() => setChoosing(false)}
        onChosen={(from, to) => change({ since: from, until: to })}
      />
    </>
  );
}
