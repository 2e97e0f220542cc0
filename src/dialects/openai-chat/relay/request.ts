/**
 * Relays requests: the client's bytes, changed only in members that this upstream would refuse.
 * The keys of the top level decide which rules apply, so that a request that fits is not examined further.
 */
import type { JsonSource } from '../../../core/client-body.ts';
import { type Ask, plannedStops } from '../../../core/dialect.ts';
import { NoteList, type Notes } from '../../../core/notes.ts';
import { type JsonEdit, editJson } from '../../../json/edit.ts';
import { tryParse } from '../../../json/parse.ts';
import type { Pieces } from '../../../json/pieces.ts';
import { type Json, type JsonObject, isObject, isArray } from '../../../json/value.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { autoMarkEdits } from '../../shared/request/auto-marks.ts';
import { cleanSchema } from '../../shared/request/tool-schema.ts';
import { messageEdits } from './messages.ts';
import { reasoningMembers, relayReasoning } from './reasoning.ts';
import { relayTools, toolMembers } from './tools.ts';
import { Relayed } from './edits.ts';
import { stopsOf } from '../request/read.ts';
import { jsonInstruction } from '../../shared/request/offered-tools.ts';
import { foreignMembers } from '../shape.ts';

/** The client's bytes, asking for this target's model and, in streams, always for usage. */
export function relayRequest(source: JsonSource, ask: Ask, notes: Notes = new NoteList()): Pieces {
  const request = new Relayed(source, ask, notes);
  ownEdits(request);
  memberEdits(request);
  const messages = withInstruction(request, messageEdits(source, ask, notes));
  const marks = autoMarkEdits(source, ask);
  const isShort = marks.length + messages.length === 0;
  return editJson(source, isShort ? request.edits : [...marks, ...request.edits, ...messages]);
}

/** Members that the gateway decides on: model, stream and usage report. */
function ownEdits(request: Relayed): void {
  const { skeleton, ask, edits } = request;
  if (skeleton['model'] !== ask.model) request.put(['model'], ask.model);
  // The client gets what it requested, whatever is requested of the upstream.
  const asksStream = skeleton['stream'] === true;
  if (ask.stream !== asksStream) request.put(['stream'], ask.stream);
  if (ask.traits.streams === 'only' && !asksStream) relayCollected(request);
  const options = skeleton['stream_options'];
  if (!ask.traits.usageOption || (asksStream && !ask.stream)) {
    // A server without the option refuses the whole request over it, as others do without a stream.
    if (options !== undefined) edits.push({ path: ['stream_options'], text: undefined });
  } else if (ask.stream && !isObject(options)) {
    request.put(['stream_options'], { include_usage: true });
  } else if (ask.stream && isObject(options) && options['include_usage'] !== true) {
    request.put(['stream_options', 'include_usage'], true);
  }
}

/** What the document lacks that is put together of a stream, where the provider answers in streams only. */
function relayCollected(request: Relayed): void {
  const { skeleton, traits } = request;
  const choices = request.value('n');
  if (typeof choices === 'number' && choices > 1) {
    request.refuse(['n'], 'This model gives several answers in streams only.');
  }
  const modalities = request.value('modalities');
  if (Array.isArray(modalities) && modalities.includes('audio')) {
    request.refuse(['modalities'], 'This model gives spoken answers in streams only.');
  }
  // `relayStop` drops them, too.
  if (plannedStops(stopsOf(skeleton), traits).scanned.length > 0) return;
  for (const key of ['logprobs', 'top_logprobs']) {
    if (!isRefused(key, request)) request.drop(key, 'the model answers in streams only');
  }
}

// The top level of a relayed request, by one table: which members a target does not take, has another
// name for, or takes with other values. What is known of the target are its traits; a server that no row describes
// gets all members unchanged, until it refuses one.

const capFields = ['max_completion_tokens', 'max_tokens'] as const;

/** The edit of some members; computed once for a request that has one of them. */
interface Rule {
  /** Its bit in the set of applied rules. */
  readonly bit: number;
  readonly members: readonly string[];
  readonly apply: (request: Relayed) => void;
}

const cap: Rule = { bit: 1, members: capFields, apply: relayCap };
const reasoning: Rule = { bit: 2, members: reasoningMembers, apply: relayReasoning };

const rules: readonly Rule[] = [
  cap,
  reasoning,
  { bit: 4, members: ['temperature', 'top_p', 'top_k'], apply: relaySampling },
  { bit: 8, members: ['seed', 'random_seed'], apply: relaySeed },
  { bit: 16, members: ['stop'], apply: relayStop },
  { bit: 32, members: ['user', 'safety_identifier'], apply: relayEndUser },
  { bit: 64, members: ['response_format'], apply: relayFormat },
  { bit: 128, members: toolMembers, apply: relayTools },
];

const ruleOf: ReadonlyMap<string, Rule> = new Map(
  rules.flatMap((rule) => rule.members.map((member) => [member, rule] as const)),
);

