/**
 * Same-dialect requests: the client's bytes, changed only where this upstream would not take them as they are.
 * The top level is decided by the keys that stand there, so that a request that
 * fits is not looked at further.
 */
import type { JsonSource } from '../../core/client-body.ts';
import type { Reasoning } from '../../core/conversation.ts';
import { type Ask, plannedStops } from '../../core/dialect.ts';
import { type FieldPath, GatewayError } from '../../core/errors.ts';
import { NoteList, type Notes } from '../../core/notes.ts';
import {
  type ReasoningControl,
  type SchemaRules,
  type UpstreamTraits,
  allEfforts,
  chatTraits,
} from '../../core/traits.ts';
import { type JsonEdit, editJson } from '../../json/edit.ts';
import { tryParse } from '../../json/parse.ts';
import type { Pieces } from '../../json/pieces.ts';
import { type Json, type JsonObject, isObject } from '../../json/value.ts';
import { autoMarkEdits } from '../shared/auto-marks.ts';
import { cleanSchema } from '../shared/tool-schema.ts';
import { isArray } from './fields.ts';
import { messageEdits } from './relay-messages.ts';
import { readReasoningControl, stopsOf } from './request-read.ts';
import { jsonInstruction } from './request-write-tools.ts';
import { writeReasoning } from './request-write.ts';
import { foreignMembers, isDefault } from './shape.ts';

/** The client's bytes, asking for this target's model and, in streams, always for usage. */
export function relayRequest(source: JsonSource, ask: Ask, notes: Notes = new NoteList()): Pieces {
  const request = new Relayed(source, ask, notes);
  ownEdits(request);
  memberEdits(request);
  const messages = withInstruction(request, messageEdits(source, ask, notes));
  return editJson(source, [...autoMarkEdits(source, ask), ...request.edits, ...messages]);
}

