/**
 * Renders a conversation of any dialect as a messages request. The
 * same conversation gives the same bytes each time: prompt caches depend on it.
 */
import { createHash } from 'node:crypto';
import type {
  CacheMark,
  Conversation,
  Effort,
  OutputFormat,
  Part,
  PartBase,
  Reasoning,
  Sampling,
  Turn,
} from '../../../core/conversation.ts';
import { type Ask, plannedStops } from '../../../core/dialect.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { isObject, type Json, type JsonObject, type JsonMembers } from '../../../json/value.ts';
import { cacheHints, responsesOptions } from '../../shared/responses-fields.ts';
import { canDemandCalls, demandsCall, jsonTool } from '../../shared/demanded-call.ts';
import { isBlank } from '../../shared/message-turns.ts';
import { isPresent, messagesFields } from '../fields.ts';
import { endsPaused, writeTurns, type Writing } from './write-messages.ts';
import { strictSchema, writeJsonTool, writeTools } from './write-tools.ts';
import { isNative } from '../answer/response.ts';

/** @throws GatewayError `invalid_request` for a member that this upstream cannot honour. */
export function writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject {
  const { traits } = ask;
  const marks = new CacheMarks(traits.cacheMarks);
  const writing: Writing = { traits, notes, marks, tools: conversation.tools };
  const maxTokens = writeMaxTokens(conversation, ask, notes);
  const thinking = writeThinking({ conversation, traits, maxTokens }, notes);
  const json =
    traits.responseFormat === 'schema' || !canDemandCalls(traits)
      ? undefined
      : jsonTool(conversation, thinking.on);
  const output = json === undefined ? writeOutput(conversation.output, traits, notes) : {};
  const { system, turns } = withQuestion(conversation, notes);
  const native = nativeFields(conversation, traits.cacheMarks);
  // Tools are first in the prompt, so their marks are registered first.
  const tools =
    json === undefined
      ? writeTools(conversation, writing)
      : writeJsonTool(json, conversation.output, writing);
  const body: JsonMembers = {
    model: ask.model,
    max_tokens: maxTokens,
    ...writeSystem(system, output.instruction, writing),
    messages: writeTurns(turns, writing).map(({ role, content }) => ({ role, content })),
    ...tools,
    ...(thinking.thinking === undefined ? {} : { thinking: thinking.thinking }),
    ...writeOutputConfig(thinking, output, native['output_config']),
    ...writeSampling(conversation.sampling, { traits, notes, thinks: thinking.on }),
    ...writeMetadata(conversation.endUser, native['metadata']),
    ...writeForeignFields(conversation.extras, traits, notes),
  };
  if (extendsMarks(conversation)) {
    notes.changed(['prompt_cache_retention'], 'a marked prompt is kept for one hour');
  }
  marks.apply(notes, native['cache_control'] === undefined ? 0 : 1);
  if (ask.stream) body['stream'] = true;
  return { ...native, ...body };
}

/** Whether a chat client requests a longer life of marks that it set (`prompt_cache_retention: "24h"`). */
function extendsMarks({ extras, tools, system, turns }: Conversation): boolean {
  if (extras['openai-chat']?.['prompt_cache_retention'] !== '24h') return false;
  const lasts = (part: PartBase): boolean => part.cacheUntilHere?.ttl === '1h';
  return (
    tools.some(lasts) ||
    system.some(lasts) ||
    turns.some(({ parts }) =>
      parts.some((part) => lasts(part) || (part.type === 'tool-result' && part.parts.some(lasts))),
    )
  );
}

/** 0 would mean to warm the prompt cache and answer nothing: it is never sent by accident. */
export function writeMaxTokens({ sampling }: Conversation, { traits }: Ask, notes: Notes): number {
  const { maxOutputTokens = traits.defaultMaxOutputTokens } = sampling;
  const path = pathOf(sampling, ['max_tokens']);
  if (maxOutputTokens < 1) throw unsupported(path, 'At least 1 token must be allowed.');
  const { maxOutputTokens: most = Infinity } = traits;
  if (maxOutputTokens > most) notes.changed(path, `the model writes at most ${most} tokens`);
  return Math.min(maxOutputTokens, most);
}

