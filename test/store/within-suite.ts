/** Only the calls that a person may see: those of their keys and of the teams that they lead (issue 23). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallQuery, CallsWithin, UsageFilter } from '../../src/store/calls.ts';
import { callRow, day, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';

const hour = day / 24;
/** A name that ends an array, a text and a JSON string of a database. */
const odd = `k'9",}{\\`;

const rows = [
  callRow('own', { keyId: odd, team: 'red', totalMs: 1 }),
  callRow('alone', { keyId: 'k2', startedAt: march + hour, totalMs: 2 }),
  callRow('colleague', { keyId: 'k3', team: 'red', startedAt: march + 2 * hour, totalMs: 3 }),
  callRow('stranger', { keyId: 'k4', team: 'blue', startedAt: march + 3 * hour, totalMs: 4 }),
  callRow('nobody', { keyId: 'k5', startedAt: march + 4 * hour, totalMs: 5 }),
  ...['own', 'stranger'].map((name) =>
    callRow(`failed ${name}`, {
      keyId: name === 'own' ? odd : 'k4',
      startedAt: march + day,
      outcome: 'failed',
      error: 'rate_limited',
      failure: { fault: 'limit', message: 'Rate limit.' },
      charged: {},
    }),
  ),
];

const cases: readonly (readonly [string, CallsWithin, readonly string[]])[] = [
  ['own keys', { keys: [odd, 'k2'], teams: [] }, ['alone', 'failed own', 'own']],
  ['a team', { keys: [], teams: ['red'] }, ['colleague', 'own']],
  [
    'own keys and a team',
    { keys: [odd, 'none'], teams: ['red', 'none'] },
    ['colleague', 'failed own', 'own'],
  ],
  ['nothing', { keys: [], teams: [] }, []],
];

export function withinSuite(open: OpenStore): void {
  describe('calls within what a person may see', () => {
    const opened = eachWith(open);

    const listed = async (query: Partial<CallQuery>): Promise<readonly string[]> => {
      const { calls } = await opened.store.calls.list({ limit: 20, ...query });
      return calls.map(({ id }) => id).toSorted();
    };

    for (const [what, within, ids] of cases) {
      it(`${what}: pages, sums, series, latencies and failures agree`, async () => {
        const { calls } = opened.store;
        await calls.record(rows);
        const seen = rows.filter(({ id }) => ids.includes(id));
        assert.deepEqual(await listed({ within }), ids);
        // From days, from hours, and from the calls themselves.
        for (const until of [march + 2 * day, march + 3 * hour, march + hour + 5]) {
          const expected = seen.filter(({ startedAt }) => startedAt < until);
          const period = { since: march, until };
          const usage = await calls.usage({ ...period, by: 'team', filter: { within } });
          assert.equal(sum(usage), expected.length, `usage until ${until}`);
          for (const by of [undefined, 'key'] as const) {
            const asked = { ...period, step: 'hour', groups: 8, filter: { within } } as const;
            const series = await calls.series(by === undefined ? asked : { ...asked, by });
            assert.equal(sum(series), expected.length, `series by ${by ?? 'all'}`);
          }
          const { calls: samples } = await calls.sampleLatency({
            ...period,
            slices: 2,
            filter: { within },
          });
          const ok = expected.filter(({ outcome }) => outcome === 'ok');
          assert.deepEqual(
            samples.map(({ totalMs }) => totalMs).toSorted(),
            ok.map(({ totalMs }) => totalMs),
          );
        }
        const failures = async (filter: UsageFilter): Promise<number> => {
          const period = { since: march, until: march + 2 * day };
          return sum((await calls.failures({ ...period, filter, fault: 'limit' })).groups);
        };
        const failed = ids.filter((id) => id.startsWith('failed'));
        assert.equal(await failures({ within }), failed.length);
      });
    }

    it('a filter narrows it and never widens it', async () => {
      await opened.store.calls.record(rows);
      const within = { keys: [odd], teams: ['red'] };
      assert.deepEqual(await listed({ within, key: odd }), ['failed own', 'own']);
      assert.deepEqual(await listed({ within, key: 'k4' }), []);
      assert.deepEqual(await listed({ within, team: 'blue' }), []);
      assert.deepEqual(await listed({ within, team: '' }), ['failed own']);
      assert.deepEqual(await listed({ within, outcome: 'failed' }), ['failed own']);
      const usage = await opened.store.calls.usage({
        by: 'key',
        since: march,
        filter: { within, team: 'red', model: 'local/tiny' },
      });
      assert.deepEqual(
        usage.map(({ group, calls }) => `${group}: ${calls}`),
        [`${odd}: 1`, 'k3: 1'],
      );
    });

    it('pages continue within it, past the calls of others', async () => {
      const { store } = opened;
      const many = Array.from({ length: 30 }, (_, i) =>
        callRow(`c${i}`, { keyId: i % 3 === 0 ? 'mine' : 'other', startedAt: march + i }),
      );
      await store.calls.record(many);
      const within = { keys: ['mine'], teams: [] };
      const ids: string[] = [];
      let before: CallQuery['before'];
      do {
        const page = await store.calls.list({
          limit: 3,
          within,
          ...(before === undefined ? {} : { before }),
        });
        ids.push(...page.calls.map(({ id }) => id));
        before = page.next;
      } while (before !== undefined);
      const expected = many.filter(({ keyId }) => keyId === 'mine').map(({ id }) => id);
      assert.deepEqual(ids, expected.toReversed());
    });
  });
}

function sum(groups: readonly { readonly calls: number }[]): number {
  return groups.reduce((all, { calls }) => all + calls, 0);
}
