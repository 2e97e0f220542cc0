/**
 * Renders a conversation of any dialect as a chat-completions request.
 * The same conversation gives the same bytes each time, because prompt caches depend on it.
 */
import { createHash } from 'node:crypto';
import type {
  Conversation,
  DialectId,
  Effort,
  Extras,
  Part,
  Reasoning,
  Sampling,
  Turn,
} from '../../../core/conversation.ts';
import type { Countable, Medium } from '../../../core/description.ts';
import { type Ask, plannedStops } from '../../../core/dialect.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { memberPath, type Notes, pathOf, withPathOf } from '../../../core/notes.ts';
import type { ModelTokenizer } from '../../../core/provider.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import {
  type Json,
  type JsonObject,
  isObject,
  type JsonMembers,
  textOf,
} from '../../../json/value.ts';
import { mediumOf } from '../../shared/prompt.ts';
import { noteUncited } from '../../shared/document-citations.ts';
import { cacheHints, responsesOptions } from '../../shared/responses-fields.ts';
import { chatFields, isArray } from '../fields.ts';
import { frontNote } from '../message-forms.ts';
import { MessageWriter, isPrefill, writePrefill } from './write-messages.ts';
import { writeOutput, writeTools } from './write-tools.ts';

/**
 * Claude Code puts a text with a changing nonce first in its instructions: no prompt prefix would
 * ever be cached.
 */
const billingHeader = 'x-anthropic-billing-header:';

/** @throws GatewayError `invalid_request` for a member that this upstream cannot honour. */
export function writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject {
  const { traits } = ask;
  noteUncited(conversation, notes);
  const output = writeOutput(conversation, traits, notes);
  const messages = new MessageWriter({ conversation, traits, notes, provider: ask.provider });
  const { system, turns } = traits.systemAnywhere
    ? conversation
    : withInstructionsInFront(conversation, notes);
  messages.system(system.filter(isInstruction), output.instruction);
  messages.turns(turns);
  const tools = writeTools(conversation, traits, notes);
  const body: JsonMembers = {
    model: ask.model,
    messages: messages.written,
    ...tools,
    ...writeSampling(conversation.sampling, traits, notes),
    ...output.members,
    ...writeReasoning({
      reasoning: conversation.reasoning,
      traits,
      notes,
      offersTools: tools['tools'] !== undefined || output.members['tools'] !== undefined,
      continues: traits.prefill && isPrefill(messages.written),
    }),
    ...writePrefill(messages.written, traits),
    ...writeEndUser(conversation, traits, notes),
    ...writeForeignExtras(conversation.extras, traits, notes),
    ...writeResponsesOptions(conversation.extras, { traits, notes }),
  };
  if (ask.stream) {
    body['stream'] = true;
    if (traits.usageOption) body['stream_options'] = { include_usage: true };
  }
  return { ...conversation.extras['openai-chat'], ...traits.always, ...body };
}

/**
 * Instructions before the first answer are in front, where they stay in later requests; those after it are left to
 * be sent at their position, or the beginning of the prompt would change with each turn.
 */
export function withInstructionsInFront(
  { system, turns }: Conversation,
  notes: Notes,
): Pick<Conversation, 'system' | 'turns'> {
  const answer = turns.findIndex(({ role }) => role === 'assistant');
  const begun = answer === -1 ? turns : turns.slice(0, answer);
  if (!begun.some(isInstructionTurn)) return { system, turns };
  const front = [...system];
  begun.forEach((turn, i) => {
    if (!isInstructionTurn(turn)) return;
    notes.changed(pathOf(turn, ['messages', i]), frontNote);
    front.push(...turn.parts);
  });
  const asked = begun.filter((turn) => !isInstructionTurn(turn));
  const kept = withPathOf(turns, [...asked, ...turns.slice(begun.length)]);
  return { system: front, turns: kept };
}

function isInstructionTurn({ role }: Turn): boolean {
  return role === 'system';
}

