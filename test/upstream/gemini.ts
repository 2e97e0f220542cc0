/**
 * The Gemini API as it answers, and the rules by which it refuses a request, written from wire/gemini.md and not from the
 * gateway's own writer.
 */
import assert from 'node:assert/strict';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import type { Answer, Received } from './scripted.ts';

// Answers.

export interface GeminiAnswer {
  readonly parts?: readonly JsonObject[];
  readonly finishReason?: string;
  /** Beside the parts. */
  readonly candidate?: JsonObject;
  readonly usage?: JsonObject | null;
  readonly more?: JsonObject;
}

export const usualUsage: JsonObject = {
  promptTokenCount: 12,
  candidatesTokenCount: 5,
  totalTokenCount: 17,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: 12 }],
};

let answers = 0;

/** A whole response object. */
export function geminiDocument({
  parts = [{ text: 'ok' }],
  finishReason = 'STOP',
  candidate = {},
  usage = usualUsage,
  more = {},
}: GeminiAnswer = {}): JsonObject {
  answers += 1;
  return {
    candidates: [{ content: { role: 'model', parts }, finishReason, index: 0, ...candidate }],
    ...(usage === null ? {} : { usageMetadata: usage }),
    modelVersion: 'gemini-made',
    responseId: `made-response-${answers}`,
    ...more,
  };
}

export function geminiAnswer(answer: GeminiAnswer = {}): Answer {
  return { body: JSON.stringify(geminiDocument(answer)) };
}

/** A response object of a stream, with parts that go on. */
export function geminiChunk(parts: readonly JsonObject[]): JsonObject {
  return { candidates: [{ content: { role: 'model', parts }, index: 0 }] };
}

export function geminiFrame(chunk: JsonObject): string {
  return `data: ${JSON.stringify(chunk)}\r\n\r\n`;
}

/** A stream of response objects as it stands on the wire. */
export function geminiStream(chunks: readonly JsonObject[]): Answer {
  return { body: chunks.map(geminiFrame), framing: 'chunked' };
}

/** The same answer as a stream: each part by itself, the finish with the last one. */
export function streamOf(answer: GeminiAnswer): Answer {
  const whole = geminiDocument(answer);
  const { parts = [{ text: 'ok' }], finishReason = 'STOP', candidate = {}, usage } = answer;
  const { responseId, modelVersion } = whole;
  const identity = { responseId: responseId ?? null, modelVersion: modelVersion ?? null };
  const all = parts.length === 0 ? [undefined] : parts;
  return geminiStream(
    all.map((part, i) => {
      const content = { role: 'model', parts: part === undefined ? [] : [part] };
      const last = i === all.length - 1;
      const ending = last ? { finishReason, ...candidate } : {};
      return {
        candidates: [{ content, index: 0, ...ending }],
        ...(usage === null ? {} : { usageMetadata: usage ?? usualUsage }),
        ...identity,
        ...(last ? answer.more : {}),
      };
    }),
  );
}

/** The words of statuses (google.rpc.Code). */
const statusWords: { readonly [status: number]: string } = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

/** An error as it stands in an answer. */
export function geminiErrorBody(message: string, code: number): JsonObject {
  return { error: { code, message, status: statusWords[code] ?? 'UNKNOWN' } };
}

export function geminiError(message: string, code: number): string {
  return JSON.stringify(geminiErrorBody(message, code));
}

// What the service refuses.

const members = {
  request:
    'contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent serviceTier store continuationToken',
  config:
    'maxOutputTokens temperature topP topK stopSequences seed presencePenalty frequencyPenalty candidateCount responseMimeType responseSchema responseJsonSchema responseModalities thinkingConfig mediaResolution',
  content: 'role parts',
  part: 'text inlineData fileData functionCall functionResponse executableCode codeExecutionResult thought thoughtSignature',
  inlineData: 'mimeType data displayName',
  fileData: 'mimeType fileUri displayName',
  functionCall: 'name args id',
  functionResponse: 'name response id parts',
  tool: 'functionDeclarations googleSearch urlContext codeExecution',
  declaration: 'name description parameters parametersJsonSchema',
  toolConfig: 'functionCallingConfig includeServerSideToolInvocations',
  callingConfig: 'mode allowedFunctionNames',
  thinking: 'thinkingBudget thinkingLevel includeThoughts',
  schema:
    'type format title description nullable enum items minItems maxItems properties required minProperties maxProperties minimum maximum minLength maxLength pattern anyOf default example propertyOrdering',
} as const;