/** A request needs a turn: without one, the last instruction becomes it. */
export function withQuestion(
  { system, turns }: Pick<Conversation, 'system' | 'turns'>,
  notes: Notes,
): Pick<Conversation, 'system' | 'turns'> {
  const last = system.at(-1);
  if (turns.length > 0 || last === undefined) return { system, turns };
  notes.changed(pathOf(last, ['messages']), 'the last instruction is sent as the user');
  return { system: system.slice(0, -1), turns: [{ role: 'user', parts: [last] }] };
}

/** One block per part, never joined: joining changes what is cached. */
function writeSystem(
  parts: readonly Part[],
  instruction: string | undefined,
  { marks, notes }: Writing,
): JsonObject {
  const blocks: JsonMembers[] = [];
  for (const part of parts) {
    if (part.type !== 'text') notes.lost(['system'], 'instructions are text only');
    else if (!isBlank(part.text))
      blocks.push(marks.prefix({ type: 'text', text: part.text }, part));
  }
  if (instruction !== undefined) blocks.push({ type: 'text', text: instruction });
  return blocks.length === 0 ? {} : { system: blocks };
}

function writeOutputConfig(
  { effort }: WrittenThinking,
  { format }: WrittenOutput,
  native: JsonObject[string],
): JsonObject {
  const config: JsonMembers = { ...(isObject(native) ? native : {}) };
  if (effort !== undefined) config['effort'] = effort;
  if (format !== undefined) config['format'] = format;
  return Object.keys(config).length === 0 ? {} : { output_config: config };
}

function writeMetadata(endUser: string | undefined, native: JsonObject[string]): JsonObject {
  const metadata = { ...(isObject(native) ? native : {}), ...writeEndUser(endUser) };
  return Object.keys(metadata).length === 0 ? {} : { metadata };
}

/** Fields of this dialect that came through another one. */
function nativeFields({ extras }: Conversation, cacheMarks: boolean): JsonObject {
  const { cache_control: mark, ...fields } = extras['anthropic-messages'] ?? {};
  return cacheMarks && mark !== undefined ? { ...fields, cache_control: mark } : fields;
}

// Sampling, output format, end user and foreign fields.

interface OptionsWriting {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** Thinking is on: the provider then takes no sampling parameters. */
  readonly thinks: boolean;
}

/** `temperature`, `top_p`, `top_k`, `stop_sequences`. */
function writeSampling(sampling: Sampling, writing: OptionsWriting): JsonMembers {
  const { traits, notes } = writing;
  const members = writeTuning(sampling, writing);
  if (sampling.seed !== undefined) notes.lost(['seed'], 'the model cannot repeat itself');
  // Those that the upstream cannot take are searched for by the path.
  const { native } = plannedStops(sampling.stop, traits);
  if (native.length > 0) members['stop_sequences'] = native;
  return members;
}

export function writeTuning(
  { temperature, topP, topK }: Sampling,
  writing: OptionsWriting,
): JsonMembers {
  const { traits, notes, thinks } = writing;
  const members: JsonMembers = {};
  const tunable = traits.samplingAllowed && !thinks;
  const why = thinks ? 'the model is thinking' : 'the model does not let itself be tuned';
  const wanted = {
    ...oneSampler({ temperature: clamped(temperature, tunable, notes), top_p: topP }, writing),
    top_k: topK,
  };
  for (const [key, value] of Object.entries(wanted)) {
    if (value === undefined) continue;
    if (tunable && (key !== 'top_k' || traits.topK)) members[key] = value;
    // 1 is what the model does anyway.
    else if (value !== 1) notes.lost([key], tunable ? 'the model does not know it' : why);
  }
  return members;
}

interface Samplers {
  readonly temperature: number | undefined;
  readonly top_p: number | undefined;
}

