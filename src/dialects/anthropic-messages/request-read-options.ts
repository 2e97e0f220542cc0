/** `thinking` and `output_config` (wire/messages.md §2.2, §2.3; wire/translation.md §4.2). */
import type { Effort, JsonObject, OutputFormat, Reasoning } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import { placed } from '../../core/places.ts';
import { isArray } from './fields.ts';

const efforts: ReadonlyMap<string, Effort> = new Map<string, Effort>([
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'xhigh'],
  ['max', 'max'],
]);

/** Undefined when the request says nothing of thinking or effort. */
export function readReasoning(body: JsonObject, notes: Notes): Reasoning | undefined {
  const told = readEffort(body, notes);
  const reasoning = readThinking(body, told, notes);
  return told === undefined || reasoning === undefined ? reasoning : placed(reasoning, told.path);
}

/** An effort, and where it was set. */
interface ToldEffort {
  readonly effort: Effort;
  readonly path: FieldPath;
}

function readThinking(
  body: JsonObject,
  at: ToldEffort | undefined,
  notes: Notes,
): Reasoning | undefined {
  const thinking = isObject(body['thinking']) ? body['thinking'] : undefined;
  const hidden = thinking?.['display'] === 'omitted' ? { hidden: true } : {};
  const told = at === undefined ? {} : { effort: at.effort };
  if (thinking !== undefined) noteUnknown(thinking, notes);
  switch (thinking?.['type']) {
    case undefined:
      return at === undefined ? undefined : told;
    case 'between_tools':
      notes.changed(['thinking', 'type'], 'thinking is off, between calls of tools as well');
      return { effort: 'none' };
    case 'disabled':
      if (at !== undefined) notes.lost(at.path, 'thinking is disabled in the same request');
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

/** The last instruction that sets an effort holds for what comes behind it, else the request's own. */
function readEffort(body: JsonObject, notes: Notes): ToldEffort | undefined {
  const messages = isArray(body['messages']) ? body['messages'] : [];
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i];
    if (!isObject(message) || message['role'] !== 'system') continue;
    const told = effortOf(message, ['messages', i], notes);
    if (told !== undefined) return told;
  }
  return effortOf(body, [], notes);
}

function effortOf(holder: JsonObject, at: FieldPath, notes: Notes): ToldEffort | undefined {
  const config = holder['output_config'];
  const value = isObject(config) ? config['effort'] : undefined;
  if (typeof value !== 'string') return undefined;
  const path = [...at, 'output_config', 'effort'];
  const effort = efforts.get(value);
  if (effort !== undefined) return { effort, path };
  notes.lost(path, 'the effort is not known here');
  return undefined;
}

/** How strictly the format is enforced is for the other dialect's writer to decide. */
export function readOutput(body: JsonObject): OutputFormat {
  const config = body['output_config'];
  const format = (isObject(config) ? config['format'] : undefined) ?? body['output_format'];
  if (!isObject(format) || !isObject(format['schema'])) return { type: 'text' };
  return { type: 'json', schema: format['schema'] };
}