/** "Unknown name … Cannot find field." */
function known(value: JsonObject, kind: keyof typeof members): void {
  const allowed = new Set(members[kind].split(' '));
  for (const name of Object.keys(value)) {
    assert.ok(allowed.has(name), `Unknown name "${name}" in ${kind}: ${JSON.stringify(value)}`);
  }
}

function objects(value: Json | undefined): readonly JsonObject[] {
  if (value === undefined) return [];
  assert.ok(Array.isArray(value) && value.every(isObject), `no list: ${JSON.stringify(value)}`);
  return value;
}

function object(value: Json | undefined): JsonObject | undefined {
  assert.ok(value === undefined || isObject(value), `no object: ${JSON.stringify(value)}`);
  return value;
}

/** @throws AssertionError for a request that the service would answer with 400. */
export function assertTaken({ json, path }: Pick<Received, 'json' | 'path'>): void {
  known(json, 'request');
  const model = /models\/([^:]+):/.exec(path)?.[1] ?? '';
  const contents = objects(json['contents']);
  assert.ok(contents.length > 0, 'contents is required');
  for (const content of contents) assertContent(content);
  assertPairs(contents);
  if (/gemini-[3-9]/.test(model)) assertSigned(contents);
  const system = object(json['systemInstruction']);
  if (system !== undefined) {
    assert.ok(!/gemma/.test(model), 'Developer instruction is not enabled');
    known(system, 'content');
    for (const part of objects(system['parts'])) assertPart(part);
  }
  assertTools(json);
  const config = object(json['generationConfig']);
  if (config !== undefined) assertConfig(config, model);
}

function assertContent(content: JsonObject): void {
  known(content, 'content');
  assert.ok(content['role'] === 'user' || content['role'] === 'model', 'Please use a valid role');
  const parts = objects(content['parts']);
  assert.ok(parts.length > 0, 'parts must not be empty');
  for (const part of parts) assertPart(part);
}

const data = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse'] as const;

function assertPart(part: JsonObject): void {
  known(part, 'part');
  const held = data.filter((name) => part[name] !== undefined);
  assert.equal(
    held.length,
    1,
    `required oneof field 'data' must have one: ${JSON.stringify(part)}`,
  );
  for (const name of ['inlineData', 'fileData', 'functionCall', 'functionResponse'] as const) {
    const value = object(part[name]);
    if (value !== undefined) known(value, name);
  }
  const inline = object(part['inlineData']);
  if (inline !== undefined) assert.match(String(inline['data']), /^[A-Za-z0-9+/]+={0,2}$/);
  const response = object(part['functionResponse']);
  if (response !== undefined) {
    assert.ok(isObject(response['response']), 'response must be a struct');
    for (const each of objects(response['parts'])) assertPart(each);
  }
  const signature = part['thoughtSignature'];
  assert.ok(signature === undefined || typeof signature === 'string', 'a signature is text');
}

function callsIn(content: JsonObject): readonly JsonObject[] {
  return objects(content['parts']).filter((part) => part['functionCall'] !== undefined);
}

function resultsIn(content: JsonObject | undefined): readonly JsonObject[] {
  return objects(content?.['parts']).filter((part) => part['functionResponse'] !== undefined);
}

/** A turn with n calls is followed at once by a turn of n results of the same names, and of nothing else. */
function assertPairs(contents: readonly JsonObject[]): void {
  contents.forEach((content, i) => {
    const results = resultsIn(content);
    const before = contents[i - 1];
    const asked = before === undefined ? [] : callsIn(before);
    if (results.length > 0) {
      assert.equal(results.length, objects(content['parts']).length, 'results stand alone');
      assert.equal(results.length, asked.length, 'number of function response parts');
    }
    const calls = callsIn(content);
    if (calls.length === 0) return;
    const answers = resultsIn(contents[i + 1]);
    assert.equal(answers.length, calls.length, 'a response turn comes immediately after');
    const nameOf = (part: JsonObject, kind: string): unknown => object(part[kind])?.['name'];
    assert.deepEqual(
      answers.map((part) => nameOf(part, 'functionResponse')),
      calls.map((part) => nameOf(part, 'functionCall')),
    );
  });
}

