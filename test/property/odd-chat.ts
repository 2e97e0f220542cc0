/** Chat streams as the worst of the real servers send them, and what each of them says. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import type { Json, JsonObject } from '../../src/json/value.ts';
import type { Seen, SeenCall, SeenUsage } from '../support/reading.ts';
import { text } from './arbitraries.ts';
import type { SentEvent } from './framing.ts';

/** How a server identifies its calls (B6, B10, F59). */
const idStyles = [
  'usual',
  'everywhere',
  'index 0',
  'no index',
  'no id',
  'late id',
  'same id',
  'gaps',
] as const;
type IdStyle = (typeof idStyles)[number];

/** Where a server puts its usage (E7). */
const usagePlaces = [
  'own chunk',
  'finish chunk',
  'every chunk',
  'x_groq',
  'no choices',
  'empty delta',
  'before the finish',
] as const;
type UsagePlace = (typeof usagePlaces)[number];

interface PlannedCall {
  readonly name: string;
  /** `''` = the server sends none. */
  readonly json: string;
  /** The sizes of the fragments, repeated. */
  readonly sizes: readonly number[];
}

type Segment =
  | {
      readonly kind: 'reasoning' | 'text';
      readonly text: string;
      readonly sizes: readonly number[];
    }
  | {
      readonly kind: 'calls';
      readonly calls: readonly PlannedCall[];
      readonly order: readonly number[];
    };

export interface OddChat {
  readonly segments: readonly Segment[];
  readonly idStyle: IdStyle;
  readonly usagePlace: UsagePlace;
  readonly usage: SeenUsage;
  readonly reasoningField: 'reasoning_content' | 'reasoning';
  /** The first piece of each segment rides on the last chunk of the one before. */
  readonly crowded: boolean;
  readonly finish: 'natural' | 'stop' | 'length';
  /** A second finish reason behind the first. */
  readonly finishAgain: boolean;
  /** The finish rides on the last content chunk. */
  readonly finishEarly: boolean;
  readonly roleOnAll: boolean;
  readonly doneMark: boolean;
}

const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 3 });
const name = fc.stringMatching(/^[a-z][a-zA-Z0-9_-]{0,12}$/);
const argumentsJson = fc.oneof(
  fc.constantFrom('', '{}', '{"你好":"🦀"}', '{"a":{"b":[1,"}{"]}}'),
  fc
    .dictionary(name, fc.oneof(text, fc.nat()), { maxKeys: 3 })
    .map((value) => JSON.stringify(value)),
);
const spoken = fc.oneof(text, fc.constantFrom('\n', ' ', '你好🦀', '</think>', 'data: [DONE]\n\n'));

const segment: fc.Arbitrary<Segment> = fc.oneof(
  fc.record({ kind: fc.constantFrom('reasoning', 'text'), text: spoken, sizes }),
  fc.record({
    kind: fc.constant('calls'),
    calls: fc.array(fc.record({ name, json: argumentsJson, sizes }), {
      minLength: 1,
      maxLength: 3,
    }),
    order: fc.array(fc.nat({ max: 2 }), { maxLength: 12 }),
  }),
);

const tokens = fc.nat({ max: 5000 });

export const oddChat: fc.Arbitrary<OddChat> = fc.record({
  segments: fc.array(segment, { minLength: 1, maxLength: 5 }),
  idStyle: fc.constantFrom(...idStyles),
  usagePlace: fc.constantFrom(...usagePlaces),
  usage: fc
    .record({
      fresh: fc.integer({ min: 1, max: 5000 }),
      cacheRead: tokens,
      cacheWrite: tokens,
      visible: tokens,
      reasoning: tokens,
    })
    .map(({ visible, ...counts }) => ({ ...counts, output: visible + counts.reasoning })),
  reasoningField: fc.constantFrom('reasoning_content', 'reasoning'),
  crowded: fc.boolean(),
  finish: fc.constantFrom('natural', 'stop', 'length'),
  finishAgain: fc.boolean(),
  finishEarly: fc.boolean(),
  roleOnAll: fc.boolean(),
  doneMark: fc.boolean(),
});

function cut(value: string, sizes: readonly number[]): readonly string[] {
  const pieces: string[] = [];
  // By code units: a pair may be cut in half, as servers that count in UTF-16 do.
  for (let at = 0, n = 0; at < value.length; n += 1) {
    const size = sizes[n % sizes.length] ?? 1;
    pieces.push(value.slice(at, at + size));
    at += size;
  }
  return pieces;
}

/** Calls of all segments in order of appearance, as the reader must number them. */
export function plannedCalls(plan: OddChat): readonly PlannedCall[] {
  return plan.segments.flatMap((each) => (each.kind === 'calls' ? each.calls : []));
}