/** Where only one of the two may be set, the temperature stays, unless it says the default. */
function oneSampler(wanted: Samplers, { traits, notes, thinks }: OptionsWriting): Samplers {
  const { temperature, top_p: topP } = wanted;
  if (traits.temperatureExcludesTopP !== true || thinks) return wanted;
  if (temperature === undefined || topP === undefined) return wanted;
  if (temperature === 1 && topP !== 1) return { temperature: undefined, top_p: topP };
  if (topP !== 1) notes.lost(['top_p'], 'the model takes it or temperature, not both');
  return { temperature, top_p: undefined };
}

/** The scales are not proportional: 1 is the neutral default on both. */
function clamped(
  temperature: number | undefined,
  tunable: boolean,
  notes: Notes,
): number | undefined {
  if (temperature === undefined || temperature <= 1) return temperature;
  if (tunable) notes.changed(['temperature'], 'at most 1 for this model');
  return tunable ? 1 : temperature;
}

interface WrittenOutput {
  readonly format?: JsonObject;
  /** What the system prompt must say, because nothing enforces it. */
  readonly instruction?: string;
}

/** @throws GatewayError `invalid_request` for a schema that the upstream cannot enforce. */
function writeOutput(output: OutputFormat, traits: UpstreamTraits, notes: Notes): WrittenOutput {
  if (output.type === 'text') return {};
  const where = pathOf(output, ['response_format']);
  if (output.schema === undefined) {
    notes.changed(where, 'asked for in the prompt, not enforced');
    return { instruction: 'Answer with one bare JSON object and nothing else.' };
  }
  if (traits.responseFormat === 'object') {
    notes.changed(where, 'asked for in the prompt, not enforced by the model');
    return { instruction: formatInstruction(output.schema) };
  }
  if (traits.responseFormat !== 'schema') {
    throw unsupported(where, 'This model cannot be held to a JSON schema.');
  }
  const path = pathOf(output, ['response_format', 'json_schema']);
  if (output.strict === false) {
    notes.changed([...path, 'strict'], 'the schema is enforced anyway');
  }
  const { schema, moved } = strictSchema(output.schema);
  if (moved.length > 0) {
    const where = output.asCallOf === undefined ? [...path, 'schema'] : path;
    notes.changed(where, `only described: ${moved.join(', ')}`);
  }
  return { format: { type: 'json_schema', schema } };
}

/** For models that nothing holds to a schema. */
export function formatInstruction(schema: Json): string {
  return `Answer with one JSON object and nothing else. It must match this JSON schema: ${JSON.stringify(schema)}`;
}

const maxUserIdLength = 256;

/** Longer ids are hashed: cutting them would merge users with a common prefix. */
function writeEndUser(endUser: string | undefined): JsonObject | undefined {
  if (endUser === undefined) return undefined;
  if (endUser.length <= maxUserIdLength) return { user_id: endUser };
  return { user_id: createHash('sha256').update(endUser).digest('hex') };
}

/** Chat fields that request nothing when they have this value, besides null and empty ones. */
export const chatDefaults: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['n', 1],
  ['logprobs', false],
  ['store', false],
  ['frequency_penalty', 0],
  ['presence_penalty', 0],
  ['top_logprobs', 0],
]);

/** What other dialects sent and this one has no field for: dropped and noted, nothing vanishes. */
function writeForeignFields(
  extras: Conversation['extras'],
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  const members: JsonMembers = {};
  for (const [dialect, fields] of Object.entries(extras)) {
    if (dialect === 'anthropic-messages' || dialect === 'openai-responses') continue;
    for (const [key, value] of Object.entries(fields ?? {})) {
      if (!isPresent(value) || value === chatDefaults.get(key) || isEmpty(value)) continue;
      if (cacheHints.includes(key)) continue;
      if (key === 'service_tier') Object.assign(members, writeServiceTier(value, traits, notes));
      else notes.lost([key], whyForeign(key));
    }
  }
  const { verbosity, serviceTier } = responsesOptions(extras);
  if (verbosity !== undefined) notes.lost(['text', 'verbosity'], 'not known to the model');
  if (serviceTier !== undefined) {
    Object.assign(members, writeServiceTier(serviceTier, traits, notes));
  }
  return members;
}

