/** How much the model may reason: three spellings of three vendors (wire/translation.md §1.1, §4.1). */
import type { Effort, JsonObject, Reasoning } from '../../core/conversation.ts';
import type { Notes } from '../../core/notes.ts';
import { badValue, readObject } from './fields.ts';

const efforts: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
const thinkingKeys: ReadonlySet<string> = new Set(['type', 'budget_tokens', 'display']);
const reasoningKeys: ReadonlySet<string> = new Set(['effort', 'max_tokens', 'exclude', 'enabled']);

/** The messages spelling (`thinking`) wins, then OpenRouter's (`reasoning`), then OpenAI's. */
export function readReasoningControl(body: JsonObject, notes: Notes): Reasoning | undefined {
  const effort = readEffort(body['reasoning_effort'], ['reasoning_effort']);
  const thinking = readObject(body, 'thinking');
  if (thinking !== undefined) {
    noteUnknown('thinking', thinking, { known: thinkingKeys, notes });
    return readThinking(thinking, effort);
  }
  const reasoning = readObject(body, 'reasoning');
  if (reasoning !== undefined) {
    noteUnknown('reasoning', reasoning, { known: reasoningKeys, notes });
    return readOpenRouterReasoning(reasoning, effort);
  }
  return effort === undefined ? undefined : { effort };
}

interface Known {
  readonly known: ReadonlySet<string>;
  readonly notes: Notes;
}

/** New members appear before the gateway knows them (A4). */
function noteUnknown(key: string, value: JsonObject, { known, notes }: Known): void {
  for (const [inner, member] of Object.entries(value)) {
    if (known.has(inner) || member === null) continue;
    notes.lost([key, inner], 'not known to the model');
  }
}

function readThinking(thinking: JsonObject, effort: Effort | undefined): Reasoning | undefined {
  const hidden = thinking['display'] === 'omitted' ? { hidden: true } : {};
  const budget = thinking['budget_tokens'];
  switch (thinking['type']) {
    case 'disabled':
      return { effort: 'none' };
    case 'enabled':
      return typeof budget === 'number'
        ? { budgetTokens: budget, ...hidden }
        : { effort: effort ?? 'medium', ...hidden };
    case 'adaptive':
      return { adaptive: true, ...(effort === undefined ? {} : { effort }), ...hidden };
    default:
      throw badValue(['thinking', 'type'], "must be 'enabled', 'disabled' or 'adaptive'");
  }
}

function readOpenRouterReasoning(
  reasoning: JsonObject,
  outer: Effort | undefined,
): Reasoning | undefined {
  const { max_tokens: budget, enabled, exclude } = reasoning;
  const hidden = exclude === true ? { hidden: true } : {};
  if (enabled === false) return { effort: 'none' };
  const effort = readEffort(reasoning['effort'], ['reasoning', 'effort']) ?? outer;
  if (typeof budget === 'number') return { budgetTokens: budget, ...hidden };
  if (effort !== undefined) return { effort, ...hidden };
  if (enabled === true) return { effort: 'medium', ...hidden };
  return exclude === true ? { hidden: true } : undefined;
}

function readEffort(value: JsonObject[string], path: readonly string[]): Effort | undefined {
  if (value === undefined || value === null) return undefined;
  const effort = efforts.find((known) => known === value);
  if (effort === undefined) throw badValue(path, `must be one of ${efforts.join(', ')}`);
  return effort;
}
