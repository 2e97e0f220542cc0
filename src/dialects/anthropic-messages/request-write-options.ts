/** Sampling, output format, end user and foreign fields (wire/translation.md §1.1, §1.3, §1.4, §1.7). */
import { createHash } from 'node:crypto';
import type {
  Conversation,
  Json,
  JsonObject,
  OutputFormat,
  Sampling,
} from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import type { Steps } from '../../core/steps.ts';
import { plannedStops } from '../../core/stops.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { isPresent, type JsonMembers } from './fields.ts';
import { strictSchema } from './schema-subset.ts';

export interface OptionsWriting {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** Thinking is on: the provider then takes no sampling parameters. */
  readonly thinks: boolean;
}

/** `temperature`, `top_p`, `top_k`, `stop_sequences`. */
export function writeSampling(sampling: Sampling, writing: OptionsWriting): JsonMembers {
  const { traits, notes } = writing;
  const members = writeTuning(sampling, writing);
  if (sampling.seed !== undefined) notes.lost(['seed'], 'the model cannot repeat itself');
  // Those that the upstream cannot take are looked for by the path.
  const { native } = plannedStops(sampling.stop, traits);
  if (native.length > 0) members['stop_sequences'] = native;
  return members;
}

function writeTuning({ temperature, topP, topK }: Sampling, writing: OptionsWriting): JsonMembers {
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

export interface WrittenOutput {
  readonly format?: JsonObject;
  /** What the system prompt must say, because nothing enforces it. */
  readonly instruction?: string;
}

/** @throws GatewayError `invalid_request` for a schema that the upstream cannot enforce. */
export function* writeOutput(
  output: OutputFormat,
  traits: UpstreamTraits,
  notes: Notes,
): Steps<WrittenOutput> {
  if (output.type === 'text') return {};
  if (output.schema === undefined) {
    notes.changed(['response_format'], 'asked for in the prompt, not enforced');
    return { instruction: 'Answer with one bare JSON object and nothing else.' };
  }
  if (traits.responseFormat !== 'schema') {
    throw unsupported(['response_format'], 'This model cannot be held to a JSON schema.');
  }
  if (output.strict === false) {
    notes.changed(['response_format', 'json_schema', 'strict'], 'the schema is enforced anyway');
  }
  const { schema, moved } = yield* strictSchema(output.schema);
  if (moved.length > 0) {
    notes.changed(
      ['response_format', 'json_schema', 'schema'],
      `only described: ${moved.join(', ')}`,
    );
  }
  return { format: { type: 'json_schema', schema } };
}

const maxUserIdLength = 256;

/** Longer ids are hashed: cutting them would merge users with a common prefix. */
export function writeEndUser(endUser: string | undefined): JsonObject | undefined {
  if (endUser === undefined) return undefined;
  if (endUser.length <= maxUserIdLength) return { user_id: endUser };
  return { user_id: createHash('sha256').update(endUser).digest('hex') };
}

/** Chat fields that ask for nothing when they have this value, besides null and empty ones. */
const chatDefaults: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['n', 1],
  ['logprobs', false],
  ['store', false],
  ['frequency_penalty', 0],
  ['presence_penalty', 0],
  ['top_logprobs', 0],
]);

/** What other dialects sent and this one has no field for: dropped and noted, nothing vanishes. */
export function writeForeignFields(
  extras: Conversation['extras'],
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  const members: JsonMembers = {};
  for (const [dialect, fields] of Object.entries(extras)) {
    if (dialect === 'anthropic-messages') continue;
    for (const [key, value] of Object.entries(fields ?? {})) {
      if (!isPresent(value) || value === chatDefaults.get(key) || isEmpty(value)) continue;
      if (key === 'service_tier') Object.assign(members, writeServiceTier(value, traits, notes));
      else notes.lost([key], 'the messages API has no such field');
    }
  }
  return members;
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