/** `metadata` is a field of both APIs that holds different things. */
function whyForeign(key: string): string {
  if (key === 'metadata') return 'the messages API keeps an id of the end user only';
  return messagesFields.has(key)
    ? 'a field of the messages API, and not of chat completions'
    : 'the messages API has no such field';
}

function isEmpty(value: Json): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function writeServiceTier(tier: Json, { fastMode }: UpstreamTraits, notes: Notes): JsonMembers {
  switch (tier) {
    case 'auto':
      return { service_tier: 'auto' };
    case 'default':
      return { service_tier: 'standard_only' };
    case 'priority':
      notes.changed(['service_tier'], 'priority is used where the account has it');
      return { service_tier: 'auto' };
    case 'fast':
      if (fastMode === true) return { speed: 'fast' };
      notes.lost(['service_tier'], 'the fast mode is not open to this account');
      return { service_tier: 'auto' };
    default:
      notes.lost(['service_tier'], 'the provider has no such tier');
      return {};
  }
}

// How much the model may think, in the form that it understands.

interface ThinkingQuestion {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly maxTokens: number;
}

/** What is sent; `on` means that sampling must be left alone. */
interface WrittenThinking {
  readonly thinking?: JsonObject;
  readonly effort?: Effort;
  readonly on: boolean;
}

const nothing: WrittenThinking = { on: false };

interface BudgetShare {
  /** Of the output cap, which includes thinking in both dialects. */
  readonly percent: number;
  /** Tokens at most: a cap that the client did not choose is the model's own, 64,000 tokens and more. */
  readonly most: number;
}

/**
 * The bounds lie between the thresholds by which budgets are read as efforts, so that an effort comes
 * back as itself; other gateways send 1,024 to 16,384 tokens (docs/user/reasoning.md).
 */
const budgetShares: ReadonlyMap<Effort, BudgetShare> = new Map<Effort, BudgetShare>([
  ['low', { percent: 10, most: 4096 }],
  ['medium', { percent: 30, most: 8192 }],
  ['high', { percent: 60, most: 16_384 }],
  ['xhigh', { percent: 80, most: 32_768 }],
  ['max', { percent: 90, most: Infinity }],
]);
export const minBudget = 1024;

export function writeThinking(question: ThinkingQuestion, notes: Notes): WrittenThinking {
  const { conversation, traits } = question;
  const { reasoning } = conversation;
  if (reasoning === undefined || requestsNothing(reasoning)) return writeDefaultThinking(question);
  const wanted = reasoning.effort !== 'none';
  if (traits.thinking === 'none') {
    if (wanted) notes.lost(reasoningPath(reasoning), 'the model does not think');
    return nothing;
  }
  const obstacle = wanted ? findObstacle(question) : undefined;
  if (obstacle !== undefined)
    notes.changed(reasoningPath(reasoning), `thinking is off: ${obstacle}`);
  const thinks = wanted && obstacle === undefined;
  if (traits.thinking === 'adaptive') {
    return thinks ? writeAdaptive(reasoning, traits, notes) : writeOff(reasoning, traits, notes);
  }
  if (thinks) return writeBudget(reasoning, question, notes);
  // Claude does not think unasked on a budget; models of other vendors do.
  return traits.thinksByDefault === true ? writeOff(reasoning, traits, notes) : nothing;
}

/** A model that thinks by default refuses a demanded tool call, too. */
function writeDefaultThinking({ conversation, traits }: ThinkingQuestion): WrittenThinking {
  const { thinkingOff = 'never', thinksByDefault, thinking } = traits;
  const must = thinking === 'adaptive' && thinksByDefault === true && thinkingOff !== 'never';
  if (!must || !demandsCall(conversation) || traits.refusesForcedTools === true) return nothing;
  return { thinking: { type: thinkingOff }, on: false };
}