/** The edits of the top level, tools and reasoning included. */
function memberEdits(request: Relayed): void {
  const { source, traits, ask } = request;
  /** Bits of the rules. */
  let applied = 0;
  for (const key of source.spans.keys()) {
    const rule = ruleOf.get(key);
    if (isRefused(key, request)) {
      request.dropRefused(key);
    } else if (rule !== undefined && (applied & rule.bit) === 0) {
      applied |= rule.bit;
      rule.apply(request);
    }
  }
  if (ask.maxOutputTokens !== undefined && (applied & cap.bit) === 0) relayCap(request);
  // Its models reason unless the request turns it off, and refuse tools then.
  if (traits.toolsExcludeReasoning === true && (applied & reasoning.bit) === 0) {
    relayReasoning(request);
  }
}

function isRefused(key: string, request: Relayed): boolean {
  const { refuses, extensions } = request.traits;
  if (refuses?.includes(key) === true) return true;
  // A rule says the value in another way. There is none of a null, which is refused by its name all the same.
  const ruled = ruleOf.has(key) && request.value(key) !== undefined;
  if (extensions === undefined || ruled) return false;
  return foreignMembers.has(key) && !extensions.includes(key);
}

/** The cap in the client's own spelling, unless the upstream has one that it does not share. */
function relayCap(request: Relayed): void {
  const { traits, ask } = request;
  const { maxTokensField: field } = traits;
  if (traits.oneCapField === true) dropEmptyCap(request);
  if (keepsCap(request)) return;
  const sent = capFields.filter((each) => typeof request.value(each) === 'number');
  const [first] = sent;
  const value = ask.maxOutputTokens ?? (first === undefined ? undefined : request.value(first));
  if (value === undefined) return;
  const other = sent.find((each) => each !== field);
  const renames = traits.oneCapField === true || (traits.known === true && sent.length > 1);
  if (other !== undefined && renames) {
    request.edits.push({ path: [other], text: undefined });
    request.notes.changed([other], `sent as ${field}, the name that the model has for it`);
  }
  const kept = renames || first === undefined ? [field] : sent;
  for (const each of kept) if (request.value(each) !== value) request.put([each], value);
}

/** The client's own cap, in one spelling that the upstream knows: nothing is to be changed. */
function keepsCap(request: Relayed): boolean {
  const { traits, ask } = request;
  if (ask.maxOutputTokens !== undefined) return false;
  if (request.value(foreignCap(traits)) === undefined) return true;
  return traits.oneCapField !== true && request.value(traits.maxTokensField) === undefined;
}

/** The name that the upstream does not know. */
function foreignCap({ maxTokensField }: UpstreamTraits): (typeof capFields)[number] {
  return maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
}

/** A null under the name that the upstream does not know. */
function dropEmptyCap(request: Relayed): void {
  const other = foreignCap(request.traits);
  if (request.value(other) !== undefined) return;
  request.drop(other, 'the model has another name for it');
}

function relaySampling(request: Relayed): void {
  const { traits } = request;
  const topK = request.value('top_k');
  if (topK !== undefined && traits.known === true && !traits.topK) {
    request.drop('top_k', 'the model does not know it');
  }
  if (!traits.samplingAllowed) {
    for (const key of ['temperature', 'top_p']) {
      request.drop(key, 'the model takes no sampling parameters');
    }
    return;
  }
  if (traits.temperatureExcludesTopP !== true) return;
  const [temperature, topP] = [request.value('temperature'), request.value('top_p')];
  if (temperature === undefined || topP === undefined) return;
  // The temperature stays, unless it says the default.
  const dropped = temperature === 1 && topP !== 1 ? 'temperature' : 'top_p';
  request.drop(dropped, 'the model takes it or temperature, not both');
}

function relaySeed(request: Relayed): void {
  const { traits } = request;
  const { seedField = 'seed' } = traits;
  for (const key of ['seed', 'random_seed']) {
    if (!traits.seed) request.drop(key, 'the model takes no seed');
    else if (key === seedField || traits.known !== true) continue;
    else if (request.value(seedField) === undefined) request.rename(key, seedField);
    else request.drop(key, `${seedField} is there as well`);
  }
}

/** Sequences that are not sent upstream are searched for in the answer (core/dialect.ts). */
function relayStop(request: Relayed): void {
  const { native, scanned } = plannedStops(stopsOf(request.skeleton), request.traits);
  if (scanned.length === 0) return;
  const choices = request.value('n');
  if (typeof choices === 'number' && choices > 1) {
    request.refuse(['stop'], 'This model does not take these stop sequences for several answers.');
  }
  const modalities = request.value('modalities');
  if (Array.isArray(modalities) && modalities.includes('audio')) {
    request.refuse(['stop'], 'This model does not take these stop sequences for spoken answers.');
  }
  request.edits.push({
    path: ['stop'],
    text: native.length === 0 ? undefined : JSON.stringify(native),
  });
  request.notes.changed(['stop'], 'the gateway looks for it in the answer, which it ends there');
  for (const key of ['logprobs', 'top_logprobs']) {
    if (isRefused(key, request)) continue;
    request.drop(key, 'the answer is cut by the gateway, which does not tell them');
  }
}

