/** Where the two engines name the same thing differently. */
import type { CopyTable } from './side.ts';

/** In the order in which they can be written: what is referred to comes first. Others follow behind them. */
const order = [
  'settings',
  'keys',
  'policies',
  'audit',
  'prices',
  'calls',
  'attempts',
  'open_calls',
  'spending',
  'usage_groups',
  'usage_hours',
  'usage_days',
  'kept_answers',
  'kept_answer_sums',
  'kept_contents',
  'forgotten_contents',
  'kept_responses',
  'kept_response_items',
];

/** Tables of one engine only: counts that may be lost, leases of running gateways, the schema's version, the copy's own. */
const engineOnly = new Set([
  'budget_instances',
  'budget_leases',
  'counter_holds',
  'counter_rates',
  'ended_leases',
  'gateway_copy',
  'gateway_schema',
]);

/**
 * Ids that each engine makes: a price by its text, a group by its members, a call by its own id. In rows of a copy
 * the text stands in their place.
 */
export const groupMembers = ['key_id', 'team', 'model', 'provider', 'tags'] as const;

/** The tables of a copy, of those that a database has. */
export function orderedTables(tables: readonly CopyTable[]): readonly CopyTable[] {
  const place = (name: string): number => {
    const at = order.indexOf(name);
    return at === -1 ? order.length : at;
  };
  return tables
    .filter(({ name }) => !engineOnly.has(name))
    .map(neutral)
    .toSorted((a, b) => place(a.name) - place(b.name));
}

/** The same columns in both engines. */
function neutral(table: CopyTable): CopyTable {
  const { name, columns } = table;
  switch (name) {
    case 'prices':
      return { name, columns: ['price'], key: ['price'] };
    case 'usage_groups':
      return { name, columns: [...groupMembers], key: [...groupMembers] };
    case 'calls':
      return { name, columns: columns.filter((column) => column !== 'n'), key: ['id'] };
    case 'attempts': {
      const own = columns.filter((column) => column !== 'call_n' && column !== 'call_id');
      return { name, columns: ['call_id', ...own], key: ['call_id', 'ordinal'] };
    }
    default:
      return table;
  }
}
