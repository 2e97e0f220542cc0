/** `thinking` and `output_config` (wire/messages.md §2.2, §2.3; wire/translation.md §4.2). */
import type { Effort, Json, JsonObject, OutputFormat, Reasoning } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';

const efforts: ReadonlyMap<string, Effort> = new Map<string, Effort>([
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'xhigh'],
  ['max', 'max'],
]);

/** Undefined when the request says nothing of thinking or effort. */
export function readReasoning(body: JsonObject, notes: Notes): Reasoning | undefined {
  const effort = readEffort(body['output_config'], notes);
  const thinking = isObject(body['thinking']) ? body['thinking'] : undefined;
  const hidden = thinking?.['display'] === 'omitted' ? { hidden: true } : {};
  const told = effort === undefined ? {} : { effort };
  if (thinking !== undefined) noteUnknown(thinking, notes);
  switch (thinking?.['type']) {
    case undefined:
      return effort === undefined ? undefined : { effort };
    case 'between_tools':
      notes.changed(['thinking', 'type'], 'thinking is off, between calls of tools as well');
      return { effort: 'none' };
    case 'disabled':
      if (effort !== undefined) {
        notes.lost(['output_config', 'effort'], 'thinking is disabled in the same request');
      }
      return { effort: 'none' };
    case 'enabled': {
      const budget = thinking?.['budget_tokens'];
      return {
        ...told,
        ...(typeof budget === 'number' ? { budgetTokens: budget } : {}),
        ...hidden,
      };
    }
    case 'adaptive':
      return { ...told, adaptive: true, ...hidden };
    default:
      notes.changed(['thinking', 'type'], 'an unknown kind of thinking was read as "adaptive"');
      return { ...told, adaptive: true, ...hidden };
  }
}

const thinkingKeys: ReadonlySet<string> = new Set(['type', 'budget_tokens', 'display']);

/** New members appear before the gateway knows them (A4). */
function noteUnknown(thinking: JsonObject, notes: Notes): void {
  for (const [key, value] of Object.entries(thinking)) {
    if (thinkingKeys.has(key) || value === null) continue;
    notes.lost(['thinking', key], 'not known to the model');
  }
}

function readEffort(config: Json | undefined, notes: Notes): Effort | undefined {
  const value = isObject(config) ? config['effort'] : undefined;
  if (typeof value !== 'string') return undefined;
  const effort = efforts.get(value);
  if (effort === undefined) notes.lost(['output_config', 'effort'], 'the effort is not known here');
  return effort;
}

/** How strictly the format is enforced is for the other dialect's writer to decide. */
export function readOutput(body: JsonObject): OutputFormat {
  const config = body['output_config'];
  const format = (isObject(config) ? config['format'] : undefined) ?? body['output_format'];
  if (!isObject(format) || !isObject(format['schema'])) return { type: 'text' };
  return { type: 'json', schema: format['schema'] };
}
