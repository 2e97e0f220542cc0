/** Which tables are copied, and where the two engines name the same thing differently. */
import { StoreError } from '../store-error.ts';
import type { CopyTable } from './side.ts';

/** The order in which tables are written: referred tables come first, others follow. */
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
  'total_hours',
  'total_days',
  'kept_answers',
  'kept_answer_sums',
  'kept_contents',
  'forgotten_contents',
  'kept_responses',
  'kept_response_items',
  'people',
  'sessions',
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
 * the text replaces them.
 */
export const groupMembers = ['key_id', 'team', 'model', 'provider', 'answered', 'tags'] as const;

/** Names are in SQL as they are (S21): a database may have tables that are not the gateway's. */
const plainName = /^[a-z_][a-z0-9_]*$/;

/** The tables of a copy, of those that a database has. @throws StoreError for a name that no gateway makes */
export function orderedTables(tables: readonly CopyTable[]): readonly CopyTable[] {
  for (const { name, columns, key } of tables) {
    const odd = [name, ...columns, ...key].find((each) => !plainName.test(each));
    if (odd === undefined) continue;
    throw new StoreError(
      'failed',
      `The database has a table that is not the gateway's: ${JSON.stringify(odd)} in ${JSON.stringify(name)}. Move it to another schema or file.`,
    );
  }
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
