/** What a provider's list says about a model, in whichever words (wire/messages.md §10.2). */
import type { JsonObject, Json } from '../core/conversation.ts';
import { isObject } from '../core/json.ts';

/** Absent = not said. */
export interface ModelFacts {
  readonly displayName?: string;
  /** Ms since the epoch. */
  readonly createdAt?: number;
  readonly maxInputTokens?: number;
  readonly maxOutputTokens?: number;
  /** As the messages API spells them. */
  readonly capabilities?: JsonObject;
  readonly lifecycle?: 'deprecated' | 'retired';
  readonly line?: string;
  readonly deprecatedAt?: string;
  readonly retiresAt?: string;
}

/** @param entry one model of a list in either dialect's form, or with what vendors add to it. */
export function readModelFacts(entry: JsonObject): ModelFacts {
  const { capabilities, lifecycle, top_provider: top } = entry;
  return {
    ...present('displayName', text(entry['display_name']) ?? text(entry['name'])),
    ...present('createdAt', createdAt(entry)),
    ...present('maxInputTokens', firstCount(entry, inputMembers)),
    ...present(
      'maxOutputTokens',
      firstCount(entry, outputMembers) ?? firstCount(isObject(top) ? top : {}, outputMembers),
    ),
    ...(isObject(capabilities) && entry['type'] === 'model' ? { capabilities } : {}),
    ...(lifecycle === 'deprecated' || lifecycle === 'retired' ? { lifecycle } : {}),
    ...present('line', text(entry['line'])),
    ...present('deprecatedAt', text(entry['deprecated_at'])),
    ...present('retiresAt', text(entry['retires_at'])),
  };
}

// Anthropic; vLLM; OpenRouter and Together; Groq; Mistral.
const inputMembers = [
  'max_input_tokens',
  'max_model_len',
  'context_length',
  'context_window',
  'max_context_length',
] as const;
const outputMembers = ['max_tokens', 'max_completion_tokens'] as const;

function firstCount(entry: JsonObject, names: readonly string[]): number | undefined {
  for (const name of names) {
    const value = entry[name];
    if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value;
  }
  return undefined;
}

/** `created_at` as text, or `created` in seconds; 0 stands for unknown. */
function createdAt({ created_at: at, created }: JsonObject): number | undefined {
  const ms = typeof at === 'string' ? Date.parse(at) : Number(created ?? 0) * 1000;
  return Number.isFinite(ms) && ms > 0 && ms < 8e15 ? Math.floor(ms) : undefined;
}

function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, 256) : undefined;
}

/** A member only when there is a value. */
function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  const member: { [P in K]?: V } = {};
  if (value !== undefined) member[key] = value;
  return member;
}
