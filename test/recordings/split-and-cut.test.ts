/** Recorded streams in every split of bytes, and cut at their events (recordings/README.md, 5, 6). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertErrorBody } from '../support/legality.ts';
import { runsNow } from '../support/depth.ts';
import { clientDialects, type ClientDialect } from '../support/dialects.ts';
import { endingOf, readStream, type Seen } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody, shown } from '../support/requests.ts';
import { joined } from '../upstream/reply.ts';
import { everyBytes, randomSplit, type Answer } from '../upstream/scripted.ts';
import { recordedStreams, whyOmitted, type RecordedStream } from './recorded.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

if (whyOmitted !== undefined) test('recordings', { skip: whyOmitted }, () => undefined);

/** A stream that was spliced from two, and one that tells of a failure: replayed.test.ts has them. */
const oneSided = new Set(['spliced-message-start', 'openai-error.1']);
/** Single bytes cost a callback each: only for recordings up to this size. */
const singleByteLimit = 80_000;
const sampledByteLimit = 10_000;
const smallSize = 20_000;

function streaming(recorded: RecordedStream, split?: Answer['split']): Answer {
  return {
    body: recorded.whole,
    framing: 'chunked',
    ...(split === undefined ? {} : { split }),
  };
}

/** What the client sees; the model's name differs from play to play. */
async function seenBy(
  dialect: ClientDialect,
  recorded: RecordedStream,
  answer: Answer,
): Promise<Seen> {
  const { model } = rig.play(recorded.upstream, answer);
  const body = requestBody(dialect, { model, stream: true, more: shown(dialect) });
  const reply = await ask(rig, dialect, body);
  assert.equal(endingOf(dialect, reply.text), 'proper', reply.text.slice(-300));
  return { ...readStream(dialect, reply.text), model: '' };
}

/** How the bytes are cut into packets: short recordings in more ways. */
function splitsOf(size: number): readonly Answer['split'][] {
  const [count, sampled, longest] = size < smallSize ? [20, 2, 60] : [3, 1, 1500];
  const splits = Array.from({ length: count }, (_, index) => randomSplit(index + 1, longest));
  const now = splits.filter((_split, index) => runsNow(index < sampled));
  const bySingleBytes = size < singleByteLimit && runsNow(size < sampledByteLimit);
  return bySingleBytes ? [...now, everyBytes(1)] : now;
}

/** The events of a cut stream are read again for each cut: of longer recordings one in five is cut, and both ends. */
const manyEvents = 400;

/** Numbers of frames after which the stream is cut: a sample of them, the first and the last ones always. */
function cutsOf(recorded: RecordedStream): readonly number[] {
  const all = Array.from({ length: recorded.finishAt + 1 }, (_, index) => index);
  const step = Math.max(1, Math.floor(all.length / 4));
  const isNear = (at: number, edge: number): boolean => at > recorded.finishAt - edge || at < edge;
  return all.filter((at) => {
    const inSample = at % step === 0 || isNear(at, 2);
    const isCut = all.length <= manyEvents || at % 5 === 0 || isNear(at, 50);
    return runsNow(inSample) && (inSample || isCut);
  });
}

for (const dialect of clientDialects) {
  describe(`${dialect} client`, () => {
    for (const recorded of recordedStreams()) {
      if (oneSided.has(recorded.name)) continue;
      const cuts = cutsOf(recorded);

      test(`E1 F47 R-74 ${recorded.name} in any split of bytes`, async () => {
        const size = Buffer.byteLength(recorded.whole);
        const whole = await seenBy(dialect, recorded, streaming(recorded));
        for (const split of splitsOf(size)) {
          assert.deepEqual(await seenBy(dialect, recorded, streaming(recorded, split)), whole);
        }
      });

      if (cuts.length === 0) continue;
      test(`E4 F40 R-73 ${recorded.name} cut at its events: an error, never an ending`, async () => {
        for (const cut of cuts) {
          const { model } = rig.play(recorded.upstream, {
            body: joined(recorded.frames.slice(0, cut)),
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
