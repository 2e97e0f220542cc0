/**
 * Issue 3, B15: each field of an upstream's answer, as document and as stream, to a client of the other
 * dialect. What clients get is judged by the published schemas and by the SDKs' own types.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { answerTables, rowId, type DecidedRow } from '../decisions/rows.ts';
import { send, type Reply } from '../support/http.ts';
import { dialects, framesOf, readDocument, readStream, type Dialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { schemaJudge, typeComplaints, type Typed } from '../support/schemas.ts';
import { answering, completionChunks, messageEvents, type AnswerSample } from './answer-sample.ts';
import { chatAnswers } from './chat-answers.ts';
import { notedPaths, startCorpusRig, type CorpusRig } from './corpus.ts';
import { valuesAt } from './locate.ts';
import { messagesAnswers } from './messages-answers.ts';
import { holds } from './sample.ts';
import { answersShownElsewhere } from './shown-elsewhere.ts';

const clientOf: { readonly [D in Dialect]: Dialect } = { chat: 'messages', messages: 'chat' };
const usage: { readonly [D in Dialect]: JsonObject } = {
  chat: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  messages: { input_tokens: 3, output_tokens: 2 },
};
const identity: { readonly [D in Dialect]: JsonObject } = {
  chat: { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'up', usage: usage.chat },
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'up',
    stop_sequence: null,
    stop_details: null,
    usage: usage.messages,
  },
};

function samplesOf(upstream: Dialect): readonly AnswerSample<object>[] {
  return upstream === 'chat' ? chatAnswers : messagesAnswers;
}

function documentOf(upstream: Dialect, sample: AnswerSample<object>): JsonObject {
  return { ...identity[upstream], ...sample.answer };
}

let rig: CorpusRig;
before(async () => {
  rig = await startCorpusRig();
});
after(() => rig.stop());

let asked = 0;
async function ask(
  upstream: Dialect,
  sample: AnswerSample<object>,
  stream: boolean,
): Promise<Reply> {
  asked += 1;
  const name = `answer-${asked}`;
  rig.upstreams[upstream].script(name, answering(upstream, documentOf(upstream, sample)));
  const client = clientOf[upstream];
  const more = sample.asked ?? {};
  const body = requestBody(client, { model: `up-${upstream}/${name}`, stream, more });
  return send(rig.gateway.url + endpointOf[client], body);
}

/** Everything that clients got, for the type check. */
const got: Typed[] = [];

/**
 * What the types demand and the native service leaves out itself (shared recordings): `citations` of
 * texts that cite nothing, `speed` of usage, `diagnostics`.
 */
function completed(value: Json): Json {
  if (Array.isArray(value)) return value.map((each: Json) => completed(each));
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([key, each]) => [key, completed(each ?? null)]);
  return {
    ...(value['type'] === 'text' ? { citations: null } : {}),
    ...('inference_geo' in value ? { speed: null } : {}),
    ...(value['type'] === 'message' ? { diagnostics: null } : {}),
    ...Object.fromEntries(members),
  };
}
const judgeDocument = schemaJudge('CreateChatCompletionResponse');
const judgeChunk = schemaJudge('CreateChatCompletionStreamResponse');

function keep(client: Dialect, name: string, document: Json): void {
  got.push({
    name,
    type: client === 'chat' ? 'Completion' : 'Stable.Message',
    value: completed(document),
  });
  if (client === 'chat') assert.equal(judgeDocument(document), '', JSON.stringify(document));
}

function keepEvents(client: Dialect, name: string, text: string): void {
  for (const { data } of framesOf(text)) {
    const event = tryParseObject(data);
    if (event === undefined || event['type'] === 'ping') continue;
    got.push({
      name,
      type: client === 'chat' ? 'Chunk' : 'Stable.RawMessageStreamEvent',
      value: completed(event),
    });
    if (client === 'chat') assert.equal(judgeChunk(event), '', data);
  }
}

