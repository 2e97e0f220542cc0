/** Members of a Responses request that writers of other dialects read: those without a canonical member, and grammars. */
import type { Extras, MediaPart, Tool } from '../../../core/conversation.ts';
import { unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import { isObject, type Json } from '../../../json/value.ts';

/** The members that another API may have as well; absent where they say what it does anyway. */
interface ResponsesOptions {
  readonly verbosity?: string;
  readonly serviceTier?: string;
}

export function responsesOptions(extras: Extras): ResponsesOptions {
  const { text, service_tier: tier } = extras['openai-responses'] ?? {};
  const verbosity = isObject(text) ? text['verbosity'] : undefined;
  return {
    ...(typeof verbosity === 'string' && verbosity !== 'medium' ? { verbosity } : {}),
    ...(typeof tier === 'string' && tier !== 'auto' ? { serviceTier: translatedTier(tier) } : {}),
  };
}

/** The word with which other APIs are asked for this tier of a Responses request. */
export function translatedTier(tier: string): string {
  return tier === 'ultrafast' ? 'fast' : tier;
}

/** The tier that a client of any dialect requests, by OpenAI's words; undefined where it takes what is served anyway. */
export function requestedTier(extras: Extras): Json | undefined {
  if (extras['anthropic-messages']?.['service_tier'] === 'standard_only') return 'default';
  const tier = responsesOptions(extras).serviceTier ?? extras['openai-chat']?.['service_tier'];
  return tier === null || tier === 'auto' ? undefined : tier;
}

/** Hints about caching that both APIs of OpenAI have, and that other vendors ignore. */
export const cacheHints: readonly string[] = [
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
];

/** A grammar that the input of a free-text tool is held to. */
export interface Grammar {
  readonly syntax: string;
  readonly definition: string;
}

/** Chat completions nests it one level deeper. */
export function grammarOf({ extras }: Tool): Grammar | undefined {
  const chat = extras?.['openai-chat']?.['format'];
  const format = isObject(chat) ? chat['grammar'] : extras?.['openai-responses']?.['format'];
  if (!isObject(format)) return undefined;
  const { syntax, definition } = format;
  return typeof syntax === 'string' && typeof definition === 'string'
    ? { syntax, definition }
    : undefined;
}

/** How closely an image is to be examined; undefined where the model decides. */
export function imageDetail({ extras }: MediaPart): string | undefined {
  const detail = extras?.['openai-responses']?.['detail'] ?? extras?.['openai-chat']?.['detail'];
  return typeof detail === 'string' && detail !== 'auto' ? detail : undefined;
}

/**
 * The description of a tool, with its grammar as text if the upstream does not enforce it.
 * @throws GatewayError for a chat client's grammar. Those of the Responses API check the input themselves: Codex always
 * sends one.
 */
export function describedTool(tool: Tool, notes: Notes): string | undefined {
  if (tool.extras?.['openai-chat']?.['format'] !== undefined) {
    const path = [...pathOf(tool, ['tools']), 'custom', 'format'];
    throw unsupported(path, 'This model cannot be held to a grammar.');
  }
  const grammar = tool.freeText === true ? grammarOf(tool) : undefined;
  if (grammar === undefined) return tool.description;
  const path = [...pathOf(tool, ['tools']), 'format'];
  notes.changed(path, 'the model is asked to keep to the grammar, and not held to it');
  const { syntax, definition } = grammar;
  const rule = `The input must match this ${syntax} grammar:\n${definition}`;
  return tool.description === undefined ? rule : `${tool.description}\n\n${rule}`;
}
