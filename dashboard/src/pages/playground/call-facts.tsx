/** What a call took and cost, from its row in the ledger. */
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { get } from '../../api/client.ts';
import { Facts, type Fact } from '../../components/panel.tsx';
import { exactMoney, money } from '../../format/money.ts';
import { count } from '../../format/number.ts';
import { span } from '../../format/time.ts';
import type { Played } from './play.ts';

/** The members of a call's row that are shown here. */
interface CallRow {
  readonly id: string;
  readonly provider: string | null;
  readonly upstream_model: string | null;
  readonly mode: string | null;
  readonly attempts: number;
  readonly charged: {
    readonly fresh_input_tokens: number | null;
    readonly cache_read_tokens: number | null;
    readonly cache_write_tokens: number | null;
    readonly output_tokens: number | null;
    readonly reasoning_tokens: number | null;
  };
  readonly usage_source: string;
  readonly cost_usd: number | null;
  readonly first_event_ms: number | null;
  readonly total_ms: number;
  readonly notes: string | null;
}

/** Rows are written behind the answer; after this many polls the page says that there is none. */
const maxLooks = 8;

class NotYet extends Error {}

/** In the list, since a call that is not there yet is not an error. */
async function findRow(id: string, key: string, signal: AbortSignal): Promise<CallRow> {
  const query = { limit: 20, key: key === '' ? 'playground' : key };
  const { calls } = await get<{ readonly calls: readonly CallRow[] }>('/api/calls', {
    query,
    signal,
  });
  const row = calls.find((each) => each.id === id);
  if (row === undefined) throw new NotYet('The call is not in the ledger yet.');
  return row;
}

export function CallFacts({ played }: { played: Played }): ReactElement | null {
  const { requestId = '', asked, state, status } = played;
  const row = useQuery({
    queryKey: ['playground', 'row', requestId],
    queryFn: ({ signal }) => findRow(requestId, asked.key, signal),
    enabled: requestId !== '' && state !== 'running',
    staleTime: Infinity,
    retry: (looks, error) => error instanceof NotYet && looks < maxLooks,
    retryDelay: (looks) => 100 * 2 ** looks,
  });
  if (status === undefined) return null;
  const firstMs = played.firstMs ?? row.data?.first_event_ms;
  const seen: readonly Fact[] = [
    ['Status', String(status)],
    ['Time', `${span(played.totalMs)}, first token after ${span(firstMs)}`],
  ];
  return (
    <>
      <Facts facts={[...seen, ...(row.data === undefined ? [] : factsOf(row.data))]} />
      {row.isError ? (
        <p>This call is not in the ledger yet; it will appear on the Calls page.</p>
      ) : null}
    </>
  );
}

function factsOf(row: CallRow): readonly Fact[] {
  const { charged } = row;
  const parts = [
    ['input', charged.fresh_input_tokens],
    ['cache read', charged.cache_read_tokens],
    ['cache write', charged.cache_write_tokens],
    ['output', charged.output_tokens],
    ['of it reasoning', charged.reasoning_tokens],
  ] as const;
  const tokens = parts
    .filter(([name, value]) => name === 'input' || name === 'output' || (value ?? 0) > 0)
    .map(([name, value]) => `${count(value)} ${name}`);
  const target = [row.provider, row.upstream_model].filter((part) => part !== null).join('/');
  return [
    ['Tokens', `${tokens.join(', ')} (${row.usage_source})`],
    [
      'Cost',
      <span key="cost" title={exactMoney(row.cost_usd)}>
        {row.cost_usd === null && row.provider !== null ? 'no price is known' : money(row.cost_usd)}
      </span>,
    ],
    [
      'Answered by',
      [
        target === '' ? 'none' : target,
        ...(row.mode === null ? [] : [row.mode]),
        `${count(row.attempts)} ${row.attempts === 1 ? 'attempt' : 'attempts'}`,
      ].join(', '),
    ],
    ...(row.notes === null || row.notes === '' ? [] : [['Notes', row.notes] as const]),
    [
      'Call',
      <Link key="call" href={`/calls/${row.id}`}>
        {row.id}
      </Link>,
    ],
  ];
}
