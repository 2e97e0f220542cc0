/** Options of other dialects: what a request keeps of them, what is noted as lost, and what is refused. */
import { createHash } from 'node:crypto';
import { unsupported } from '../../../core/errors.ts';
import { type Notes, memberPath } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import {
  type Json,
  type JsonObject,
  isObject,
  type JsonMembers,
  isArray,
} from '../../../json/value.ts';
import type { Conversation } from '../../../core/conversation.ts';

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
  why: WhyLost,
): JsonMembers {
  const members: JsonMembers = {};
  for (const [key, value] of Object.entries(extras)) {
    if (value === undefined || value === null) continue;
    Object.assign(members, writeMessagesField(key, value, { traits, notes, why }));
  }
  return members;
}

/** The upstream that gets the request, and where losses are noted. */
export interface Target {
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
  throw unsupported(['inference_geo'], 'The region in which this model runs is not guaranteed.');
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

/** Chat fields that request nothing when they have this value, besides null and empty ones. */
export const chatDefaults: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['n', 1],
  ['logprobs', false],
  ['store', false],
  ['frequency_penalty', 0],
  ['presence_penalty', 0],
  ['top_logprobs', 0],
]);
