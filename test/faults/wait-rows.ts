/** Upstreams that ask to wait (reliability.md F15, F16). */
import { errorIn } from '../upstream/reply.ts';
import { errorTable as e, refused, type FaultRow } from './fault-row.ts';

/**
 * F15, F16: what the upstream says of waiting, what the client may hear of it, and how often the upstream is
 * asked: waits of 5 s at most are waited for.
 */
const waits: readonly (readonly [
  name: string,
  headers: Record<string, string>,
  expected: Record<string, RegExp>,
  attempts: number,
])[] = [
  ['2 seconds', { 'retry-after': '2' }, { 'retry-after': /^2$/ }, 3],
  [
    '1,500 ms',
    { 'retry-after-ms': '1500' },
    { 'retry-after-ms': /^1500$/, 'retry-after': /^2$/ },
    3,
  ],
  ['a date in 30 s', { 'retry-after': 'in 30 s' }, { 'retry-after': /^([12]?\d|30)$/ }, 1],
  [
    'a date in the past',
    { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' },
    { 'retry-after': /^[1-9]\d?$/ },
    3,
  ],
  [
    'a day',
    { 'retry-after': '86400' },
    { 'x-should-retry': /^false$/, 'retry-after': /^undefined$/ },
    1,
  ],
  [
    'a date in a day',
    { 'retry-after': 'in 86400 s' },
    { 'x-should-retry': /^false$/, 'retry-after': /^undefined$/ },
    1,
  ],
  ['a word', { 'retry-after': 'abc' }, { 'retry-after': /^[1-9]\d?$/ }, 3],
  ['a negative number', { 'retry-after': '-5' }, { 'retry-after': /^[1-9]\d?$/ }, 3],
  ['nothing', {}, { 'retry-after': /^[1-9]\d?$/, 'retry-after-ms': /^\d{3,5}$/ }, 3],
  [
    'rate-limit headers only',
    { 'x-ratelimit-reset-requests': '6m0s' },
    { 'retry-after': /^[1-9]\d?$/ },
    3,
  ],
];

/** `in N s` as the date that it is when it is sent. */
function dated(headers: Record<string, string>): Record<string, string> {
  const seconds = /^in (\d+) s$/.exec(headers['retry-after'] ?? '')?.[1];
  if (seconds === undefined) return headers;
  return { 'retry-after': new Date(Date.now() + Number(seconds) * 1000).toUTCString() };
}

export const waitRows: readonly FaultRow[] = waits.map(([name, headers, expected, attempts]) => ({
  id: name === '2 seconds' ? 'F15 H2' : 'F16 H2',
  name: `429 with ${name}`,
  play: (upstream) => errorIn(upstream, 429, 'slow down', dated(headers)),
  outcome: refused(e.e8),
  headers: expected,
  attempts,
  maybeBilled: false,
}));
