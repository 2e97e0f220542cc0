/** A relayed request under change: its top level, and the edits so far, each with its note. */
import type { Reasoning } from '../../core/conversation.ts';
import type { Ask } from '../../core/dialect.ts';
import { type FieldPath, GatewayError } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import {
  allEfforts,
  chatTraits,
  type ReasoningControl,
  type SchemaRules,
  type UpstreamTraits,
} from '../../core/traits.ts';
import type { JsonEdit } from '../../json/edit.ts';
import { tryParse } from '../../json/parse.ts';
import type { JsonSource } from '../../core/client-body.ts';
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { cleanSchema } from '../shared/tool-schema.ts';
import { isArray } from './fields.ts';
import { readReasoningControl } from './request-read.ts';
import { jsonInstruction } from './request-write-tools.ts';
import { writeReasoning } from './request-write.ts';
import { isDefault } from './shape.ts';

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

export class Relayed {
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

export function relayFormat(request: Relayed): void {
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
export function withInstruction(request: Relayed, edits: readonly JsonEdit[]): readonly JsonEdit[] {
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
    const told = addition(first['content'], instruction);
    if (told !== undefined) return [...edits, told];
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
  const told = withText(content, instruction);
  return told === undefined ? undefined : { path, text: JSON.stringify(told) };
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

/** Members that some vendor steers reasoning with. */
export const reasoningMembers = [
  'reasoning_effort',
  'reasoning',
  'thinking',
  'enable_thinking',
  'thinking_budget',
  'chat_template_kwargs',
] as const;

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

export function relayReasoning(request: Relayed): void {
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

export const toolMembers = [
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
] as const;

export function relayTools(request: Relayed): void {
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