/** As far off as the model lets itself be switched. */
function writeOff(
  reasoning: Reasoning,
  { thinkingOff = 'disabled', efforts }: UpstreamTraits,
  notes: Notes,
): WrittenThinking {
  if (thinkingOff !== 'never') return { thinking: { type: thinkingOff }, on: false };
  notes.changed(reasoningPath(reasoning), 'the model always thinks, as little as it can');
  return efforts.includes('low') ? { effort: 'low', on: true } : { on: true };
}

function requestsNothing({ effort, budgetTokens, adaptive }: Reasoning): boolean {
  return effort === undefined && budgetTokens === undefined && adaptive !== true;
}

/** What the provider refuses together with thinking: the harder promise wins. */
function findObstacle({ conversation, traits }: ThinkingQuestion): string | undefined {
  const { turns } = conversation;
  if (demandsCall(conversation) && traits.refusesForcedTools !== true) {
    return 'a tool call is demanded';
  }
  if (turns.at(-1)?.role === 'assistant' && traits.prefill && !endsPaused(turns)) {
    return 'the last assistant message is to be continued';
  }
  if (traits.thinking === 'budget' && lacksSignedThinking(turns)) {
    return 'the open tool turn does not begin with signed thinking';
  }
  return undefined;
}

/** The last assistant turn has calls that the turns after it answer, and no thinking first. */
function lacksSignedThinking(turns: readonly Turn[]): boolean {
  const at = turns.findLastIndex((turn) => turn.role === 'assistant');
  const parts = turns[at]?.parts ?? [];
  const answered = turns
    .slice(at + 1)
    .some((turn) => turn.parts.some((part) => part.type === 'tool-result'));
  if (!answered || !parts.some((part) => part.type === 'tool-call')) return false;
  const first = parts.find((part) => part.type !== 'reasoning' || isNative(part));
  return first?.type !== 'reasoning';
}

function writeAdaptive(
  reasoning: Reasoning,
  traits: UpstreamTraits,
  notes: Notes,
): WrittenThinking {
  const effort = adaptiveEffort(reasoning, notes);
  const known = effort === undefined ? undefined : knownEffort(effort, traits.efforts);
  if (effort !== undefined && known !== effort) {
    notes.changed(reasoningPath(reasoning), `the model knows ${known ?? 'no effort'} instead`);
  }
  return {
    thinking: { type: 'adaptive', display: displayOf(reasoning) },
    ...(known === undefined ? {} : { effort: known }),
    on: true,
  };
}

/** Newer models take an effort and no budget. */
function adaptiveEffort(reasoning: Reasoning, notes: Notes): Effort | undefined {
  const { effort, budgetTokens, adaptive } = reasoning;
  if (effort !== undefined) return effort === 'minimal' ? 'low' : effort;
  if (budgetTokens === undefined || adaptive === true) return undefined;
  notes.changed(reasoningPath(reasoning), 'the model takes an effort instead of a budget');
  return effortOfBudget(budgetTokens);
}

/** The only published thresholds. */
export function effortOfBudget(budgetTokens: number): Effort {
  if (budgetTokens >= 10_000) return 'high';
  return budgetTokens >= 5000 ? 'medium' : 'low';
}

/** `xhigh` may become `max` where only that is known, and both become `high` where neither is. */
export function knownEffort(effort: Effort, efforts: readonly Effort[]): Effort | undefined {
  const candidates: readonly Effort[] =
    effort === 'xhigh' ? ['xhigh', 'max', 'high'] : [effort, 'high'];
  return candidates.find((candidate) => efforts.includes(candidate));
}

function writeBudget(
  reasoning: Reasoning,
  { maxTokens }: ThinkingQuestion,
  notes: Notes,
): WrittenThinking {
  if (maxTokens <= minBudget) {
    notes.lost(reasoningPath(reasoning), `thinking needs an output cap above ${minBudget} tokens`);
    return nothing;
  }
  const wanted = reasoning.budgetTokens ?? budgetOf(reasoning.effort ?? 'high', maxTokens);
  const budget = Math.min(Math.max(wanted, minBudget), maxTokens - 1);
  if (reasoning.budgetTokens !== undefined && budget !== wanted) {
    notes.changed(reasoningPath(reasoning), `the budget must be from ${minBudget} to the cap`);
  }
  return {
    thinking: { type: 'enabled', budget_tokens: budget, display: displayOf(reasoning) },
    on: true,
  };
}