/** False for a line of Claude Code that changes with each call. */
export function isInstruction(part: Part): boolean {
  return part.type !== 'text' || !part.text.startsWith(billingHeader);
}

// Top-level fields of other dialects that chat completions cannot carry.

/** Members whose effect would silently be missing. */
const refused: ReadonlyMap<string, string> = new Map([
  ['container', 'This model has no container to run code in.'],
  ['mcp_servers', 'This model does not call MCP servers by itself.'],
  ['thread', 'This model keeps no threads; send the whole conversation.'],
]);

/**
 * Writes fields that only the messages dialect has: as members of the request, as notes or as a refusal.
 * @throws GatewayError `invalid_request` for a field whose loss would be a false promise.
 */
export function writeMessagesExtras(
  extras: JsonObject,
  traits: UpstreamTraits,
  notes: Notes,
  why: WhyLost = whyForeign,
): JsonMembers {
  const members: JsonMembers = {};
  for (const [key, value] of Object.entries(extras)) {
    if (value === undefined || value === null) continue;
    Object.assign(members, writeMessagesField(key, value, { traits, notes, why }));
  }
  return members;
}

/** The same for all other dialects. */
function writeForeignExtras(extras: Extras, traits: UpstreamTraits, notes: Notes): JsonMembers {
  const members: JsonMembers = {};
  const dialects: readonly DialectId[] = ['anthropic-messages', 'gemini', 'bedrock-converse'];
  for (const dialect of dialects) {
    const fields = extras[dialect] ?? {};
    if (dialect === 'anthropic-messages') {
      Object.assign(members, writeMessagesExtras(fields, traits, notes));
      continue;
    }
    for (const [key, value] of Object.entries(fields)) {
      if (value === undefined || value === null) continue;
      notes.lost([key], 'chat completions has no such field');
    }
  }
  return members;
}

/** Members that both APIs of OpenAI have. */
function writeResponsesOptions(extras: Extras, { traits, notes }: Target): JsonMembers {
  const { verbosity, serviceTier } = responsesOptions(extras);
  const members: JsonMembers = {};
  if (verbosity !== undefined) {
    if (traits.known === true && traits.refuses?.includes('verbosity') !== true) {
      members['verbosity'] = verbosity;
    } else notes.lost(['text', 'verbosity'], 'not known to the model');
  }
  if (serviceTier !== undefined) {
    if (traits.serviceTiers === true) members['service_tier'] = serviceTier;
    else if (serviceTier !== 'default') {
      notes.lost(['service_tier'], 'the provider has no such tier');
    }
  }
  if (traits.serviceTiers !== true) return members;
  for (const key of cacheHints) {
    const value = extras['openai-responses']?.[key];
    if (value !== undefined && value !== null) members[key] = value;
  }
  return members;
}

