/**
 * Freezes conversions literally: what upstreams get of each request, and what clients get of each answer, relayed and
 * translated. What is right about them is proven by test/corpus and test/recordings; this test shows every difference
 * that a change makes.
 */
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { answering } from '../corpus/answer-sample.ts';
import { answerSamples, documentOf } from '../corpus/answers.ts';
import { cloudAnswers } from '../corpus/cloud-answers.ts';
import { sendSample, startCorpusRig, type CorpusRig } from '../corpus/corpus.ts';
import { corpus } from '../corpus/samples.ts';
import { upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { send } from '../support/http.ts';
import { allDialects, type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import { notesOf, outcome, sentences, settled } from './conversion-text.ts';
import { assertGolden } from './golden.ts';

let rig: CorpusRig;
before(async () => {
  rig = await startCorpusRig();
});
after(() => rig.stop());

for (const client of allDialects) {
  for (const upstream of upstreamDialects) {
    test(`corpus: ${client} requests to ${upstream} upstreams`, async (t) => {
      let text = '';
      for (const [id, sample] of Object.entries(corpus[client])) {
        const sent = await sendSample(rig, sample, { client, upstream });
        const answered = { status: sent.status, notes: sent.notes.join('; '), text: sent.text };
        text += `#### ${id}\n${outcome(sent.request, answered, sent.arrived[0])}\n`;
      }
      assertGolden(t, `corpus-${client}-to-${upstream}.txt`, text);
    });
  }
}

for (const upstream of allDialects) {
  test(`answers of ${upstream} upstreams to all clients`, async (t) => {
    let text = '';
    for (const sample of answerSamples[upstream]) {
      const answer = answering(upstream, documentOf(upstream, sample), sample.events);
      for (const client of allDialects) {
        const more = sample.to[client]?.asked ?? {};
        for (const stream of [false, true]) {
          const reply = await hear(client, upstream, { answer, stream, more });
          text += `#### ${sample.name}: ${client} ${stream ? 'stream' : 'document'}\n${reply}\n`;
        }
      }
    }
    assertGolden(t, `answers-${upstream}.txt`, text);
  });
}

for (const upstream of ['gemini', 'converse'] as const) {
  test(`answers of ${upstream} upstreams to all clients`, async (t) => {
    let text = '';
    for (const { name, document, stream: events } of cloudAnswers[upstream]) {
      for (const client of allDialects) {
        for (const stream of [false, true]) {
          const reply = await hear(client, upstream, {
            answer: stream ? events : document,
            stream,
          });
          text += `#### ${name}: ${client} ${stream ? 'stream' : 'document'}\n${reply}\n`;
        }
      }
    }
    assertGolden(t, `answers-${upstream}.txt`, text);
  });
}

test('the sentences of notes and errors', (t) => {
  assertGolden(t, 'conversions.prose.txt', `${[...sentences].toSorted().join('\n')}\n`);
});

interface Heard {
  readonly answer: (request: Received) => Answer;
  readonly stream: boolean;
  readonly more?: JsonObject;
}

let heard = 0;

/** What a client gets when the upstream gives this answer. */
async function hear(
  client: AnyDialect,
  upstream: UpstreamDialect,
  { answer, stream, more = {} }: Heard,
): Promise<string> {
  heard += 1;
  rig.upstreams[upstream].script(`heard-${heard}`, answer);
  const model = `up-${upstream}/heard-${heard}`;
  const body = requestBody(client, { model, stream, more });
  const reply = await send(rig.gateway.url + endpointOf[client], body);
  const text = settled(reply.text).replaceAll(model, 'MODEL').replaceAll(`heard-${heard}`, 'MODEL');
  return `${reply.status} ${notesOf(reply)}`.trimEnd() + `\n${text.trimEnd()}\n`;
}
