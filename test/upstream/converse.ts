/**
 * Converse of Amazon Bedrock as it answers, and the rules by which it refuses a request, written from wire/bedrock.md and
 * not from the gateway's own writer.
 */
import assert from 'node:assert/strict';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { awsError, converseEvent, eventStream, exceptionMessage } from './aws.ts';
import { halves } from './chat.ts';
import type { Answer, Received } from './scripted.ts';

// Answers.

export interface ConverseAnswer {
  readonly content?: readonly JsonObject[];
  readonly stopReason?: string;
  readonly usage?: JsonObject | null;
  readonly more?: JsonObject;
}

export const usualUsage: JsonObject = { inputTokens: 12, outputTokens: 5, totalTokens: 17 };

export function converseDocument({
  content = [{ text: 'ok' }],
  stopReason = 'end_turn',
  usage = usualUsage,
  more = {},
}: ConverseAnswer = {}): JsonObject {
  return {
    output: { message: { role: 'assistant', content } },
    stopReason,
    ...(usage === null ? {} : { usage }),
    metrics: { latencyMs: 700 },
    ...more,
  };
}

export function converseAnswer(answer: ConverseAnswer = {}): Answer {
  return { body: JSON.stringify(converseDocument(answer)) };
}

/** A stream of events, each an object whose one member is its name, as the SDK has them. */
export function converseStream(events: readonly JsonObject[], more: Partial<Answer> = {}): Answer {
  return eventStream(events.map(converseFrame), more);
}

/** One event of a stream, an exception where it is an error. An object that is no event of Converse has its name as `type`. */
export function converseFrame(event: JsonObject): Buffer {
  const { __type: exception, type, ...rest } = event;
  if (typeof exception === 'string') {
    return exceptionMessage(exception.charAt(0).toLowerCase() + exception.slice(1), rest);
  }
  if (typeof type === 'string') return converseEvent(type, rest);
  const [[name, payload] = ['', {}]] = Object.entries(event);
  return converseEvent(name, isObject(payload) ? payload : {});
}

/** A piece of text of the first block. */
export function converseDelta(text: string): JsonObject {
  return { contentBlockDelta: { contentBlockIndex: 0, delta: { text } } };
}

/** The types of errors by their statuses. */
const errorTypes: { readonly [status: number]: string } = {
  400: 'ValidationException',
  401: 'UnrecognizedClientException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  409: 'ConflictException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
};

/** An error as it stands in an answer that names its type itself. */
export function converseErrorBody(message: string, status: number): JsonObject {
  return { __type: errorTypes[status] ?? 'InternalFailure', message };
}

/** An error over HTTP; statuses that the service does not have come from what is in front of it. */
export function converseError(message: string, status: number): Answer {
  const type = errorTypes[status];
  if (type !== undefined) return awsError(status, type, { message });
  return { status, body: JSON.stringify({ message }) };
}

/** The same answer as a stream. */
export function eventsOf({
  content = [{ text: 'ok' }],
  stopReason = 'end_turn',
  usage = usualUsage,
  more = {},
}: ConverseAnswer = {}): readonly JsonObject[] {
  const { additionalModelResponseFields, ...rest } = more;
  return [
    { messageStart: { role: 'assistant' } },
    ...content.flatMap((block, i) => blockEvents(block, i)),
    {
      messageStop: {
        stopReason,
        ...(additionalModelResponseFields === undefined ? {} : { additionalModelResponseFields }),
      },
    },
    ...(usage === null ? [] : [{ metadata: { usage, metrics: { latencyMs: 700 }, ...rest } }]),
  ];
}

function blockEvents(block: JsonObject, contentBlockIndex: number): readonly JsonObject[] {
  const stop = { contentBlockStop: { contentBlockIndex } };
  const delta = (value: JsonObject): JsonObject => ({
    contentBlockDelta: { contentBlockIndex, delta: value },
  });
  const { text, toolUse, reasoningContent, citationsContent } = block;
  if (isObject(citationsContent)) {
    return [
      ...objects(citationsContent['content']).map((piece) => delta({ text: piece['text'] ?? '' })),
      ...objects(citationsContent['citations']).map((citation) => delta({ citation })),
      stop,
    ];
  }
  if (isObject(toolUse)) {
    const { input, ...start } = toolUse;
    const json = JSON.stringify(input);
    const half = Math.ceil(json.length / 2);
    return [
      { contentBlockStart: { contentBlockIndex, start: { toolUse: start } } },
      delta({ toolUse: { input: '' } }),
      delta({ toolUse: { input: json.slice(0, half) } }),
      delta({ toolUse: { input: json.slice(half) } }),
      stop,
    ];
  }
  if (isObject(reasoningContent)) {
    const { reasoningText, redactedContent } = reasoningContent;
    if (redactedContent !== undefined)
      return [delta({ reasoningContent: { redactedContent } }), stop];
    const told = isObject(reasoningText) ? reasoningText : {};
    const pieces = Object.entries(told)
      .flatMap(([name, value]) =>
        name === 'text' ? halves(String(value)).map((half) => ({ text: half })) : { [name]: value },
      )
      .map((piece) => delta({ reasoningContent: piece }));
    return [...pieces, stop];
  }
  return [delta({ text: text ?? '' }), stop];
}

