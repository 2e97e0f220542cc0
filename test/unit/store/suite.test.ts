/** One suite, every store (style.md, tests 6). */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { MemoryStore } from '../../../src/store/memory.ts';
import { openSqliteStore } from '../../../src/store/sqlite.ts';
import type { Store, UsageGrouping } from '../../../src/store/store.ts';
import { callRow, day, keyRecord, march } from './call-rows.ts';
import { silentLog } from '../access/parts.ts';

const folder = mkdtempSync(join(tmpdir(), 'gateway-store-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

const stores: { readonly [name: string]: () => Promise<Store> } = {
  memory: async () => new MemoryStore(),
  sqlite: () => openSqliteStore({ path: join(folder, `${(files += 1)}.db`), log: silentLog }),
};

for (const [name, open] of Object.entries(stores)) {
  describe(`store ${name}`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    it('keeps a key as it was given, absent members absent', async () => {
      const bare = keyRecord('a');
      const full = keyRecord('b', {
        name: `'; DROP TABLE keys; -- ü "`,
        models: ['openai/*', 'local/tiny'],
        endpoints: [],
        team: 'red',
        strict: true,
        createdAt: march + 1,
        expiresAt: march + day,
        revokedAt: march + 2,
      });
      await store.addKey(full);
      await store.addKey(bare);
      assert.deepEqual(await store.listKeys(), [bare, full]);
    });

    it('refuses a second key with the same id', async () => {
      await store.addKey(keyRecord('a'));
      await assert.rejects(store.addKey(keyRecord('a', { name: 'other' })));
      assert.equal((await store.listKeys())[0]?.name, 'key a');
    });

    it('S6 revokes once: the first time stands, an unknown id is told', async () => {
      await store.addKey(keyRecord('a'));
      assert.equal(await store.revokeKey('a', 5), true);
      assert.equal(await store.revokeKey('a', 9), true);
      assert.equal(await store.revokeKey('zz', 9), false);
      assert.equal((await store.listKeys())[0]?.revokedAt, 5);
    });

    it('keeps settings', async () => {
      assert.equal(await store.readSetting('x'), undefined);
      await store.writeSetting('x', '1');
      await store.writeSetting('x', '2');
      assert.equal(await store.readSetting('x'), '2');
    });

    it('keeps a call as it was given, newest first', async () => {
      const bare = callRow('c1');
      const full = callRow('c2', {
        startedAt: march + 1,
        team: 'red',
        provider: 'openai',
        upstreamModel: 'gpt-5-mini',
        mode: 'translate',
        stream: true,
        outcome: 'failed',
        status: 502,
        error: 'upstream_invalid',
        attempts: 3,
        reported: { freshInputTokens: 1, cacheReadTokens: 2 },
        charged: {
          freshInputTokens: 1,
          cacheReadTokens: 2,
          cacheWriteTokens: 3,
          outputTokens: 4,
          reasoningTokens: 5,
        },
        usageSource: 'estimated',
        firstEventMs: 1.25,
        totalMs: 1000.5,
        notes: 'top_k: dropped',
      });
      const twin = callRow('c0', { startedAt: march + 1, charged: {} });
      await store.recordCalls([bare, full]);
      await store.recordCalls([twin]);
      assert.deepEqual(await store.listCalls({ limit: 10 }), { calls: [full, twin, bare] });
      assert.deepEqual((await store.listCalls({ limit: 1 })).calls, [full]);
      await store.recordCalls([]);
    });

    it('K5 F8 counts a row that comes twice once, and never overwrites one', async () => {
      await store.recordCalls([callRow('c1'), callRow('c2')]);
      await store.recordCalls([callRow('c2', { model: 'other' }), callRow('c3')]);
      const models = (await store.listCalls({ limit: 10 })).calls.map(
        (row) => `${row.id} ${row.model}`,
      );
      assert.deepEqual(models, ['c3 local/tiny', 'c2 local/tiny', 'c1 local/tiny']);
    });

    it('sums usage by every grouping; all three input classes are input', async () => {
      await store.recordCalls([
        callRow('c1', {
          provider: 'p',
          team: 'red',
          charged: {
            freshInputTokens: 1,
            cacheReadTokens: 20,
            cacheWriteTokens: 300,
            outputTokens: 7,
            reasoningTokens: 2,
          },
        }),
        callRow('c2', { keyId: 'k2', model: 'm2', outcome: 'failed', charged: {} }),
        callRow('c3', { startedAt: march + day - 1, outcome: 'canceled', provider: 'p' }),
        callRow('c4', { startedAt: march + day, provider: 'p' }),
        callRow('old', { startedAt: march - 1 }),
      ]);
      const sums = async (by: UsageGrouping): Promise<readonly (readonly unknown[])[]> =>
        (await store.usage({ by, since: march })).map((row) => [
          row.group,
          row.calls,
          row.failed,
          row.inputTokens,
          row.outputTokens,
        ]);
      assert.deepEqual(await sums('key'), [
        ['k1', 3, 0, 341, 17],
        ['k2', 1, 1, 0, 0],
      ]);
      assert.deepEqual(await sums('model'), [
        ['local/tiny', 3, 0, 341, 17],
        ['m2', 1, 1, 0, 0],
      ]);
      assert.deepEqual(await sums('provider'), [
        ['', 1, 1, 0, 0],
        ['p', 3, 0, 341, 17],
      ]);
      assert.deepEqual(await sums('team'), [
        ['', 3, 1, 20, 10],
        ['red', 1, 0, 321, 7],
      ]);
      assert.deepEqual(await sums('day'), [
        ['2026-03-01', 3, 1, 331, 12],
        ['2026-03-02', 1, 0, 10, 5],
      ]);
      const [red] = (await store.usage({ by: 'team', since: march })).slice(1);
      assert.equal(red?.cacheReadTokens, 20);
      assert.equal(red?.cacheWriteTokens, 300);
    });

    it('orders groups alike, beyond ASCII too', async () => {
      const names = ['\u{1F600}', '￿', 'é', 'a', 'B'];
      await store.recordCalls(names.map((model, i) => callRow(`c${i}`, { model })));
      const groups = (await store.usage({ by: 'model', since: 0 })).map((row) => row.group);
      assert.deepEqual(groups, ['B', 'a', 'é', '￿', '\u{1F600}']);
    });

    it('refuses work after close; a second close does nothing', async () => {
      await store.close();
      await assert.rejects(store.listKeys(), { name: 'StoreError', kind: 'closed' });
      await assert.rejects(store.usage({ by: 'key', since: 0 }), { kind: 'closed' });
      await store.close();
    });
  });
}