/** Members that the gateway decides on: model, stream and usage report. */
function ownEdits(request: Relayed): void {
  const { skeleton, ask, edits } = request;
  if (skeleton['model'] !== ask.model) request.put(['model'], ask.model);
  // The client gets what it asked for, whatever the upstream is asked for.
  const asksStream = skeleton['stream'] === true;
  if (ask.stream !== asksStream) request.put(['stream'], ask.stream);
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

// The top level of a relayed request, by one table: which members a target does not take, has another
// name for, or takes with other values. What is known of the target are its traits; a server that no row describes
// gets all members as they came, until it refuses one.

const capFields = ['max_completion_tokens', 'max_tokens'] as const;

/** Members that some vendor steers reasoning with. */
const reasoningMembers = [
  'reasoning_effort',
  'reasoning',
  'thinking',
  'enable_thinking',
  'thinking_budget',
  'chat_template_kwargs',
] as const;

const toolMembers = [
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
] as const;

/** What becomes of some members; asked once for a request that has one of them. */
interface Rule {
  readonly members: readonly string[];
  readonly apply: (request: Relayed) => void;
}

const cap: Rule = { members: capFields, apply: relayCap };
const reasoning: Rule = { members: reasoningMembers, apply: relayReasoning };

const rules: readonly Rule[] = [
  cap,
  { members: ['temperature', 'top_p', 'top_k'], apply: relaySampling },
  { members: ['seed', 'random_seed'], apply: relaySeed },
  { members: ['stop'], apply: relayStop },
  { members: ['user', 'safety_identifier'], apply: relayEndUser },
  { members: ['response_format'], apply: relayFormat },
  reasoning,
  { members: toolMembers, apply: relayTools },
];

const ruleOf: ReadonlyMap<string, Rule> = new Map(
  rules.flatMap((rule) => rule.members.map((member) => [member, rule] as const)),
);

/** What of the top level is to be changed, tools and reasoning included. */
function memberEdits(request: Relayed): void {
  const { source, traits, ask } = request;
  const applied = new Set<Rule>();
  for (const key of source.spans.keys()) {
    const rule = ruleOf.get(key);
    if (isRefused(key, request)) {
      request.dropRefused(key);
    } else if (rule !== undefined && !applied.has(rule)) {
      applied.add(rule);
      rule.apply(request);
    }
  }
  if (ask.maxOutputTokens !== undefined && !applied.has(cap)) relayCap(request);
  // Its models reason unless they are told not to, and refuse tools then.
  if (traits.toolsExcludeReasoning === true && !applied.has(reasoning)) relayReasoning(request);
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
  const sent = capFields.filter((field) => typeof request.value(field) === 'number');
  const { maxTokensField: field } = traits;
  if (traits.oneCapField === true) dropEmptyCap(request);
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

/** A null under the name that the upstream does not know. */
function dropEmptyCap(request: Relayed): void {
  const other = capFields.find((field) => field !== request.traits.maxTokensField);
  if (other === undefined || request.value(other) !== undefined) return;
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
      request.drop(key, 'the model does not let itself be tuned');
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
    if (!traits.seed) request.drop(key, 'the model cannot repeat itself');
    else if (key === seedField || traits.known !== true) continue;
    else if (request.value(seedField) === undefined) request.rename(key, seedField);
    else request.drop(key, `${seedField} is there as well`);
  }
}

/** What the upstream is not told, the path looks for in the answer (core/dialect.ts). */
function relayStop(request: Relayed): void {
  const { native, scanned } = plannedStops(stopsOf(request.skeleton), request.traits);
  if (scanned.length === 0) return;
  const choices = request.value('n');
  if (typeof choices === 'number' && choices > 1) {
    request.refuse(['stop'], 'This model cannot be told these stop sequences for several answers.');
  }
  const modalities = request.value('modalities');
  if (Array.isArray(modalities) && modalities.includes('audio')) {
    request.refuse(['stop'], 'This model cannot be told these stop sequences for spoken answers.');
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

// A relayed request under change: its top level, and the edits so far, each with its note.

/** Values that ask for nothing, besides those that translation leaves out. */
const defaults: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['n', 1],
  ['temperature', 1],
  ['top_p', 1],
  ['logprobs', false],
  ['parallel_tool_calls', true],
  ['tool_choice', 'auto'],
  ['function_call', 'auto'],
  ['prompt_cache_retention', 'in_memory'],
]);

/** Whether a member says what is done without it. */
export function saysNothing(key: string, value: Json | undefined): boolean {
  if (isDefault(key, value) || value === defaults.get(key)) return true;
  return key === 'modalities' && Array.isArray(value) && value.every((one) => one === 'text');
}

class Relayed {
  readonly edits: JsonEdit[] = [];
  readonly source: JsonSource;
  /** The request without its long texts and schemas. */
  readonly skeleton: JsonObject;
  readonly ask: Ask;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** What the instructions must say besides. */
  instruction: string | undefined;

  constructor(source: JsonSource, ask: Ask, notes: Notes) {
    this.source = source;
    this.skeleton = source.skeleton;
    this.ask = ask;
    this.traits = ask.traits;
    this.notes = notes;
  }

  /** The value of a member; undefined also for null. */
  value(key: string): Json | undefined {
    return this.skeleton[key] ?? undefined;
  }

  /** Takes a member out; noted where it said something. */
  drop(key: string, why: string): void {
    if (!this.source.spans.has(key)) return;
    this.edits.push({ path: [key], text: undefined });
    if (!saysNothing(key, this.skeleton[key])) this.notes.lost([key], why);
  }

  /** The same of a member that the upstream is known to refuse, whatever it says. */
  dropRefused(key: string): void {
    const value = this.value(key);
    if (key === 'n' && typeof value === 'number' && value > 1) {
      this.refuse(['n'], 'This model gives one choice only; ask several times instead.');
    }
    if (key === 'web_search_options' && value !== undefined) {
      this.refuse([key], 'This model has no search of its own.');
    }
    const modalities = this.value('modalities');
    const speaks = Array.isArray(modalities) && modalities.includes('audio');
    if (speaks && (key === 'modalities' || key === 'audio')) {
      this.refuse(['modalities'], 'This model does not answer in audio.');
    }
    this.drop(key, 'the model does not take it');
  }

  /** Says a member by another name. */
  rename(from: string, to: string): void {
    const value = this.value(from);
    this.edits.push({ path: [from], text: undefined });
    if (value === undefined) return;
    this.put([to], value);
    this.notes.changed([from], `sent as ${to}, the name that the provider has for it`);
  }

  /** Sets a member, without a note. */
  put(path: FieldPath, value: Json): void {
    this.edits.push({ path, text: JSON.stringify(value) });
  }

  change(path: FieldPath, value: Json, why: string): void {
    this.put(path, value);
    this.notes.changed(path, why);
  }

  /** A 400, where an answer without the member would be read falsely. Another target may take it. */
  refuse(path: FieldPath, why: string): never {
    const options = { path, reason: 'unsupported_parameter', retryable: true };
    throw new GatewayError('invalid_request', why, options);
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
 * edits of the messages are those of `relay-messages.ts`, which may have put another message in front.
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

/** Of the instructions that stand in front, or of their content. */
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

// How much the model may reason, in relayed requests: a client says it in the words of one vendor, and each vendor has
// its own. Translated and relayed requests are written by the same rules (`request-write.ts`).

type Member = (typeof reasoningMembers)[number];

/** Those that a vendor with a control reads. */
const read: { readonly [C in ReasoningControl]: readonly Member[] } = {
  effort: ['reasoning_effort'],
  openrouter: ['reasoning', 'reasoning_effort'],
  'thinking-type': ['thinking', 'reasoning_effort'],
  template: ['chat_template_kwargs', 'reasoning_effort'],
  qwen: ['enable_thinking', 'thinking_budget', 'reasoning_effort'],
  gemini: ['reasoning_effort'],
  none: [],
};

function relayReasoning(request: Relayed): void {
  const { traits } = request;
  dropTemplateArguments(request);
  const asked = reasoningMembers.filter((member) => saysSomething(member, request));
  const tools = request.value('tools');
  const offersTools = isArray(tools) && tools.length > 0;
  const excluded = offersTools && traits.toolsExcludeReasoning === true;
  if (excluded ? request.value('reasoning_effort') === 'none' : fits(asked, request)) return;
  const [first = 'tools'] = asked;
  const notes = new NotesOn(first, request.notes);
  const reasoning = readAsked(request, asked);
  const written = writeReasoning({ reasoning, traits, notes, offersTools, continues: false });
  replace(request, asked, written);
  const names = Object.keys(written);
  const said = names.length === 0 ? 'the model has no such control' : `said as ${names.join(', ')}`;
  const why = excluded ? 'the model does not reason where tools are offered' : said;
  const changed = asked.filter((member) => written[member] === undefined);
  for (const member of new Set([first, ...changed])) {
    if (member !== first || !notes.any) request.notes.changed([member], why);
  }
}

/** Arguments of a template that say nothing of reasoning, for vendors that have no template or show none. */
function dropTemplateArguments(request: Relayed): void {
  const member = 'chat_template_kwargs';
  const { known, reasoningControl } = request.traits;
  if (known !== true || read[reasoningControl].includes(member)) return;
  if (!saysSomething(member, request)) request.drop(member, 'the model does not take it');
}

/** Whether the upstream reads what the client wrote. Of servers that are not known it is assumed. */
function fits(asked: readonly Member[], request: Relayed): boolean {
  const { traits } = request;
  const effort = request.value('reasoning_effort');
  if (asked.includes('reasoning_effort') && !takesEffort(effort, traits)) return false;
  // Vendors with this switch know on and off.
  if (traits.known === true && isAdaptive(request.value('thinking'))) return false;
  return (
    traits.known !== true || asked.every((member) => read[traits.reasoningControl].includes(member))
  );
}

function isAdaptive(thinking: Json | undefined): boolean {
  return isObject(thinking) && thinking['type'] === 'adaptive';
}

/** A word that no vendor is known for is the client's own affair. */
function takesEffort(
  effort: Json | undefined,
  { efforts, reasoningControl, known }: UpstreamTraits,
): boolean {
  const word = allEfforts.find((each) => each === effort);
  if (word === undefined) return reasoningControl !== 'none';
  // The words that all servers know are a guess: they say nothing of the others.
  if (known !== true && efforts === chatTraits.efforts) return true;
  return efforts.includes(word);
}

/** Of the arguments of a template only the switch of the reasoning counts. */
function saysSomething(member: Member, request: Relayed): boolean {
  const value = request.value(member);
  if (member !== 'chat_template_kwargs') return value !== undefined;
  return isObject(value) && typeof value['enable_thinking'] === 'boolean';
}

function readAsked({ skeleton }: Relayed, asked: readonly Member[]): Reasoning | undefined {
  const {
    enable_thinking: enabled,
    thinking_budget: budget,
    chat_template_kwargs: kwargs,
  } = skeleton;
  const known = asked.filter(
    (member) => member !== 'reasoning_effort' || isEffort(skeleton[member]),
  );
  const body = Object.fromEntries(known.map((member) => [member, skeleton[member]]));
  const said = readReasoningControl(body);
  if (said !== undefined) return said;
  const on = isObject(kwargs) ? (kwargs['enable_thinking'] ?? enabled) : enabled;
  if (on === false) return { effort: 'none' };
  if (typeof budget === 'number') return { budgetTokens: budget };
  return on === true ? { effort: 'medium' } : undefined;
}

function isEffort(value: Json | undefined): boolean {
  return allEfforts.some((effort) => effort === value);
}

/** What the client wrote goes, and what was written instead comes. */
function replace(request: Relayed, asked: readonly Member[], written: JsonObject): void {
  const { skeleton } = request;
  for (const member of asked) {
    if (written[member] === undefined) request.edits.push({ path: [member], text: undefined });
  }
  for (const [member, value] of Object.entries(written)) {
    if (value === undefined || JSON.stringify(value) === JSON.stringify(skeleton[member])) continue;
    const before = skeleton[member];
    // Other arguments of a template and other extras stay.
    const both = isObject(value) && isObject(before) ? { ...before, ...value } : value;
    request.put(
      [member],
      member === 'chat_template_kwargs' || member === 'extra_body' ? both : value,
    );
  }
}

/** Notes under the name of the member that the client wrote. */
class NotesOn implements Notes {
  any = false;
  readonly #member: string;
  readonly #notes: Notes;

  constructor(member: string, notes: Notes) {
    this.#member = member;
    this.#notes = notes;
  }

  lost(_path: unknown, why: string): void {
    this.any = true;
    this.#notes.lost([this.#member], why);
  }

  changed(_path: unknown, why: string): void {
    this.any = true;
    this.#notes.changed([this.#member], why);
  }
}

// Tools of relayed requests and the choice among them, in the forms that the upstream knows.

function relayTools(request: Relayed): void {
  const { traits } = request;
  const tools = request.value('tools');
  const functions = request.value('functions');
  const legacy = traits.known !== true || traits.legacyFunctions === true;
  if (isArray(tools) && tools.length > 0) {
    if (!legacy) dropFunctions(request, 'the tools are offered in its place');
    return relayOffered(request, tools);
  }
  if (traits.known !== true) return;
  // An empty list, and a choice among nothing, are refused by some and mean nothing.
  for (const key of ['tools', 'tool_choice', 'parallel_tool_calls']) {
    request.drop(key, 'no tools are offered');
  }
  if (legacy) return;
  if (isArray(functions) && functions.length > 0) relayFunctions(request);
  else dropFunctions(request, 'no tools are offered');
}

function dropFunctions(request: Relayed, why: string): void {
  for (const key of ['functions', 'function_call']) request.drop(key, why);
}

function relayOffered(request: Relayed, tools: readonly Json[]): void {
  const { traits } = request;
  const custom = tools.findIndex((tool) => isObject(tool) && tool['type'] === 'custom');
  if (custom !== -1 && traits.known === true && traits.customTools !== true) {
    request.refuse(['tools', custom, 'type'], 'This model calls tools with JSON arguments only.');
  }
  if (!traits.parallelFlag) {
    request.drop('parallel_tool_calls', 'the model decides how many tools it calls at once');
  }
  const left = relayChoice(request, tools);
  if (left === 'none') return;
  if (traits.strictSchemas === false) loosen(request, tools);
  if (traits.schemaRules !== undefined) cleanTools(request, traits.schemaRules, left);
}

/** The tools that stay, by their indexes; `none` where they are not offered at all. */
type Left = 'none' | ReadonlySet<number> | undefined;

function relayChoice(request: Relayed, tools: readonly Json[]): Left {
  const { known, toolChoice, allowedTools, anyToolWord } = request.traits;
  const choice = request.value('tool_choice');
  if (isObject(choice) && choice['type'] === 'allowed_tools') {
    const narrows = known === true && allowedTools !== true;
    return narrows ? relayAllowed(request, choice, tools) : undefined;
  }
  if (!toolChoice) return withoutChoice(request, choice);
  if (choice === 'any' && known === true && anyToolWord !== true) {
    request.change(['tool_choice'], 'required', 'the word for it is required here');
  }
  return undefined;
}

/** For a model that always chooses by itself. */
function withoutChoice(request: Relayed, choice: Json | undefined): Left {
  const held = choice === 'none';
  for (const key of held ? ['tools', 'tool_choice', 'parallel_tool_calls'] : ['tool_choice']) {
    if (request.source.spans.has(key)) request.edits.push({ path: [key], text: undefined });
  }
  if (held) {
    const why = 'the tools are not offered, as the model cannot be held back';
    for (const key of ['tools', 'tool_choice']) request.notes.changed([key], why);
    return 'none';
  }
  if (choice !== undefined && choice !== 'auto') {
    request.notes.lost(['tool_choice'], 'the model chooses by itself');
  }
  return undefined;
}

/** Only those that are allowed are offered, which comes to the same. */
function relayAllowed(request: Relayed, choice: JsonObject, tools: readonly Json[]): Left {
  const { allowed_tools: allowed } = choice;
  const list = isObject(allowed) && isArray(allowed['tools']) ? allowed['tools'] : [];
  const names = new Set(list.map(nameOf));
  const left = new Set<number>();
  tools.forEach((tool, i) => {
    if (names.has(nameOf(tool))) left.add(i);
    else request.edits.push({ path: ['tools', i], text: undefined });
  });
  if (left.size < tools.length)
    request.notes.changed(['tools'], 'only those that are allowed are offered');
  const mode = isObject(allowed) && allowed['mode'] === 'required' ? 'required' : undefined;
  const demanded = mode !== undefined && request.traits.toolChoice;
  request.edits.push({ path: ['tool_choice'], text: demanded ? '"required"' : undefined });
  const why = 'only the allowed tools are offered';
  if (mode !== undefined && !demanded)
    request.notes.lost(['tool_choice'], 'the model chooses by itself');
  else request.notes.changed(['tool_choice'], why);
  return left;
}

function nameOf(tool: Json): Json | undefined {
  if (!isObject(tool)) return undefined;
  const named = tool[String(tool['type'] ?? 'function')];
  return isObject(named) ? named['name'] : tool['name'];
}

/** The deprecated form as tools: a server that does not know it would skip it, or refuse the request. */
function relayFunctions(request: Relayed): void {
  const { traits, source } = request;
  const { functions } = source.value;
  if (!isArray(functions)) return;
  const choice = request.value('function_call');
  request.edits.push({ path: ['functions'], text: undefined });
  const held = choice === 'none' && !traits.toolChoice;
  if (!held) {
    const tools: JsonObject[] = [];
    for (const each of functions) {
      const definition = isObject(each) ? each : {};
      tools.push({
        type: 'function',
        function: cleanFunction(definition, traits.schemaRules),
      });
    }
    request.put(['tools'], tools);
  }
  request.notes.changed(['functions'], 'sent as tools: calls come back as tool_calls');
  if (choice === undefined) return;
  request.edits.push({ path: ['function_call'], text: undefined });
  if (choice === 'auto' || held) return;
  if (!traits.toolChoice) {
    request.notes.lost(['function_call'], 'the model chooses by itself');
    return;
  }
  const named = isObject(choice)
    ? { type: 'function', function: { name: choice['name'] } }
    : choice;
  request.put(['tool_choice'], named);
  request.notes.changed(['function_call'], 'sent as tool_choice');
}

function cleanFunction(definition: JsonObject, rules: SchemaRules | undefined): JsonObject {
  const { parameters } = definition;
  if (rules === undefined || !isObject(parameters)) return definition;
  return { ...definition, parameters: cleanSchema(parameters, rules).schema };
}

/** Learned of a model that refuses the promise. */
function loosen(request: Relayed, tools: readonly Json[]): void {
  tools.forEach((tool, i) => {
    const definition = isObject(tool) ? tool['function'] : undefined;
    if (!isObject(definition) || definition['strict'] !== true) return;
    const path = ['tools', i, 'function', 'strict'];
    request.edits.push({ path, text: undefined });
    request.notes.lost(path, 'the model does not enforce this schema');
  });
}

function cleanTools(request: Relayed, rules: SchemaRules, left: Left): void {
  const { source } = request;
  if (rules === 'resolved' && !mayNeedCleaning(source)) return;
  const tools = wholeTools(source);
  for (const [i, tool] of tools.entries()) {
    const definition = isObject(tool) ? tool['function'] : undefined;
    const parameters = isObject(definition) ? definition['parameters'] : undefined;
    if (!isObject(parameters) || (left instanceof Set && !left.has(i))) continue;
    const { schema, removed } = cleanSchema(parameters, rules);
    if (JSON.stringify(schema) === JSON.stringify(parameters)) continue;
    const path: FieldPath = ['tools', i, 'function', 'parameters'];
    const why =
      removed.length > 0
        ? `the model knows no ${removed.join(', ')}`
        : 'the schema is written in the words that the model knows';
    request.change(path, schema, why);
  }
}

const telling = /"(?:\$ref|\$dynamicRef|const|object|properties)"/g;

/** By a look at the text, since most schemas need no cleaning and parsing them costs more than all else. */
function mayNeedCleaning(source: JsonSource): boolean {
  let withoutProperties = 0;
  for (const [word] of bytesOfTools(source).toString('latin1').matchAll(telling)) {
    // An object without `properties` is refused by some.
    if (word === '"object"') withoutProperties += 1;
    else if (word === '"properties"') withoutProperties -= 1;
    else return true;
  }
  return withoutProperties > 0;
}

function bytesOfTools(source: JsonSource): Buffer {
  const { start = 0, end = 0 } = source.spans.get('tools') ?? {};
  return source.bytes.subarray(start, end);
}

/** With their schemas, without a parse of the messages. */
function wholeTools(source: JsonSource): readonly Json[] {
  const tools = !source.unambiguous
    ? source.value['tools']
    : tryParse(bytesOfTools(source).toString('utf8'));
  return isArray(tools) ? tools : [];
}
