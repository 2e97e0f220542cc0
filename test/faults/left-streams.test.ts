/** F73 per provider: a stream whose client left is closed, or read on for the usage that it reports. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/core/conversation.ts';
import { dialects, numberAt, objectAt, type Dialect } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import type { Answer, Script } from '../upstream/scripted.ts';
import { begun, rest } from './stream-pieces.ts';

let rig: Rig;
before(async () => {
  rig = await startRig(({ chat, messages }) => ({
    providers: {
      'drained-chat': {
        dialect: 'openai-chat',
        base_url: `http://127.0.0.1:${chat.port}/v1`,
        api_key: 'k',
        on_abort: 'drain',
        timeouts: { idle: '1500ms' },
      },
      'drained-messages': {
        dialect: 'anthropic-messages',
        base_url: `http://127.0.0.1:${messages.port}`,
        api_key: 'k',
        on_abort: 'drain',
        timeouts: { idle: '1500ms' },
      },
    },
  }));
});
after(() => rig.stop());

interface Left {
  readonly row: JsonObject;
  readonly script: Script;
}

/** Leaves at the first content; what the ledger says then. */
async function leave(dialect: Dialect, upstream: Dialect, answer: Answer): Promise<Left> {
  const name = `left-${dialect}-${Math.random()}`;
  const script = rig.upstreams[upstream].script(name, answer);
  const model = `drained-${upstream}/${name}`;
  const abort = new AbortController();
  await ask(rig, dialect, requestBody(dialect, { model, stream: true }), {
    signal: abort.signal,
    onData: () => abort.abort(),
  }).catch(() => undefined);
  const [row] = await rig.gateway.callRows(model, 1);
  await rig.gateway.noneLeft();
  return { row: row ?? {}, script };
}

for (const dialect of dialects) {
  for (const upstream of dialects) {
    const mode = dialect === upstream ? 'relay' : 'translate';

    test(`F73 what the provider charges is read to its end, ${dialect}, ${mode}`, async () => {
      const pause = new Promise((resolve) => setTimeout(resolve, 200));
      const body = [begun(upstream), pause, rest(upstream)];
      const { row, script } = await leave(dialect, upstream, { body });
      assert.equal(row['outcome'], 'canceled');
      assert.equal(row['usage_source'], 'reported');
      assert.equal(numberAt(objectAt(row, 'charged'), 'output_tokens'), 7);
      assert.equal(script.requests.length, 1);
    });

    for (const ending of ['fin', 'hang'] as const) {
      test(`F73 LC where its end never comes, ${ending}, ${dialect}, ${mode}`, async () => {
        // The client must be gone before it ends.
        const pause = new Promise((resolve) => setTimeout(resolve, 300));
        const answer: Answer = { body: [begun(upstream), pause], framing: 'chunked', ending };
        const { row, script } = await leave(dialect, upstream, answer);
        assert.equal(row['outcome'], 'canceled');
        assert.equal(row['usage_source'], 'estimated');
        assert.ok(numberAt(objectAt(row, 'charged'), 'output_tokens') > 0);
        const request = await script.request(0);
        assert.equal(await request.closed, ending === 'hang' ? 'gateway' : 'upstream');
      });
    }
  }
}