export function streamOf(answer: ConverseAnswer = {}): Answer {
  return converseStream(eventsOf(answer));
}

// What the service refuses.

const members = {
  request:
    'messages system inferenceConfig toolConfig outputConfig additionalModelRequestFields additionalModelResponseFieldPaths guardrailConfig performanceConfig serviceTier requestMetadata',
  inferenceConfig: 'maxTokens temperature topP stopSequences',
  outputConfig: 'textFormat effort',
  toolConfig: 'tools toolChoice',
  message: 'role content',
  toolSpec: 'name description inputSchema strict',
  toolUse: 'toolUseId name input',
  toolResult: 'toolUseId content status',
  image: 'format source',
  document: 'format name source context citations',
  reasoningText: 'text signature',
} as const;

function known(value: JsonObject, kind: keyof typeof members): void {
  const allowed = new Set(members[kind].split(' '));
  for (const name of Object.keys(value)) {
    assert.ok(allowed.has(name), `extraneous key [${name}] in ${kind}: ${JSON.stringify(value)}`);
  }
}

function objects(value: Json | undefined): readonly JsonObject[] {
  if (value === undefined) return [];
  assert.ok(Array.isArray(value) && value.every(isObject), `no list: ${JSON.stringify(value)}`);
  return value;
}

function object(value: Json | undefined): JsonObject {
  assert.ok(isObject(value), `no object: ${JSON.stringify(value)}`);
  return value;
}

/** The name of the one member that a union has. */
function variant(value: JsonObject): string {
  const names = Object.keys(value);
  assert.equal(names.length, 1, `not one of a union: ${JSON.stringify(value)}`);
  return names[0] ?? '';
}

/** @throws AssertionError for a request that the service would answer with 400. */
export function assertTaken({ json }: Pick<Received, 'json'>): void {
  known(json, 'request');
  const messages = objects(json['messages']);
  assert.ok(messages.length > 0, 'messages is required');
  messages.forEach((message, i) => {
    known(message, 'message');
    assert.equal(message['role'], i % 2 === 0 ? 'user' : 'assistant', 'roles alternate');
    assertContent(objects(message['content']), String(message['role']));
  });
  assertPairs(messages);
  const system = objects(json['system']);
  assert.ok(json['system'] === undefined || system.length > 0, 'system is empty');
  for (const block of system) {
    const kind = variant(block);
    assert.ok(kind === 'text' || kind === 'cachePoint', kind);
    if (kind === 'text') assertText(block['text']);
  }
  assertTools(json, messages);
  assertConfig(json);
  assertPoints(json);
}

function assertText(text: Json | undefined): void {
  assert.ok(typeof text === 'string' && text.trim() !== '', 'The text field is blank');
}

function assertContent(blocks: readonly JsonObject[], role: string): void {
  assert.ok(blocks.length > 0, 'content is empty');
  const kinds = blocks.map(variant);
  blocks.forEach((block, i) => {
    const kind = kinds[i] ?? '';
    if (kind === 'cachePoint') {
      assert.ok(i > 0 && kinds[i - 1] !== 'cachePoint', 'a cache point marks what is before it');
      return;
    }
    const ofUser = ['text', 'image', 'document', 'audio', 'toolResult'];
    const ofModel = ['text', 'toolUse', 'reasoningContent'];
    assert.ok((role === 'user' ? ofUser : ofModel).includes(kind), `${kind} of ${role}`);
    assertBlock(kind, block[kind]);
  });
  if (!kinds.includes('document')) return;
  assert.ok(kinds.includes('text'), 'a document needs a text beside it');
  const first = kinds.findIndex((kind) => kind !== 'toolResult' && kind !== 'cachePoint');
  assert.ok(!kinds.slice(first).includes('toolResult'), 'results come first');
}