function idOf(style: IdStyle, at: number): string {
  if (style === 'no id') return '';
  return style === 'same id' ? 'call_same' : `call_${at}`;
}

/** The fragments of one call, each a `tool_calls` entry. */
function fragmentsOf(call: PlannedCall, at: number, style: IdStyle): readonly JsonObject[] {
  const index = style === 'index 0' ? 0 : style === 'gaps' ? 2 * at + 1 : at;
  const place = style === 'no index' ? {} : { index };
  const id = idOf(style, at);
  const often = style === 'everywhere' || style === 'index 0' || style === 'no index';
  const pieces = cut(call.json, call.sizes);
  const identity = { ...place, ...(id === '' ? {} : { id }), type: 'function' };
  const first: JsonObject =
    style === 'late id'
      ? { ...place, type: 'function', function: { name: call.name, arguments: '' } }
      : { ...identity, function: { name: call.name, arguments: pieces[0] ?? '' } };
  const rest = (style === 'late id' ? pieces : pieces.slice(1)).map((piece, n): JsonObject => {
    if (style === 'late id' && n === 0) return { ...identity, function: { arguments: piece } };
    const called = { ...(style === 'everywhere' ? { name: call.name } : {}), arguments: piece };
    return { ...(often ? identity : place), function: called };
  });
  return [first, ...rest];
}

/** Fragments of several calls, interleaved as `order` says; a call's own stay in order. */
function interleave(
  queues: readonly JsonObject[][],
  order: readonly number[],
): readonly JsonObject[] {
  const out: JsonObject[] = [];
  // Servers start their calls one after the other, whatever comes then.
  for (const queue of queues) out.push(...queue.splice(0, 1));
  for (const pick of order) out.push(...(queues[pick % queues.length] ?? []).splice(0, 1));
  return [...out, ...queues.flat()];
}

/** Deltas of the whole answer, in the order that they are sent. */
function deltasOf(plan: OddChat): readonly JsonObject[] {
  let at = 0;
  const groups = plan.segments.map((each): JsonObject[] => {
    if (each.kind === 'calls') {
      const queues = each.calls.map((call) => [...fragmentsOf(call, at++, plan.idStyle)]);
      // Without ids or with one index for all, only what is not interleaved can be told apart.
      const order = plan.idStyle === 'index 0' || plan.idStyle === 'no index' ? [] : each.order;
      const entries = order.length === 0 ? queues.flat() : interleave(queues, order);
      return entries.map((entry): JsonObject => ({ tool_calls: [entry] }));
    }
    const field = each.kind === 'text' ? 'content' : plan.reasoningField;
    return cut(each.text, each.sizes).map((piece): JsonObject => ({ [field]: piece }));
  });
  if (!plan.crowded) return groups.flat();
  const crowded: JsonObject[] = [];
  for (const group of groups) {
    const [first = {}, ...rest] = group;
    const before = crowded.at(-1);
    if (before !== undefined && followsWithin(before, first)) {
      crowded[crowded.length - 1] = { ...before, ...first };
    } else crowded.push(first);
    crowded.push(...rest);
  }
  return crowded;
}

const rank: { readonly [key: string]: number } = {
  reasoning_content: 0,
  reasoning: 0,
  content: 1,
  tool_calls: 2,
};

/** A reader takes a delta's members in this order, so only so they can ride together. */
function followsWithin(before: JsonObject, next: JsonObject): boolean {
  const highest = Math.max(...Object.keys(before).map((key) => rank[key] ?? 0));
  return Object.keys(next).every((key) => (rank[key] ?? 0) > highest);
}

export function chatUsage({
  fresh,
  cacheRead,
  cacheWrite,
  output,
  reasoning,
}: SeenUsage): JsonObject {
  const prompt = fresh + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

function finishWord(plan: OddChat): string {
  if (plan.finish !== 'natural') return plan.finish;
  return plannedCalls(plan).length > 0 ? 'tool_calls' : 'stop';
}

const head = { id: 'chatcmpl-odd', object: 'chat.completion.chunk', created: 7, model: 'up' };

/** The events of the stream. */
export function oddEvents(plan: OddChat): readonly SentEvent[] {
  const usage = chatUsage(plan.usage);
  const chunk = (delta: JsonObject, finish: string | null = null, more: JsonObject = {}) => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  });
  const role = { role: 'assistant' };
  const deltas = deltasOf(plan).map((delta, n) =>
    n === 0 || plan.roleOnAll ? { ...role, ...delta } : delta,
  );
  const finish = finishWord(plan);
  const chunks: JsonObject[] = deltas.map((delta) => chunk(delta));
  if (plan.usagePlace === 'before the finish') chunks.push({ ...head, choices: [], usage });
  const carried: JsonObject =
    plan.usagePlace === 'finish chunk'
      ? { usage }
      : plan.usagePlace === 'x_groq'
        ? { x_groq: { id: 'req', usage } }
        : {};
  const last = deltas.at(-1);
  if (plan.finishEarly && last !== undefined && plan.usagePlace !== 'before the finish') {
    chunks[chunks.length - 1] = chunk(last, finish, carried);
  } else chunks.push(chunk({}, finish, carried));
  if (plan.finishAgain) chunks.push(chunk({}, 'length'), chunk({}, 'stop'));
  if (plan.usagePlace === 'own chunk') chunks.push({ ...head, choices: [], usage });
  if (plan.usagePlace === 'no choices') {
    const { choices: _choices, ...bare } = chunk({});
    chunks.push({ ...bare, usage });
  }
  if (plan.usagePlace === 'empty delta')
    chunks.push({ ...head, choices: [{ index: 0, delta: {} }], usage });
  const told =
    plan.usagePlace === 'every chunk'
      ? chunks.map((each, n) => growing(each, usage, chunks.length - 1 - n))
      : chunks;
  const events: SentEvent[] = told.map((data) => ({ data }));
  return plan.doneMark ? [...events, { data: '[DONE]' }] : events;
}