function relayEndUser(request: Relayed): void {
  const { endUserField, known } = request.traits;
  if (endUserField === undefined) {
    for (const key of ['user', 'safety_identifier']) {
      request.drop(key, 'the provider takes no id of the end user');
    }
  } else if (endUserField === 'user' && known === true) {
    const given = request.value('safety_identifier') !== undefined;
    if (given && request.value('user') === undefined) request.rename('safety_identifier', 'user');
    else request.drop('safety_identifier', 'the provider takes user only');
  }
}

// Structured output in relayed requests: as the model knows it, else as an instruction, as in translation.

function relayFormat(request: Relayed): void {
  const { responseFormat } = request.traits;
  const format = request.value('response_format');
  if (!isObject(format)) return;
  const { type, json_schema: named } = format;
  const schema = isObject(named) && isObject(named['schema']) ? named['schema'] : undefined;
  if (type === 'json_object') {
    if (responseFormat === 'none') relayInstruction(request, undefined);
  } else if (type === 'json_schema') {
    if (responseFormat !== 'schema') relayInstruction(request, schema);
    else if (isObject(named)) relaySchema(request, named, schema);
  }
}

function relaySchema(
  request: Relayed,
  { strict }: JsonObject,
  schema: JsonObject | undefined,
): void {
  const { schemaRules, strictSchemas } = request.traits;
  const path = ['response_format', 'json_schema'];
  if (strictSchemas === false && strict === true) {
    request.edits.push({ path: [...path, 'strict'], text: undefined });
    request.notes.lost([...path, 'strict'], 'the model does not enforce this schema');
  }
  if (schemaRules === undefined || schema === undefined) return;
  const { schema: clean } = cleanSchema(schema, schemaRules);
  if (JSON.stringify(clean) === JSON.stringify(schema)) return;
  request.change([...path, 'schema'], clean, 'the model knows a part of JSON Schema only');
}

function relayInstruction(request: Relayed, schema: JsonObject | undefined): void {
  const { responseFormat } = request.traits;
  const format = responseFormat === 'none' ? undefined : { type: 'json_object' };
  request.edits.push({ path: ['response_format'], text: JSON.stringify(format) });
  const why = 'asked for in the prompt, not enforced by the model';
  request.notes.changed(['response_format'], why);
  request.instruction = jsonInstruction(schema);
}

/**
 * The edits of the messages and one more, which adds an instruction to the first system message, or makes one. The
 * edits of the messages are those of `relay/messages.ts`, which may have put another message in front.
 */
function withInstruction(request: Relayed, edits: readonly JsonEdit[]): readonly JsonEdit[] {
  const { instruction, source, traits } = request;
  if (instruction === undefined) return edits;
  const { messages } = source.value;
  const first = isArray(messages) ? messages[0] : undefined;
  const at = edits.findLastIndex((edit) => isOfFirst(edit, first));
  const edit = edits[at];
  const edited = edit?.text === undefined ? undefined : withText(tryParse(edit.text), instruction);
  if (edit !== undefined && edited !== undefined) {
    return edits.with(at, { ...edit, text: JSON.stringify(edited) });
  }
  if (edit === undefined && isInstructions(first)) {
    const edit = addition(first['content'], instruction);
    if (edit !== undefined) return [...edits, edit];
  }
  const text = JSON.stringify({ role: traits.systemRole, content: instruction });
  return [{ path: ['messages', 0], text, insert: true }, ...edits];
}

/** The instruction in the content of the first message. Its parts are left to the other edits. */
function addition(content: Json | undefined, instruction: string): JsonEdit | undefined {
  const path = ['messages', 0, 'content'];
  if (isArray(content)) {
    const part = { type: 'text', text: instruction };
    return { path: [...path, content.length], text: JSON.stringify(part), insert: true };
  }
  const edit = withText(content, instruction);
  return edit === undefined ? undefined : { path, text: JSON.stringify(edit) };
}

/** Of the instructions that are in front, or of their content. */
function isOfFirst({ path, text, insert }: JsonEdit, first: Json | undefined): boolean {
  const [, index, member] = path;
  if (index !== 0 || path.length > 3) return false;
  if (member !== undefined) return member === 'content' && isInstructions(first);
  return insert === true && isInstructions(text === undefined ? undefined : tryParse(text));
}

function isInstructions(message: Json | undefined): message is JsonObject {
  return isObject(message) && (message['role'] === 'system' || message['role'] === 'developer');
}

/** A message or a content with one more text; undefined for what has no texts. */
function withText(value: Json | undefined, text: string): Json | undefined {
  if (typeof value === 'string') return `${value}\n\n${text}`;
  if (isArray(value)) return [...value, { type: 'text', text }];
  if (!isObject(value)) return undefined;
  const content = withText(value['content'], text);
  return content === undefined ? undefined : { ...value, content };
}
