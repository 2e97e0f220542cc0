/** F73 per provider: a stream whose client left is closed, or read on for the usage that it reports. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { numberAt, objectAt, type AnyDialect } from '../support/reading.ts';
import { providerAt } from '../support/gateway.ts';
import { ask } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import {
  errorOf,
  nanodollarsOfOutput,
  startLimitedRig,
  type LimitedKey,
  type LimitedRig,
} from '../limits/limited-rig.ts';
import type { Answer, Script } from '../upstream/scripted.ts';
import { begun, rest } from './stream-pieces.ts';

/** Options of providers: only of those that hang is the silence awaited. */
const kinds = {
  drained: { on_abort: 'drain' },
  hanging: { on_abort: 'drain', timeouts: { idle: '1500ms' } },
} as const;

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig((upstreams) => ({
    prices: { '*/*': { input: 0, output: 10 } },
    providers: Object.fromEntries(
      upstreamDialects.flatMap((upstream) =>
        Object.entries(kinds).map(([kind, options]) => [
          `${kind}-${upstream}`,
          providerAt(upstream, upstreams[upstream].port, options),
        ]),
      ),
    ),
  }));
});
after(() => rig.stop());

interface Left {
  readonly row: JsonObject;
  readonly script: Script;
}

let played = 0;

function play(upstream: UpstreamDialect, answer: Answer): { model: string; script: Script } {
  played += 1;
  const name = `left-${played}`;
  const script = rig.upstreams[upstream].script(name, answer);
  const kind: keyof typeof kinds = answer.ending === 'hang' ? 'hanging' : 'drained';
  return { model: `${kind}-${upstream}/${name}`, script };
}

async function askAndLeave(dialect: AnyDialect, model: string, key?: LimitedKey): Promise<void> {
  const abort = new AbortController();
  const body = requestBody(dialect, { model, stream: true, more: { max_tokens: cap } });
  await ask(rig, dialect, body, {
    signal: abort.signal,
    onData: () => abort.abort(),
    ...(key === undefined ? {} : { headers: key.headers }),
  }).catch(() => undefined);
}

const cap = 100;

/** Leaves at the first content; what the ledger says then. */
async function leave(
  dialect: AnyDialect,
  upstream: UpstreamDialect,
  answer: (gone: Promise<void>) => Answer,
): Promise<Left> {
  const gone = Promise.withResolvers<void>();
  const { model, script } = play(upstream, answer(gone.promise));
  await askAndLeave(dialect, model);
  // What comes on another connection afterwards is read behind the end of this one.
  await rig.admin('GET', '/api/status');
  gone.resolve();
  const [row] = await rig.gateway.callRows(model, 1);
  await rig.gateway.noneLeft();
  return { row: row ?? {}, script };
}

for (const dialect of clientDialects) {
  for (const upstream of upstreamDialects) {
    const mode = `${dialect === upstream ? 'relay' : 'translate'} from ${upstream}`;

    test(`F73 what the provider charges is read to its end, ${dialect}, ${mode}`, async () => {
      const { row, script } = await leave(dialect, upstream, (gone) => ({
        body: [begun(upstream), gone, rest(upstream)],
      }));
      assert.equal(row['outcome'], 'canceled');
      assert.equal(row['usage_source'], 'reported');
      assert.equal(numberAt(objectAt(row, 'charged'), 'output_tokens'), 7);
      assert.equal(script.requests.length, 1);
    });

    test(`E17 what was read to its end is given to its client when it comes back, ${dialect}, ${mode}`, async () => {
      const gate = Promise.withResolvers<void>();
      const pieces = [begun(upstream), gate.promise, rest(upstream)];
      const { model, script } = play(upstream, { body: pieces, framing: 'chunked' });
      const key = await rig.key({ budget: 1, per: 'day' });
      const headers = { ...key.headers, 'idempotency-key': 'again' };
      await askAndLeave(dialect, model, { ...key, headers });
      const body = requestBody(dialect, { model, stream: true, more: { max_tokens: cap } });
      const early = await rig.call(key, dialect, body, { 'idempotency-key': 'again' });
      assert.equal(early.status, 409, early.text);
      gate.resolve();
      await rig.gateway.callRows(model, 1);
      await rig.gateway.noneLeft();
      let again = await ask(rig, dialect, body, { headers });
      // Its row may be there before its answer is kept.
      for (let asked = 1; again.status === 409 && asked < 300; asked += 1) {
        again = await ask(rig, dialect, body, { headers });
      }
      assert.equal(again.status, 200, again.text);
      assert.equal(again.headers['idempotent-replayed'], 'true');
      assert.equal(script.requests.length, 1);
      assert.equal(await rig.spent(key), 7 * nanodollarsOfOutput);
    });

    test(`F73 a key's place is free when its client left, its money when the stream ends, ${dialect}, ${mode}`, async () => {
      const gate = Promise.withResolvers<void>();
      const { model } = play(upstream, {
        body: [begun(upstream), gate.promise, rest(upstream)],
        framing: 'chunked',
      });
      // Room for one reservation and a half.
      const budget = (1.5 * cap * nanodollarsOfOutput) / 1e9;
      const key = await rig.key({ concurrent: 1, budget, per: 'day' });
      await askAndLeave(dialect, model, key);
      const more = { max_tokens: cap };
      const next = requestBody(dialect, { model, stream: true, more });
      let reply = await rig.call(key, dialect, next);
      // The gateway may not know yet that the client left.
      for (
        let asked = 1;
        errorOf(reply)['type'] === 'rate_limit_error' && asked < 300;
        asked += 1
      ) {
        reply = await rig.call(key, dialect, next);
      }
      const spent = dialect === 'messages' ? 'billing_error' : 'insufficient_quota';
      assert.equal(errorOf(reply)['type'], spent, reply.text);
      gate.resolve();
      await rig.gateway.noneLeft();
      reply = await rig.call(key, dialect, next);
      assert.equal(reply.status, 200, reply.text);
      await rig.gateway.noneLeft();
      // Rows are written behind the answers.
      await rig.gateway.callsAfter(model, 2);
      assert.equal(await rig.spent(key), 2 * 7 * nanodollarsOfOutput);
    });

    for (const ending of ['fin', 'hang'] as const) {
      test(`F73 LC where its end never comes, ${ending}, ${dialect}, ${mode}`, async () => {
        const { row, script } = await leave(dialect, upstream, (gone) => ({
          body: [begun(upstream), gone],
          framing: 'chunked',
          ending,
        }));
        assert.equal(row['outcome'], 'canceled');
        assert.equal(row['usage_source'], 'estimated');
        assert.ok(numberAt(objectAt(row, 'charged'), 'output_tokens') > 0);
        const request = await script.request(0);
        assert.equal(await request.closed, ending === 'hang' ? 'gateway' : 'upstream');
      });
    }
  }
}
