/** Top-level fields of other dialects that chat completions cannot carry (translation.md §2.1). */
import type { DialectId, Extras, Json, JsonObject } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import { isArray } from './fields.ts';

/** An action or promise that would silently not happen. */
const refused: ReadonlyMap<string, string> = new Map([
  ['container', 'This model has no container to run code in.'],
  ['mcp_servers', 'This model does not call MCP servers by itself.'],
  ['inference_geo', 'This model cannot promise where it runs.'],
  ['thread', 'This model keeps no threads; send the whole conversation.'],
]);

/** Hints that this side has no use for. */
const ignored: ReadonlySet<string> = new Set(['cache_control', 'service_tier']);

/** @throws GatewayError `invalid_request` for a field whose loss would be a false promise. */
export function writeForeignExtras(extras: Extras, notes: Notes): void {
  const dialects: readonly DialectId[] = [
    'anthropic-messages',
    'openai-responses',
    'gemini',
    'bedrock-converse',
  ];
  for (const dialect of dialects) {
    const fields = extras[dialect];
    if (fields === undefined) continue;
    for (const [key, value] of Object.entries(fields)) {
      if (value === undefined || value === null) continue;
      if (dialect === 'anthropic-messages') writeMessagesField(key, value, notes);
      else notes.lost([key], 'chat completions has no such field');
    }
  }
}

function writeMessagesField(key: string, value: Json, notes: Notes): void {
  const reason = refused.get(key);
  if (reason !== undefined && !isEmpty(value)) throw unsupported([key], reason);
  if (key === 'fallbacks' && isArray(value) && value.length > 0) {
    throw unsupported([key], 'This model has no fallbacks of its own.');
  }
  if (ignored.has(key) || isEmpty(value)) return;
  for (const path of lostPaths(key, value)) {
    notes.lost(path, 'chat completions has no such field');
  }
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