function assertBlock(kind: string, value: Json | undefined): void {
  if (kind === 'text') return assertText(value);
  const block = object(value);
  if (kind === 'image') {
    known(block, 'image');
    assert.match(String(block['format']), /^(png|jpeg|gif|webp)$/);
    assert.equal(variant(object(block['source'])), 'bytes');
  } else if (kind === 'audio') {
    known(block, 'image');
    assert.match(String(block['format']), /^(mp3|wav|opus|flac|aac|m4a|ogg|webm)$/);
    assert.equal(variant(object(block['source'])), 'bytes');
  } else if (kind === 'document') {
    known(block, 'document');
    assert.match(String(block['format']), /^(pdf|csv|docx?|xlsx?|html|txt|md)$/);
    const name = String(block['name']);
    assert.match(name, /^[A-Za-z0-9()[\]-]+( [A-Za-z0-9()[\]-]+)*$/);
    assert.ok(name.length <= 200, name);
    assert.match(variant(object(block['source'])), /^(bytes|text)$/);
    if (block['citations'] !== undefined) {
      assert.deepEqual(block['citations'], { enabled: true });
    }
  } else if (kind === 'toolUse') {
    known(block, 'toolUse');
    assert.match(String(block['toolUseId']), /^[a-zA-Z0-9_-]{1,64}$/);
    assert.match(String(block['name']), /^[a-zA-Z0-9_-]{1,64}$/);
    object(block['input']);
  } else if (kind === 'toolResult') {
    known(block, 'toolResult');
    const content = objects(block['content']);
    assert.ok(content.length > 0, 'The content field of a toolResult cannot be empty');
    for (const each of content) {
      const inner = variant(each);
      assert.match(inner, /^(text|image|document)$/);
      assertBlock(inner, each[inner]);
    }
  } else if (kind === 'reasoningContent') {
    if (variant(block) === 'redactedContent') return;
    const told = object(block['reasoningText']);
    known(told, 'reasoningText');
    assert.ok(typeof told['signature'] === 'string', 'reasoning without a signature');
  }
}

function blocksOf(message: JsonObject | undefined, kind: string): readonly JsonObject[] {
  return objects(message?.['content']).flatMap((block) => {
    const value = block[kind];
    return isObject(value) ? [value] : [];
  });
}

/** Each call has its result in the next message, in the order of the calls. */
function assertPairs(messages: readonly JsonObject[]): void {
  messages.forEach((message, i) => {
    const calls = blocksOf(message, 'toolUse').map(({ toolUseId }) => toolUseId);
    const results = blocksOf(messages[i + 1], 'toolResult').map(({ toolUseId }) => toolUseId);
    if (message['role'] === 'assistant') assert.deepEqual(results, calls);
  });
}

function assertTools(json: JsonObject, messages: readonly JsonObject[]): void {
  const used = messages.some((message) => blocksOf(message, 'toolUse').length > 0);
  if (json['toolConfig'] === undefined) {
    assert.ok(!used, 'The toolConfig field must be defined when using toolUse');
    return;
  }
  const config = object(json['toolConfig']);
  known(config, 'toolConfig');
  const names: string[] = [];
  for (const tool of objects(config['tools'])) {
    if (variant(tool) === 'cachePoint') continue;
    const spec = object(tool['toolSpec']);
    known(spec, 'toolSpec');
    names.push(String(spec['name']));
    assert.match(String(spec['name']), /^[a-zA-Z0-9_-]{1,64}$/);
    assert.notEqual(spec['description'], '');
    assert.equal(object(object(spec['inputSchema'])['json'])['type'], 'object');
  }
  assert.ok(names.length > 0 && new Set(names).size === names.length, names.join());
  if (config['toolChoice'] === undefined) return;
  const choice = object(config['toolChoice']);
  assert.match(variant(choice), /^(auto|any|tool)$/);
  if (isObject(choice['tool'])) assert.ok(names.includes(String(choice['tool']['name'])));
}

function assertConfig(json: JsonObject): void {
  const config = object(json['inferenceConfig'] ?? {});
  known(config, 'inferenceConfig');
  const { maxTokens, temperature = 0, topP = 0 } = config;
  const more = object(json['additionalModelRequestFields'] ?? {});
  const reasoning = isObject(more['reasoningConfig']) ? more['reasoningConfig'] : {};
  const unbounded = reasoning['maxReasoningEffort'] === 'high';
  assert.equal(typeof maxTokens === 'number' && maxTokens >= 1, !unbounded, 'maxTokens');
  assert.ok(Number(temperature) >= 0 && Number(temperature) <= 1, 'temperature');
  assert.ok(Number(topP) >= 0 && Number(topP) <= 1, 'topP');
  if (json['outputConfig'] === undefined) return;
  const output = object(json['outputConfig']);
  known(output, 'outputConfig');
  if (output['textFormat'] === undefined) return;
  const format = object(output['textFormat']);
  assert.equal(format['type'], 'json_schema');
  const { schema } = object(object(format['structure'])['jsonSchema']);
  assert.ok(typeof schema === 'string', 'the schema is text');
  assert.equal(object(JSON.parse(schema) as Json)['additionalProperties'], false);
}

/** At most four, and none for an hour behind one for five minutes. */
function assertPoints(json: JsonObject): void {
  const tools = isObject(json['toolConfig']) ? objects(json['toolConfig']['tools']) : [];
  const messages = objects(json['messages']).flatMap(({ content }) => objects(content));
  const points = [...tools, ...objects(json['system']), ...messages].flatMap(({ cachePoint }) =>
    isObject(cachePoint) ? [cachePoint] : [],
  );
  assert.ok(points.length <= 4, 'too many cache points');
  const ttls = points.map(({ ttl }) => ttl ?? '5m');
  assert.ok(!ttls.slice(ttls.indexOf('5m')).includes('1h') || !ttls.includes('5m'), ttls.join());
}
