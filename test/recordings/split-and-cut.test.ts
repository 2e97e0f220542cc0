/** Recorded streams in every split of bytes, and cut at their events (recordings/README.md, 5, 6). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertErrorBody } from '../support/legality.ts';
import { dialects, endingOf, readStream, type Dialect, type Seen } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { everyBytes, randomSplit, type Answer } from '../upstream/scripted.ts';
import { recordedStreams, whyLeftOut, type RecordedStream } from './recorded.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

if (whyLeftOut !== undefined) test('recordings', { skip: whyLeftOut }, () => undefined);

/** Single bytes cost a callback each: only for recordings up to this size. */
const singleByteLimit = 80_000;
const smallSize = 20_000;

function streaming(recorded: RecordedStream, split?: Answer['split']): Answer {
  return {
    body: recorded.frames.join(''),
    framing: 'chunked',
    ...(split === undefined ? {} : { split }),
  };
}

/** What the client sees; the model's name differs from play to play. */
async function seenBy(dialect: Dialect, recorded: RecordedStream, answer: Answer): Promise<Seen> {
  const { model } = rig.play(recorded.upstream, answer);
  const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
  assert.equal(endingOf(dialect, reply.text), 'proper', reply.text.slice(-300));
  return { ...readStream(dialect, reply.text), model: '' };
}

/** Numbers of frames after which the stream is cut: all of a short one, a sample of a long one. */
function cutsOf(recorded: RecordedStream): readonly number[] {
  const all = Array.from({ length: recorded.finishAt + 1 }, (_, index) => index);
  const step = Math.max(1, Math.floor(all.length / 25));
  return all.filter((at) => at % step === 0 || at > recorded.finishAt - 5 || at < 5);
}

for (const dialect of dialects) {
  describe(`${dialect} client`, () => {
    for (const recorded of recordedStreams()) {
      if (recorded.name === 'spliced-message-start') continue;

      test(`E1 F47 ${recorded.name} in any split of bytes`, async () => {
        const size = Buffer.byteLength(recorded.frames.join(''));
        const whole = await seenBy(dialect, recorded, streaming(recorded));
        const splits = Array.from({ length: size < smallSize ? 20 : 3 }, (_, index) =>
          randomSplit(index + 1, size < smallSize ? 60 : 1500),
        );
        if (size < singleByteLimit) splits.push(everyBytes(1));
        for (const split of splits) {
          assert.deepEqual(await seenBy(dialect, recorded, streaming(recorded, split)), whole);
        }
      });

      test(`E4 F40 ${recorded.name} cut at its events: an error, never an ending`, async () => {
        for (const cut of cutsOf(recorded)) {
          const { model } = rig.play(recorded.upstream, {
            body: recorded.frames.slice(0, cut).join(''),
            framing: 'chunked',
            ending: cut % 2 === 0 ? 'fin' : 'proper',
          });
          const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: true }));
          const where = `cut after ${cut} events`;
          if (reply.status === 200) assert.equal(endingOf(dialect, reply.text), 'error', where);
          else assert.ok(reply.status >= 500 && assertErrorBody(dialect, reply.json), where);
        }
      });
    }
  });
}
