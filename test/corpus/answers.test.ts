/**
 * Issue 3, B15: each field of an upstream's answer, as document and as stream, to a client of each
 * other dialect. What clients get is judged by the published schemas and by the SDKs' own types.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { answerTables, eventPath, rowId, type DecidedRow } from '../decisions/rows.ts';
import { send, type Reply } from '../support/http.ts';
import { clientDialects } from '../support/dialects.ts';
import { framesOf, readDocument, readStream, type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { schemaJudge, typeComplaints, type Judge, type Typed } from '../support/schemas.ts';
import { answering, eventsOf, type AnswerSample } from './answer-sample.ts';
import { answerSamples, documentOf } from './answers.ts';
import { notedPaths, startCorpusRig, type CorpusRig } from './corpus.ts';
import { valuesAt } from './locate.ts';
import { holds } from './sample.ts';
import { answersShownElsewhere } from './shown-elsewhere.ts';

let rig: CorpusRig;
before(async () => {
  rig = await startCorpusRig();
});
after(() => rig.stop());

interface Asking {
  readonly client: AnyDialect;
  readonly upstream: AnyDialect;
  readonly sample: AnswerSample<object>;
  readonly stream: boolean;
}

let asked = 0;
async function ask({ client, upstream, sample, stream }: Asking): Promise<Reply> {
  asked += 1;
  const name = `answer-${asked}`;
  const document = documentOf(upstream, sample);
  rig.upstreams[upstream].script(name, answering(upstream, document, sample.events));
  const more = sample.to[client]?.asked ?? {};
  const body = requestBody(client, { model: `up-${upstream}/${name}`, stream, more });
  return send(rig.gateway.url + endpointOf[client], body);
}

/** Everything that clients got, for the type check. */
const got: Typed[] = [];

/**
 * What the types demand and the native service leaves out itself (shared recordings): `citations` of
 * texts that cite nothing, `speed` of usage, `diagnostics`.
 */
function completed(value: JsonObject): JsonObject {
  const inner = (each: Json): Json => {
    if (Array.isArray(each)) return each.map(inner);
    return isObject(each) ? completed(each) : each;
  };
  const members = Object.entries(value).map(([key, each]) => [key, inner(each ?? null)]);
  return {
    ...(value['type'] === 'text' ? { citations: null } : {}),
    ...('inference_geo' in value ? { speed: null } : {}),
    ...(value['type'] === 'message' ? { diagnostics: null } : {}),
    ...Object.fromEntries(members),
  };
}

/** As the types and schemas want what the native services write otherwise. */
function asTyped(client: AnyDialect, value: JsonObject): JsonObject {
  if (client === 'messages') return completed(value);
  const { response } = value;
  if (client === 'chat' || !isObject(response) || response['usage'] !== null) return value;
  // Before its end a response has no usage, for which the service writes null.
  const { usage: _none, ...begun } = response;
  return { ...value, response: begun };
}

interface Judged {
  /** Of a document and of an event, in the head of the file that is type-checked. */
  readonly types: readonly [document: string, event: string];
  readonly document: Judge;
  readonly event: Judge;
}

const anything: Judge = () => '';
const judged: { readonly [D in AnyDialect]: Judged } = {
  chat: {
    types: ['Completion', 'Chunk'],
    document: schemaJudge('CreateChatCompletionResponse'),
    event: schemaJudge('CreateChatCompletionStreamResponse'),
  },
  messages: {
    types: ['Stable.Message', 'Stable.RawMessageStreamEvent'],
    document: anything,
    event: anything,
  },
  responses: {
    types: ['Answer', 'ResponseEvent'],
    document: schemaJudge('Response'),
    event: schemaJudge('ResponseStreamEvent'),
  },
};

function keep(client: AnyDialect, name: string, document: JsonObject): void {
  const { types, document: judge } = judged[client];
  got.push({ name, type: types[0], value: asTyped(client, document) });
  assert.equal(judge(document), '', JSON.stringify(document));
}

