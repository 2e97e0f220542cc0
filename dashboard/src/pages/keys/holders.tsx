/** Teams and tags: limits and budgets that keys have together, and what was spent of them. */
import { useMemo, useState, type ReactElement } from 'react';
import { maxBudgets, useBudgets, type BudgetState } from '../../api/budgets.ts';
import { useOpened } from '../../api/search.ts';
import { operators, useMay } from '../../api/session.ts';
import { Button } from '../../components/button.tsx';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Panel } from '../../components/panel.tsx';
import { Empty, Failures, QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import {
  useHolders,
  useHolderUsage,
  type Holder,
  type HolderKind,
  type HolderUsage,
} from './api.ts';
import { HolderSheet, NewHolder } from './holder-sheet.tsx';
import { callsOf, HolderCost, SpentBar, type SpentBudget } from './spent-bar.tsx';

const words = {
  team: {
    title: 'Teams',
    create: 'Set up a team',
    none: 'No team has limits or budgets',
    about: 'Each key names its team; the limits set here apply to all keys of the team together.',
  },
  tag: {
    title: 'Tags',
    create: 'Set up a tag',
    none: 'No tag has limits or budgets',
    about:
      'A call has the tags of its key, and those of its x-gateway-tags header that the tag allows. The limits set here apply to all calls with the tag.',
  },
} as const;

/** A team or tag with limits, with calls, or with both. */
interface Row {
  readonly name: string;
  /** Undefined: it has no limits. */
  readonly policy: Holder | undefined;
  readonly budgets: readonly SpentBudget[];
  /** Of the last 30 days; null: no calls; undefined: not known. */
  readonly usage: HolderUsage | null | undefined;
}

const columns: readonly Column<Row>[] = [
  {
    id: 'name',
    title: 'Name',
    width: 'minmax(9rem, 3fr)',
    cell: ({ name }) => <CutText text={name} />,
  },
  {
    id: 'budget',
    title: 'Budget',
    width: 'minmax(10rem, 2fr)',
    cell: ({ budgets }) => <SpentBar budgets={budgets} />,
  },
  {
    id: 'spend',
    title: 'Cost, 30 d',
    width: '6rem',
    align: 'end',
    sortable: true,
    cell: ({ usage }) => <HolderCost usage={usage} />,
  },
  {
    id: 'calls',
    title: 'Calls, 30 d',
    width: '6.5rem',
    align: 'end',
    cell: ({ usage }) => count(callsOf(usage)),
  },
  {
    id: 'rpm',
    title: 'Requests/min',
    width: '7rem',
    align: 'end',
    cell: ({ policy }) => count(policy?.rpm),
  },
  {
    id: 'tpm',
    title: 'Tokens/min',
    width: '7rem',
    align: 'end',
    cell: ({ policy }) => count(policy?.tpm),
  },
];

export function Holders({ kind }: { readonly kind: HolderKind }): ReactElement {
  const query = useHolders(kind);
  const usage = useHolderUsage(kind);
  const budgets = useBudgets();
  const [isNew, setNew] = useState(false);
  const [sort, setSort] = useState('name');
  const opened = useOpened(kind);
  const rows = useMemo(
    () => sorted(rowsOf(kind, query.data ?? [], usage.data, budgets.data), sort),
    [kind, query.data, usage.data, budgets.data, sort],
  );
  const { title, create, none, about } = words[kind];
  const newOne = useMay(operators) ? (
    <Button small icon="plus" onClick={() => setNew(true)}>
      {create}
    </Button>
  ) : undefined;
  return (
    <Panel title={title} flush actions={rows.length === 0 ? undefined : newOne}>
      {query.isError ? null : <Failures of={[usage, budgets]} />}
      <QueryState query={query}>
        {() =>
          rows.length === 0 ? (
            <Empty title={none} action={newOne}>
              {about}
            </Empty>
          ) : (
            <DataTable
              label={title}
              columns={columns}
              count={rows.length}
              rowAt={(index) => rows[index]}
              rowKey={({ name }) => name}
              onOpen={({ name }) => opened.open(name)}
              selected={opened.id}
              sort={{ by: sort, onSort: (by) => setSort(by === sort ? 'name' : by) }}
              minWidth="50rem"
            />
          )
        }
      </QueryState>
      {isNew ? <NewHolder kind={kind} onClose={() => setNew(false)} /> : null}
      {opened.id !== undefined && query.data !== undefined ? (
        <HolderSheet
          key={opened.id}
          kind={kind}
          name={opened.id}
          hasLimits={query.data.some(({ name }) => name === opened.id)}
          usage={usage.data && (rows.find(({ name }) => name === opened.id)?.usage ?? null)}
          onClose={opened.close}
        />
      ) : null}
    </Panel>
  );
}

function rowsOf(
  kind: HolderKind,
  policies: readonly Holder[],
  usage: readonly HolderUsage[] | undefined,
  budgets: readonly BudgetState[] | undefined,
): readonly Row[] {
  const used = new Map(usage?.map((each) => [each[kind] ?? '', each]));
  const known = new Map(policies.map((policy) => [policy.name, policy]));
  // The group without a name has the calls without a team or tag. The list leaves it out.
  const names = [...new Set([...known.keys(), ...used.keys()])].filter((name) => name !== '');
  return names.map((name) => {
    const policy = known.get(name);
    // The list has the fullest budgets: one that is not in a full list has spent something.
    const isListWhole = budgets !== undefined && budgets.length < maxBudgets;
    const spent = (per: string): number | undefined =>
      budgets?.find((each) => each.id === `${kind}:${name}:${per}`)?.spent_usd ??
      (isListWhole ? 0 : undefined);
    return {
      name,
      policy,
      budgets: (policy?.budgets ?? []).map(({ usd, per }) => ({
        usd: Number(usd),
        per,
        spent: spent(per),
      })),
      usage: usage === undefined ? undefined : (used.get(name) ?? null),
    };
  });
}

function sorted(rows: readonly Row[], by: string): readonly Row[] {
  const byName = rows.toSorted((a, b) => a.name.localeCompare(b.name));
  if (by !== 'spend') return byName;
  return byName.toSorted((a, b) => (b.usage?.cost_usd ?? 0) - (a.usage?.cost_usd ?? 0));
}
