/** E2: an upstream that thinks for long. The waits are real ones, so all pairs wait together. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dialects, readStream, type Dialect } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { answerIn, seenOf, type Reply } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const reply: Reply = { text: 'At last.' };
/** Signs of life before the upstream says anything; the first comes 15 s after the request. */
const wanted = 2;

interface Silent {
  /** Nothing came at all, or the status and headers did. */
  readonly headFirst: boolean;
  readonly upstream: Dialect;
}

async function waitThrough(dialect: Dialect, { headFirst, upstream }: Silent): Promise<void> {
  const enough = Promise.withResolvers<void>();
  const full = answerIn(upstream, reply, true);
  assert.ok(typeof full.body === 'string');
  const answer: Answer = headFirst
    ? { ...full, body: [': waiting\n\n', enough.promise, full.body] }
    : { ...full, body: ['', enough.promise, full.body] };
  const { model } = rig.play(upstream, answer);
  let early = '';
  const got = await ask(rig, dialect, requestBody(dialect, { model, stream: true }), {
    onData: (chunk) => {
      early += chunk.toString();
      const signs = early.split('\n\n').filter((each) => each.startsWith(':')).length;
      if (signs >= wanted) enough.resolve();
    },
  });
  assert.equal(got.status, 200, got.text);
  assert.equal(got.headers['x-accel-buffering'], 'no');
  assert.equal(got.headers['cache-control'], 'no-cache, no-transform');
  assert.deepEqual(readStream(dialect, got.text), seenOf(reply, model));
}

test(
  'E2 signs of life while the upstream is silent, then the answer',
  { timeout: 60_000 },
  async () => {
    const cases = dialects.flatMap((dialect) =>
      dialects.flatMap((upstream) =>
        [true, false].map((headFirst) => ({ dialect, silent: { upstream, headFirst } })),
      ),
    );
    await Promise.all(cases.map(({ dialect, silent }) => waitThrough(dialect, silent)));
  },
);