function keepEvents(client: AnyDialect, name: string, text: string): void {
  const { types, event: judge } = judged[client];
  for (const { data } of framesOf(text)) {
    const event = tryParseObject(data);
    if (event === undefined || event['type'] === 'ping') continue;
    const typed = asTyped(client, event);
    got.push({ name, type: types[1], value: typed });
    assert.equal(judge(typed), '', data);
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

/** The events of a stream as rows find them: all chunks of a chat stream are alike, others are found by name. */
function rowsEvent(upstream: AnyDialect, event: JsonObject): JsonObject {
  return upstream === 'chat' ? event : { [eventPath(String(event['type']))]: event };
}

for (const upstream of clientDialects) {
  const samples = answerSamples[upstream];

  test(`issue 3: each row of ${upstream} answers is in a sample, as document and as stream`, () => {
    const leaves = (rows: readonly DecidedRow[]): readonly string[] =>
      rows.filter(({ outer }) => !outer).map(rowId);
    const rowsOf = (what: 'document' | 'stream'): readonly DecidedRow[] =>
      answerTables.find((table) => table.from === upstream && table.what === what)?.rows ?? [];
    const inDocuments = samples.flatMap((sample) =>
      shownRows(rowsOf('document'), documentOf(upstream, sample)),
    );
    const stream = rowsOf('stream');
    const inStreams = samples
      .flatMap((sample) => eventsOf(upstream, documentOf(upstream, sample), sample.events))
      .flatMap((event) => shownRows(stream, rowsEvent(upstream, event)));
    const elsewhere = Object.keys(answersShownElsewhere[upstream]);
    const missing = (rows: readonly DecidedRow[], shown: readonly string[]): readonly string[] =>
      leaves(rows).filter((id) => !shown.includes(id) && !elsewhere.includes(id));
    assert.deepEqual(missing(rowsOf('document'), inDocuments), [], 'documents');
    assert.deepEqual(missing(stream, inStreams), [], 'streams');
  });

  for (const client of clientDialects) {
    if (client === upstream) continue;
    // Each document and event is judged by the published schema.
    const own = client === 'responses' ? 'R-79 ' : '';
    suite(`${own}issue 3, B15: ${upstream} answers to ${client} clients`, () => {
      for (const sample of samples) {
        test(`${sample.name}: document`, async () => {
          const told = sample.to[client];
          assert.ok(told !== undefined, 'the sample says what the client reads');
          const reply = await ask({ client, upstream, sample, stream: false });
          assert.equal(reply.status, 200, reply.text);
          keep(client, `${upstream} ${sample.name}`, reply.json);
          assert.ok(
            holds(reply.json, told.tells),
            `${reply.text} does not hold ${JSON.stringify(told.tells)}`,
          );
          const notes = notedPaths(String(reply.headers['x-gateway-notes'] ?? ''));
          assert.deepEqual([...new Set(notes)], told.noted ?? []);
        });
        test(`${sample.name}: stream`, async () => {
          const reply = await ask({ client, upstream, sample, stream: true });
          assert.equal(reply.status, 200, reply.text);
          keepEvents(client, `${upstream} ${sample.name}, streamed`, reply.text);
          const document = await ask({ client, upstream, sample, stream: false });
          const { model: _streamed, ...streamed } = readStream(client, reply.text);
          const { model: _whole, ...whole } = readDocument(client, document.json);
          assert.deepEqual(streamed, whole);
        });
      }
    });
  }
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
type Custom = OpenAI.Responses.ResponseCustomToolCall & { status?: string };
type Item = OpenAI.Responses.ResponseOutputItem | Custom;
type Answer = Omit<OpenAI.Responses.Response, 'output' | 'output_text' | 'access_programs'> & {
  output: Item[]; store?: boolean };
type Of<E> = E extends { response: unknown } ? Omit<E, 'response'> & { response: Answer }
  : E extends { item: unknown } ? Omit<E, 'item'> & { item: Item }
  : E extends { type: 'response.function_call_arguments.done' } ? E & { name: string } : E;
type ResponseEvent = Of<OpenAI.Responses.ResponseStreamEvent>;
export type { Completion, Chunk, Answer, ResponseEvent };
`;

test('B15: everything that clients got is of the types of their SDK', () => {
  assert.ok(got.length > 0 && got.every(({ value }) => isObject(value)));
  assert.deepEqual(typeComplaints(got, types), []);
});