/** Which rows of a table are in what an upstream sent. */
function shownRows(rows: readonly DecidedRow[], sent: JsonObject): readonly string[] {
  return rows
    .filter(({ path, when }) =>
      valuesAt(sent, path).some((value) => value !== null && (when === '' || value === when)),
    )
    .map(rowId);
}

for (const upstream of dialects) {
  const samples = samplesOf(upstream);
  const client = clientOf[upstream];

  test(`issue 3: each row of ${upstream} answers is in a sample, as document and as stream`, () => {
    const documents = samples.map((sample) => documentOf(upstream, sample));
    const leaves = (rows: readonly DecidedRow[]): readonly string[] =>
      rows.filter(({ outer }) => !outer).map(rowId);
    const rowsOf = (what: 'document' | 'stream'): readonly DecidedRow[] =>
      answerTables.find((table) => table.from === upstream && table.what === what)?.rows ?? [];
    const inDocuments = documents.flatMap((each) => shownRows(rowsOf('document'), each));
    const stream = rowsOf('stream');
    const events = documents.flatMap(upstream === 'chat' ? completionChunks : messageEvents);
    const inStreams = events.flatMap((event) =>
      shownRows(stream, upstream === 'chat' ? event : { [String(event['type'])]: event }),
    );
    const elsewhere = Object.keys(answersShownElsewhere[upstream]);
    const missing = (rows: readonly DecidedRow[], shown: readonly string[]): readonly string[] =>
      leaves(rows).filter((id) => !shown.includes(id) && !elsewhere.includes(id));
    assert.deepEqual(missing(rowsOf('document'), inDocuments), [], 'documents');
    assert.deepEqual(missing(stream, inStreams), [], 'streams');
  });

  suite(`issue 3, B15: ${upstream} answers to ${client} clients`, () => {
    for (const sample of samples) {
      test(`${sample.name}: document`, async () => {
        const reply = await ask(upstream, sample, false);
        assert.equal(reply.status, 200, reply.text);
        keep(client, `${upstream} ${sample.name}`, reply.json);
        assert.ok(
          holds(reply.json, sample.tells),
          `${reply.text} does not hold ${JSON.stringify(sample.tells)}`,
        );
        const notes = notedPaths(String(reply.headers['x-gateway-notes'] ?? ''));
        assert.deepEqual([...new Set(notes)], sample.noted ?? []);
      });
      test(`${sample.name}: stream`, async () => {
        const reply = await ask(upstream, sample, true);
        assert.equal(reply.status, 200, reply.text);
        keepEvents(client, `${upstream} ${sample.name}, streamed`, reply.text);
        const document = await ask(upstream, sample, false);
        const { model: _streamed, ...streamed } = readStream(client, reply.text);
        const { model: _whole, ...whole } = readDocument(client, document.json);
        assert.deepEqual(streamed, whole);
      });
    }
  });
}

const types = `
type Extra = { reasoning_content?: string; reasoning_details?: readonly object[] };
type Choice = Omit<OpenAI.Chat.ChatCompletion.Choice, 'message'> & {
  message: OpenAI.Chat.ChatCompletionMessage & Extra; stop_reason?: string };
type Completion = Omit<OpenAI.Chat.ChatCompletion, 'choices'> & { choices: Choice[] };
type Annotation = OpenAI.Chat.ChatCompletionMessage.Annotation & { index?: number };
type Annotated = { annotations?: Annotation[] };
type Delta = Omit<OpenAI.Chat.ChatCompletionChunk.Choice, 'delta'> & {
  delta: OpenAI.Chat.ChatCompletionChunk.Choice.Delta & Extra & Annotated; stop_reason?: string };
type Chunk = Omit<OpenAI.Chat.ChatCompletionChunk, 'choices'> & { choices: Delta[] };
export type { Completion, Chunk };
`;

test('B15: everything that clients got is of the types of their SDK', () => {
  assert.ok(got.length > 0 && got.every(({ value }) => isObject(value)));
  assert.deepEqual(typeComplaints(got, types), []);
});
