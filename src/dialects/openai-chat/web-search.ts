/**
 * Web search that the provider runs (wire/translation.md §1.1, §2.2; A10): a tool in messages, an
 * option or a plugin here. Only where the operator allows it, since providers charge for it.
 */
import type { Json, JsonObject, Tool } from '../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import type { JsonMembers } from './fields.ts';

/** The type of the canonical tool that `web_search_options` is read as. */
export const searchOptions = 'web_search_options';

/** @throws GatewayError when a function has the name that the search will have. */
export function readWebSearch(options: Json | undefined, tools: readonly Tool[]): readonly Tool[] {
  if (!isObject(options)) return [];
  if (tools.some(({ name }) => name === 'web_search')) {
    throw unsupported([searchOptions], "A function of the name 'web_search' is in its way.");
  }
  const value = { ...options, type: searchOptions };
  return [{ name: 'web_search', schema: {}, native: { dialect: 'openai-chat', value } }];
}

/** Whether the call may use the search that the model brings along. */
export function searchesByItself({ serverTools, webSearch }: UpstreamTraits): boolean {
  return serverTools === true && (webSearch === 'options' || webSearch === 'plugin');
}

const carried: ReadonlySet<string> = new Set(['type', 'name', 'user_location', 'cache_control']);

/** The members of a chat request that stand for a `web_search_…` tool of the messages API. */
export function writeWebSearch(
  tool: JsonObject,
  { webSearch }: UpstreamTraits,
  { notes, path }: { readonly notes: Notes; readonly path: FieldPath },
): JsonMembers {
  const { user_location: location } = tool;
  const located = webSearch === 'options' && isObject(location);
  for (const [key, value] of Object.entries(tool)) {
    if (value === null || (carried.has(key) && (key !== 'user_location' || located))) continue;
    notes.lost([...path, key], 'the search of this model cannot be told so');
  }
  notes.changed([...path, 'type'], 'the model searches by itself');
  if (webSearch === 'plugin') return { plugins: [{ id: 'web' }] };
  if (!located) return { web_search_options: {} };
  const { type: _type, ...approximate } = location;
  return { web_search_options: { user_location: { type: 'approximate', approximate } } };
}
