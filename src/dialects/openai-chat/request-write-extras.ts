/** Top-level fields of other dialects that chat completions cannot carry (translation.md §2.1). */
import type { DialectId, Extras, Json, JsonObject } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { isArray, type JsonMembers } from './fields.ts';

/** An action or promise that would silently not happen. */
const refused: ReadonlyMap<string, string> = new Map([
  ['container', 'This model has no container to run code in.'],
  ['mcp_servers', 'This model does not call MCP servers by itself.'],
  ['thread', 'This model keeps no threads; send the whole conversation.'],
]);

/**
 * What became of fields that only other dialects know: members of the request, notes or a refusal.
 * @throws GatewayError `invalid_request` for a field whose loss would be a false promise.
 */
export function writeForeignExtras(
  extras: Extras,
  traits: UpstreamTraits,
  notes: Notes,
): JsonMembers {
  const members: JsonMembers = {};
  const dialects: readonly DialectId[] = [
    'anthropic-messages',
    'openai-responses',
    'gemini',
    'bedrock-converse',
  ];
  for (const dialect of dialects) {
    for (const [key, value] of Object.entries(extras[dialect] ?? {})) {
      if (value === undefined || value === null) continue;
      if (dialect === 'anthropic-messages') {
        Object.assign(members, writeMessagesField(key, value, { traits, notes }));
      } else notes.lost([key], 'chat completions has no such field');
    }
  }
  return members;
}

interface Target {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

function writeMessagesField(key: string, value: Json, target: Target): JsonMembers {
  if (isEmpty(value)) return {};
  const { traits, notes } = target;
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
  for (const path of lostPaths(key, value)) {
    notes.lost(path, 'chat completions has no such field');
  }
  return {};
}

/** `speed` is the stronger wish of the two, whatever their order. */
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

/** Where the prompt is processed is a promise; `global` asks for none. */
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