interface Target {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** Why a member of the messages dialect is omitted. */
type WhyLost = (path: readonly string[]) => string;

function writeMessagesField(
  key: string,
  value: Json,
  target: Target & { readonly why: WhyLost },
): JsonMembers {
  if (isEmpty(value)) return {};
  const { traits, notes, why } = target;
  switch (key) {
    case 'service_tier':
      return traits.serviceTiers === true ? writeServiceTier(value, target) : {};
    case 'speed':
      return writeSpeed(value, target);
    case 'cache_control':
      return traits.cacheMarks ? { cache_control: value } : {};
    case 'inference_geo':
      refuseOtherRegion(value, traits);
      return {};
    case 'context_management':
      if (isObject(value) && isArray(value['edits']) && value['edits'].length === 0) return {};
      break;
    case 'fallbacks':
      if (isArray(value)) throw unsupported([key], 'This model has no fallbacks of its own.');
      break;
    default: {
      const reason = refused.get(key);
      if (reason !== undefined) throw unsupported([key], reason);
    }
  }
  for (const path of lostPaths(key, value)) notes.lost(path, why(path));
  return {};
}

/** A field that chat completions has did not come from the client's API. */
function whyForeign(path: readonly string[]): string {
  if (path.length > 1) return 'not known to the model';
  return chatFields.has(path[0] ?? '')
    ? 'a field of chat completions, and not of the messages API'
    : 'chat completions has no such field';
}

/** `speed` wins over the service tier, whatever their order. */
function writeServiceTier(tier: Json, { notes }: Target): JsonMembers {
  switch (tier) {
    case 'auto':
      return {};
    case 'standard_only':
      return { service_tier: 'default' };
    default:
      notes.lost(['service_tier'], 'the provider has no such tier');
      return {};
  }
}

function writeSpeed(speed: Json, { traits, notes }: Target): JsonMembers {
  if (speed === 'standard') return {};
  if (speed === 'fast' && traits.serviceTiers === true) return { service_tier: 'fast' };
  notes.lost(['speed'], 'the model has one speed');
  return {};
}

/** Where the prompt is processed is a promise; `global` requests none. */
function refuseOtherRegion(region: Json, traits: UpstreamTraits): void {
  if (region === 'global' || region === traits.region) return;
  throw unsupported(['inference_geo'], 'This model cannot promise where it runs.');
}

/** `output_config.task_budget` rather than the whole of `output_config`. */
function lostPaths(key: string, value: Json): readonly (readonly string[])[] {
  const nested = key === 'output_config' || key === 'metadata' || key === 'thinking';
  return nested && isNonEmptyObject(value)
    ? Object.keys(value).map((inner) => [key, inner])
    : [[key]];
}

function isEmpty(value: Json): boolean {
  if (isArray(value)) return value.length === 0;
  return typeof value === 'object' && value !== null && !isNonEmptyObject(value);
}

function isNonEmptyObject(value: Json): value is JsonObject {
  return (
    typeof value === 'object' && value !== null && !isArray(value) && Object.keys(value).length > 0
  );
}

// Sampling and end user, as far as the upstream takes them.

/** Notes name the fields of the messages dialect: the only one that is translated to this one. */
function writeSampling(sampling: Sampling, traits: UpstreamTraits, notes: Notes): JsonMembers {
  const { maxOutputTokens, topK, seed } = sampling;
  const members: JsonMembers = {};
  if (maxOutputTokens !== undefined) members[traits.maxTokensField] = maxOutputTokens;
  writeTemperature(members, sampling, { traits, notes });
  if (topK !== undefined) {
    if (traits.topK) members['top_k'] = topK;
    else notes.lost(['top_k'], 'not known to the model');
  }
  if (seed !== undefined) {
    if (traits.seed) members[traits.seedField ?? 'seed'] = seed;
    else notes.lost(['seed'], 'not known to the model');
  }
  return { ...members, ...writeStop(sampling.stop, traits) };
}

interface OptionTarget {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

export function writeTemperature(
  members: JsonMembers,
  { temperature, topP }: Sampling,
  { traits, notes }: OptionTarget,
): void {
  for (const [key, value] of [
    ['temperature', temperature],
    ['top_p', topP],
  ] as const) {
    if (value === undefined) continue;
    if (traits.samplingAllowed) members[key] = value;
    // 1 is what the model does anyway.
    else if (value !== 1) notes.lost([key], 'the model does not let itself be tuned');
  }
}

/** Those that the upstream cannot take are searched for by the path (core/dialect.ts). */
function writeStop(stop: readonly string[] | undefined, traits: UpstreamTraits): JsonMembers {
  const { native } = plannedStops(stop, traits);
  return native.length === 0 ? {} : { stop: [...native] };
}

const maxEndUserLength = 64;

/** Longer ids are hashed: cutting them would merge users with a common prefix. */
export function writeEndUser(
  { endUser, extras }: Conversation,
  { endUserField }: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  if (endUser === undefined) return {};
  if (endUserField === undefined) {
    const path = memberPath(extras, 'endUser', ['metadata', 'user_id']);
    notes.lost(path, 'the provider takes no id of the end user');
    return {};
  }
  const short = endUser.length <= maxEndUserLength;
  return {
    [endUserField]: short ? endUser : createHash('sha256').update(endUser).digest('hex'),
  };
}

// How much the model may reason, in the members that the upstream has for it.

interface ReasoningQuestion {
  readonly reasoning: Reasoning | undefined;
  readonly traits: UpstreamTraits;
  /** Tools go with the request. */
  readonly offersTools: boolean;
  /** The model is to continue the last assistant message. */
  readonly continues: boolean;
  readonly notes: Notes;
}

/** Nothing where the client said nothing, unless the upstream would refuse the request without. */
export function writeReasoning(question: ReasoningQuestion): JsonMembers {
  const { reasoning, traits, notes } = question;
  const wanted = reasoning === undefined ? undefined : wantedEffort(reasoning);
  const obstacle = findObstacle(question);
  if (obstacle !== undefined) {
    if (wanted !== undefined && wanted !== 'none')
      notes.changed(reasoningPath(reasoning), obstacle.why);
    return obstacle.members;
  }
  if (reasoning === undefined || wanted === undefined) return {};
  return writeControl({ reasoning, wanted, traits, notes });
}

interface Obstacle {
  readonly why: string;
  readonly members: JsonMembers;
}

/**
 * A combination that such models refuse together with reasoning. They reason by default, so reasoning must be
 * turned off explicitly, or every such call fails.
 */
function findObstacle(question: ReasoningQuestion): Obstacle | undefined {
  const { traits, offersTools, continues } = question;
  if (offersTools && traits.toolsExcludeReasoning === true) {
    return {
      why: 'the model does not reason where tools are offered',
      members: { reasoning_effort: 'none' },
    };
  }
  // llama.cpp: "Assistant response prefill is incompatible with enable_thinking."
  if (continues && traits.reasoningControl === 'template') {
    return {
      why: 'the model does not reason in the middle of an answer',
      members: templateSwitch(false),
    };
  }
  return undefined;
}

export interface Wanted {
  readonly reasoning: Reasoning;
  readonly wanted: Effort;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

function writeControl(question: Wanted): JsonMembers {
  const { reasoning, wanted, traits } = question;
  const off = wanted === 'none';
  const budget = traits.reasoningBudget === true && !off ? reasoning.budgetTokens : undefined;
  switch (traits.reasoningControl) {
    case 'effort':
      return writeEffort(question);
    case 'openrouter':
      return { reasoning: budget === undefined ? namedEffort(question) : { max_tokens: budget } };
    case 'gemini':
      return budget === undefined ? writeEffort(question) : geminiBudget(budget);
    case 'thinking-type':
      return {
        thinking: { type: off ? 'disabled' : 'enabled' },
        ...(off ? {} : writeWord(question)),
      };
    case 'template':
      return off ? templateSwitch(false) : { ...templateSwitch(true), ...writeWord(question) };
    case 'qwen':
      if (budget !== undefined) return { enable_thinking: true, thinking_budget: budget };
      return { enable_thinking: !off, ...(off ? {} : writeWord(question)) };
    case 'none':
      noteUncontrolled(question);
      return {};
    default:
      return traits.reasoningControl satisfies never;
  }
}

export function noteUncontrolled({ reasoning, wanted, traits, notes }: Wanted): void {
  if (wanted !== 'none') {
    notes.lost(reasoningPath(reasoning), 'the model has no control over its reasoning');
  } else if (traits.thinkingOff === 'never' || traits.reasonsFirst === true) {
    notes.lost(reasoningPath(reasoning), 'the model always reasons');
  }
}

/** `reasoning_effort` with the nearest word that the model knows. */
function writeEffort(question: Wanted): JsonMembers {
  const { effort } = namedEffort(question);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

/** The effort word in addition to a switch; without effort words, only on and off can be expressed. */
function writeWord(question: Wanted): JsonMembers {
  const { reasoning, traits, notes } = question;
  if (traits.efforts.length > 0) return writeEffort(question);
  if (reasoning.effort !== undefined || reasoning.budgetTokens !== undefined) {
    notes.changed(reasoningPath(reasoning), 'the model decides itself how much it reasons');
  }
  return {};
}

/** The nearest word that the model knows. */
export function namedEffort({ reasoning, wanted, traits, notes }: Wanted): {
  readonly effort?: Effort;
} {
  const effort = nearestEffort(wanted, traits.efforts);
  if (effort === undefined) {
    if (wanted !== 'none') {
      notes.lost(reasoningPath(reasoning), 'the model has no control over how much it reasons');
    }
    return {};
  }
  if (effort !== wanted) {
    notes.changed(reasoningPath(reasoning), `the model knows the effort ${effort} instead`);
  }
  return { effort };
}

function templateSwitch(on: boolean): JsonMembers {
  return { chat_template_kwargs: { enable_thinking: on } };
}

function geminiBudget(budget: number): JsonMembers {
  return { extra_body: { google: { thinking_config: { thinking_budget: budget } } } };
}

export function wantedEffort({ effort, budgetTokens, adaptive }: Reasoning): Effort | undefined {
  if (effort !== undefined) return effort;
  if (budgetTokens !== undefined) return effortOfBudget(budgetTokens);
  return adaptive === true ? 'high' : undefined;
}

/** The only published thresholds. */
function effortOfBudget(budgetTokens: number): Effort {
  if (budgetTokens >= 10_000) return 'high';
  if (budgetTokens >= 5000) return 'medium';
  return budgetTokens >= 2000 ? 'low' : 'minimal';
}

const order: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** The highest known effort up to the wanted one, else the lowest known. */
function nearestEffort(wanted: Effort, known: readonly Effort[]): Effort | undefined {
  const limit = order.indexOf(wanted);
  const ordered = order.filter((effort) => known.includes(effort));
  // Who wants some reasoning does not want none.
  const usable = wanted === 'none' ? ordered : ordered.filter((effort) => effort !== 'none');
  return usable.findLast((effort) => order.indexOf(effort) <= limit) ?? usable[0];
}

/** Where the client said it; without a path of its own, it was a messages client. */
function reasoningPath(reasoning: Reasoning | undefined): FieldPath {
  if (reasoning === undefined) return ['thinking'];
  const { effort, budgetTokens } = reasoning;
  if (effort !== undefined && effort !== 'none') {
    return pathOf(reasoning, ['output_config', 'effort']);
  }
  return pathOf(
    reasoning,
    budgetTokens === undefined ? ['thinking'] : ['thinking', 'budget_tokens'],
  );
}

// How OpenAI's chat models frame a prompt, after the recipe that OpenAI publishes (cookbook, "How to
// count tokens with tiktoken"): texts to be tokenised, and constants. Nested schemas, which the recipe
// omits, are counted the same way level by level.

const messageTokens = 3;
const nameTokens = 1;
const answerTokens = 3;
/** A call in the history: frame, type and address of the function. */
const callTokens = 8;
const propertiesTokens = 3;
const propertyTokens = 3;
const enumTokens = -3;
const enumItemTokens = 3;
const functionsEndTokens = 12;

/** In steps, as there may be very much to count. @param body a chat-completions request. */
export function chatCountable(body: JsonObject, tokenizer: ModelTokenizer): Countable {
  return new Recipe(tokenizer).read(body);
}

class Recipe {
  readonly #tokenizer: ModelTokenizer;
  readonly #texts: string[] = [];
  readonly #media: Medium[] = [];
  #constant = answerTokens;

  constructor(tokenizer: ModelTokenizer) {
    this.#tokenizer = tokenizer;
  }

  read(body: JsonObject): Countable {
    for (const message of listOf(body['messages'])) {
      if (isObject(message)) this.#message(message);
    }
    const tools = listOf(body['tools']).filter(isObject);
    for (const tool of tools) this.#tool(tool);
    // What tools were called before.
    for (const definition of listOf(body['functions'])) {
      if (isObject(definition)) this.#texts.push(JSON.stringify(definition));
    }
    if (tools.length > 0) this.#constant += functionsEndTokens;
    const format = body['response_format'];
    if (isObject(format) && format['type'] === 'json_schema') {
      this.#texts.push(JSON.stringify(format['json_schema']));
    }
    return { texts: this.#texts, media: this.#media, constant: this.#constant };
  }

  #text(value: Json | undefined): void {
    if (typeof value === 'string' && value !== '') this.#texts.push(value);
  }

  #message(message: JsonObject): void {
    this.#constant += messageTokens;
    this.#text(message['role']);
    if (typeof message['name'] === 'string') this.#constant += nameTokens;
    this.#text(message['name']);
    this.#content(message['content']);
    this.#text(message['refusal']);
    for (const call of [...listOf(message['tool_calls']), message['function_call']]) {
      if (isObject(call)) this.#call(call);
    }
  }

  #content(content: Json | undefined): void {
    this.#text(content);
    for (const part of listOf(content)) {
      if (!isObject(part)) continue;
      const medium = mediumOf(part);
      if (medium !== undefined) this.#media.push(medium);
      this.#text(part['text']);
      this.#text(part['refusal']);
    }
  }

