/** Sampling and end user, as far as the upstream takes them. */
import { createHash } from 'node:crypto';
import type { Sampling } from '../../core/conversation.ts';
import type { Notes } from '../../core/notes.ts';
import { plannedStops } from '../../core/stops.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import type { JsonMembers } from './fields.ts';

/** Notes name the fields of the messages dialect: the only one that is translated to this one. */
export function writeSampling(
  sampling: Sampling,
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  const { maxOutputTokens, topK, seed } = sampling;
  const members: JsonMembers = {};
  if (maxOutputTokens !== undefined) members[traits.maxTokensField] = maxOutputTokens;
  writeTemperature(members, sampling, { traits, notes });
  if (topK !== undefined) {
    if (traits.topK) members['top_k'] = topK;
    else notes.lost(['top_k'], 'not known to the model');
  }
  if (seed !== undefined) {
    if (traits.seed) members['seed'] = seed;
    else notes.lost(['seed'], 'not known to the model');
  }
  return { ...members, ...writeStop(sampling.stop, traits) };
}

interface Target {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

function writeTemperature(
  members: JsonMembers,
  { temperature, topP }: Sampling,
  { traits, notes }: Target,
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

/** Those that the upstream cannot take are looked for by the path (core/stops.ts). */
function writeStop(stop: readonly string[] | undefined, traits: UpstreamTraits): JsonMembers {
  const { native } = plannedStops(stop, traits);
  return native.length === 0 ? {} : { stop: [...native] };
}

const maxEndUserLength = 64;

/** Longer ids are hashed: cutting them would merge users with a common prefix. */
export function writeEndUser(
  endUser: string | undefined,
  { endUserField }: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  if (endUser === undefined) return {};
  if (endUserField === undefined) {
    notes.lost(['metadata', 'user_id'], 'the provider takes no id of the end user');
    return {};
  }
  const short = endUser.length <= maxEndUserLength;
  return {
    [endUserField]: short ? endUser : createHash('sha256').update(endUser).digest('hex'),
  };
}