export function budgetOf(effort: Effort, maxTokens: number): number {
  const { percent, most } = budgetShares.get(effort) ?? { percent: 0, most: 0 };
  return Math.min(Math.floor((maxTokens * percent) / 100), most);
}

/** Where the client said it: chat clients have three spellings (openai-chat/request/read.ts). */
function reasoningPath(reasoning: Reasoning): FieldPath {
  const { budgetTokens } = reasoning;
  return pathOf(
    reasoning,
    budgetTokens === undefined ? ['reasoning_effort'] : ['thinking', 'budget_tokens'],
  );
}

/** Set explicitly, so that the answer contains thinking text to return. */
function displayOf({ hidden }: Reasoning): string {
  return hidden === true ? 'omitted' : 'summarized';
}

// Cache marks of a request: at most four, and only where the server takes them.

const maxMarks = 4;
const path = ['cache_control'];

/** Blocks and tools that requested a mark, in the order of the prompt: tools, system, messages. */
export class CacheMarks {
  readonly #enabled: boolean;
  readonly #write: WriteMark;
  readonly #prefix: Marked[] = [];
  readonly #messages: Marked[] = [];

  /**
   * @param enabled false for servers that cache by themselves or not at all.
   * @param write puts a mark on its block; absent = as a member of it.
   */
  constructor(enabled: boolean, write: WriteMark = writeControl) {
    this.#enabled = enabled;
    this.#write = write;
  }

  /** Remembers the mark of a tool or of a block of the system prompt. */
  prefix(block: JsonMembers, { cacheUntilHere }: PartBase): JsonMembers {
    if (cacheUntilHere !== undefined) this.#prefix.push({ block, mark: cacheUntilHere });
    return block;
  }

  /** Remembers the mark of a block of a message. */
  message(block: JsonMembers, { cacheUntilHere }: PartBase): JsonMembers {
    if (cacheUntilHere !== undefined) this.#messages.push({ block, mark: cacheUntilHere });
    return block;
  }

  /**
   * Writes the marks that fit: those of tools and system, then the latest of the messages.
   * @param taken marks that are elsewhere in the request.
   */
  apply(notes: Notes, taken: number): void {
    if (!this.#enabled) return;
    const free = maxMarks - taken;
    const prefix = lastOf(this.#prefix, free);
    const messages = lastOf(this.#messages, free - prefix.length);
    for (const { block, mark } of [...prefix, ...messages]) {
      this.#write(block, mark, notes);
    }
    const [left] = [...without(this.#prefix, prefix), ...without(this.#messages, messages)];
    if (left === undefined) return;
    notes.lost(pathOf(left.mark, path), `a request has at most ${maxMarks} cache marks`);
  }
}

type WriteMark = (block: JsonMembers, mark: CacheMark, notes: Notes) => void;

function writeControl(block: JsonMembers, mark: CacheMark, notes: Notes): void {
  block['cache_control'] = writeMark(mark, notes);
}

interface Marked {
  readonly block: JsonMembers;
  readonly mark: CacheMark;
}

function without(all: readonly Marked[], last: readonly Marked[]): readonly Marked[] {
  return all.slice(0, all.length - last.length);
}

function lastOf(marks: readonly Marked[], count: number): readonly Marked[] {
  return count <= 0 ? [] : marks.slice(-count);
}

export function writeMark(mark: CacheMark, notes: Notes): JsonObject {
  const { ttl } = mark;
  switch (ttl) {
    case undefined:
      return { type: 'ephemeral' };
    case '5m':
    case '1h':
      return { type: 'ephemeral', ttl };
    default:
      notes.changed([...pathOf(mark, path), 'ttl'], 'a prompt is cached for 5m or 1h');
      return ttl === '24h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' };
  }
}