/** Running totals: each chunk has its own report, only the last one is right. */
function growing(chunk: JsonObject, usage: JsonObject, left: number): JsonObject {
  if (left === 0) return { ...chunk, usage };
  return {
    ...chunk,
    usage: {
      prompt_tokens: usage['prompt_tokens'] ?? 0,
      completion_tokens: 0,
      total_tokens: usage['prompt_tokens'] ?? 0,
    },
  };
}

/** The same answer as a document. */
export function oddDocument(plan: OddChat): JsonObject {
  const said = (kind: 'text' | 'reasoning'): string =>
    plan.segments.map((each) => (each.kind === kind ? each.text : '')).join('');
  const calls = plannedCalls(plan).map((call, at): JsonObject => {
    const id = idOf(plan.idStyle, at);
    const called = { name: call.name, arguments: call.json };
    return { ...(id === '' ? {} : { id }), type: 'function', function: called };
  });
  const message = {
    role: 'assistant',
    content: said('text') === '' ? null : said('text'),
    ...(said('reasoning') === '' ? {} : { [plan.reasoningField]: said('reasoning') }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  const choice = { index: 0, message, finish_reason: finishWord(plan) };
  return { ...head, object: 'chat.completion', choices: [choice], usage: chatUsage(plan.usage) };
}

/** The contents of the answer in any spelling. Ids are the gateway's business where they are odd. */
export function seenOf(plan: OddChat): Omit<Seen, 'model'> {
  const said = (kind: 'text' | 'reasoning'): string =>
    plan.segments.map((each) => (each.kind === kind ? each.text : '')).join('');
  const calls = plannedCalls(plan).map((call, at): SeenCall => {
    const value: Json = call.json === '' ? {} : JSON.parse(call.json);
    return { id: idOf(plan.idStyle, at), name: call.name, arguments: value };
  });
  return {
    text: said('text'),
    reasoning: said('reasoning'),
    calls,
    finish: plan.finish === 'length' ? 'length' : calls.length > 0 ? 'tools' : 'stop',
    usage: plan.usage,
  };
}

/** White space between other parts may be dropped (C2); whatever else was said must be there. */
export function assertSame(
  found: Seen,
  plan: OddChat,
  where: string,
  expected: Omit<Seen, 'model'> = seenOf(plan),
): void {
  const { model: _model, ...seen } = found;
  const spaced = plan.segments.some((each) => each.kind !== 'calls' && each.text.trim() === '');
  const plain = (value: string): string => (spaced ? value.replace(/\s+/g, '') : value);
  assert.equal(plain(seen.text), plain(expected.text), where);
  // Blocks of reasoning that something stands between are parted by an empty line in chat.
  const joined = (value: string): string => plain(value).replaceAll('\n\n', '');
  assert.equal(joined(seen.reasoning), joined(expected.reasoning), where);
  const odd = plan.idStyle === 'no id' || plan.idStyle === 'same id' || plan.idStyle === 'late id';
  const calls = (list: Seen['calls']): unknown =>
    list.map(({ id, ...call }) => (odd ? call : { id, ...call }));
  assert.deepEqual(calls(seen.calls), calls(expected.calls), where);
  assert.equal(seen.finish, expected.finish, where);
  assert.deepEqual(seen.usage, expected.usage, where);
}

/** Ids of the gateway's own are there and unique. */
export function assertIds(found: Seen, where: string): void {
  const ids = new Set(found.calls.map((call) => call.id));
  assert.ok(
    ids.size === found.calls.length && !ids.has(''),
    `B6: ids are there and unique: ${where}`,
  );
}