/** Gemini 3: the first call of each step of the turn that is going on. */
function assertSigned(contents: readonly JsonObject[]): void {
  const asked = contents.findLastIndex(
    (content) => content['role'] === 'user' && resultsIn(content).length === 0,
  );
  for (const content of contents.slice(asked + 1)) {
    const [first, ...others] = callsIn(content);
    if (first === undefined) continue;
    assert.ok(
      typeof first['thoughtSignature'] === 'string',
      `Function call is missing a thought_signature: ${JSON.stringify(first)}`,
    );
    for (const other of others) assert.equal(other['thoughtSignature'], undefined, 'a sibling');
  }
}

function assertTools(json: JsonObject): void {
  const tools = objects(json['tools']);
  for (const tool of tools) {
    known(tool, 'tool');
    for (const declared of objects(tool['functionDeclarations'])) assertDeclared(declared);
  }
  const withFunctions = tools.filter((tool) => tool['functionDeclarations'] !== undefined);
  assert.ok(withFunctions.length <= 1, 'functions stand in one entry');
  const config = object(json['toolConfig']);
  if (config === undefined) return;
  known(config, 'toolConfig');
  const calling = object(config['functionCallingConfig']);
  if (calling === undefined) return;
  known(calling, 'callingConfig');
  assert.match(String(calling['mode']), /^(AUTO|ANY|NONE|VALIDATED)$/);
  if (calling['allowedFunctionNames'] !== undefined) {
    assert.match(String(calling['mode']), /^(ANY|VALIDATED)$/, 'names are for ANY and VALIDATED');
  }
}

function assertDeclared(declared: JsonObject): void {
  known(declared, 'declaration');
  assert.match(String(declared['name']), /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/);
  assert.equal(typeof declared['description'], 'string', 'a description is required');
  const { parameters, parametersJsonSchema } = declared;
  assert.ok(parameters === undefined || parametersJsonSchema === undefined, 'one of the two');
  if (isObject(parameters)) assertSchema(parameters);
}

/** The subset of OpenAPI. */
function assertSchema(schema: JsonObject): void {
  known(schema, 'schema');
  const { type, properties, items, anyOf } = schema;
  assert.ok(type === undefined || typeof type === 'string', 'Proto field is not repeating');
  if (isObject(properties)) {
    assert.ok(Object.keys(properties).length > 0, 'should be non-empty for OBJECT type');
    for (const each of Object.values(properties)) if (isObject(each)) assertSchema(each);
  }
  if (type === 'array') assert.ok(isObject(items), 'items: missing field');
  if (isObject(items)) assertSchema(items);
  for (const each of objects(anyOf)) assertSchema(each);
}

function assertConfig(config: JsonObject, model: string): void {
  known(config, 'config');
  const { responseSchema, responseJsonSchema, responseMimeType, seed } = config;
  if (isObject(responseSchema)) assertSchema(responseSchema);
  if (responseSchema !== undefined || responseJsonSchema !== undefined) {
    assert.equal(responseMimeType, 'application/json');
  }
  if (typeof seed === 'number') assert.ok(Math.abs(seed) <= 0x7fff_ffff, 'int32');
  const stops = config['stopSequences'];
  assert.ok(stops === undefined || (Array.isArray(stops) && stops.length <= 5), 'at most 5');
  const thinking = object(config['thinkingConfig']);
  if (thinking === undefined) return;
  known(thinking, 'thinking');
  const { thinkingBudget: budget, thinkingLevel: level } = thinking;
  assert.ok(budget === undefined || level === undefined, 'one of budget and level');
  if (level !== undefined) {
    assert.match(model, /gemini-([3-9]|made)/, 'Thinking level is not supported for this model');
    // Both ways of writing are taken: the types have capitals, the documents' examples small letters.
    assert.match(String(level), /^(minimal|low|medium|high)$/i);
  }
}