  #call(call: JsonObject): void {
    this.#constant += callTokens;
    const called = ['function', 'custom'].map((key) => call[key]).find(isObject) ?? call;
    this.#text(called['name']);
    this.#text(called['arguments']);
    this.#text(called['input']);
  }

  #tool(tool: JsonObject): void {
    this.#constant += this.#tokenizer.functionTokens;
    const { function: declared } = tool;
    if (!isObject(declared)) {
      this.#texts.push(JSON.stringify(tool));
      return;
    }
    const { name, description, parameters } = declared;
    this.#texts.push(`${textOf(name)}:${withoutDot(textOf(description))}`);
    if (isObject(parameters)) this.#properties(parameters);
  }

  #properties(schema: JsonObject): void {
    const { properties, $defs, definitions } = schema;
    for (const named of [properties, $defs, definitions]) {
      const entries = isObject(named) ? Object.entries(named) : [];
      if (entries.length > 0) this.#constant += propertiesTokens;
      for (const [key, value] of entries) {
        this.#property(key, isObject(value) ? value : {});
      }
    }
    this.#rest(schema);
  }

  #property(key: string, schema: JsonObject): void {
    this.#constant += propertyTokens;
    const choices = listOf(schema['enum']);
    if (choices.length > 0) this.#constant += enumTokens;
    for (const choice of choices) {
      this.#constant += enumItemTokens;
      this.#text(typeof choice === 'string' ? choice : JSON.stringify(choice));
    }
    const type = schema['type'] === undefined ? '' : typeText(schema['type']);
    this.#texts.push(`${key}:${type}:${withoutDot(textOf(schema['description']))}`);
    this.#properties(schema);
  }

  /** Items, alternatives and bounds: what the recipe does not know counts as it is. */
  #rest(schema: JsonObject): void {
    for (const [key, value] of Object.entries(schema)) {
      if (countedMembers.has(key)) continue;
      if (key === 'items' && isObject(value)) this.#property('', value);
      else this.#texts.push(`${key}:${JSON.stringify(value)}`);
    }
  }
}

/** Members of a schema that are counted above, or that the prompt does not show. */
const countedMembers: ReadonlySet<string> = new Set([
  'type',
  'description',
  'enum',
  'properties',
  '$defs',
  'definitions',
  'required',
  'additionalProperties',
  '$schema',
]);

function typeText(type: Json): string {
  return typeof type === 'string' ? type : JSON.stringify(type);
}

function withoutDot(text: string): string {
  return text.endsWith('.') ? text.slice(0, -1) : text;
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
