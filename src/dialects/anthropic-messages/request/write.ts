/**
 * Renders a conversation of any dialect as a messages request. The
 * same conversation gives the same bytes each time: prompt caches depend on it.
 */
import { createHash } from 'node:crypto';
import type {
  Conversation,
  OutputFormat,
  Part,
  PartBase,
  Sampling,
} from '../../../core/conversation.ts';
import { type Ask, plannedStops } from '../../../core/dialect.ts';
import { unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { isObject, type Json, type JsonObject, type JsonMembers } from '../../../json/value.ts';
import { cacheHints, responsesOptions } from '../../shared/request/responses-fields.ts';
import { canDemandCalls, jsonTool } from '../../shared/request/demanded-call.ts';
import { isBlank } from '../../shared/request/message-turns.ts';
import { isPresent, messagesFields } from '../fields.ts';
import { writeTurns, type Writing } from './write-messages.ts';
import { strictSchema, writeJsonTool, writeTools } from './write-tools.ts';
import { withQuestion } from '../../shared/request/instructions.ts';
import { chatDefaults } from '../../shared/request/foreign-options.ts';
import { type WrittenThinking, writeThinking } from './thinking.ts';
import { CacheMarks } from './cache-marks.ts';

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
  if (sampling.seed !== undefined) notes.lost(['seed'], 'the model takes no seed');
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
  const why = thinks ? 'thinking is on' : 'the model takes no sampling parameters';
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
