/**
 * What a request asks for that has a price by the piece: pictures in its prompt, and web searches that the
 * provider runs. Vendors count the first by tokens alone, and many do not report the second.
 */
import type { ClientDialect } from '../core/dialect.ts';
import type { Json, JsonObject } from '../core/conversation.ts';
import { isObject, type JsonSource } from '../core/json.ts';
import type { Target } from '../core/provider.ts';
import { promptOf, type Prompt } from '../tokens/prompt.ts';

/** Searches that are reserved where the request says no number. */
const usualSearches = 5;
/** Results of one search; OpenRouter charges its `web` plugin by them, five by default. */
const usualResults = 5;
/** No vendor runs as many: a larger number in a request is none to reckon with. */
const mostSearches = 1_000_000;

export interface AskedSearches {
  /** The member that asks for them. */
  readonly member: string;
  /** That the provider may run. */
  readonly most: number;
  /** What counts where the provider reports none: one that always searches did. */
  readonly unreported: number;
}

/** The searches that this target may run for the request; undefined = none. */
export function askedSearches(
  body: JsonObject,
  dialect: Pick<ClientDialect, 'id'>,
  { provider, model }: Target,
): AskedSearches | undefined {
  const { webSearch, serverTools } = provider.traits(model);
  const always = webSearch === 'plugin' || webSearch === 'options';
  const found: AskedSearches[] = [];
  if (webSearch === 'plugin' && model.includes(':online')) found.push(once('model'));
  // What is not told in another format's words is refused or left out.
  if (provider.dialect.id === dialect.id || serverTools === true) {
    if (isObject(body['web_search_options'])) found.push(once('web_search_options'));
    for (const tool of listOf(body['tools'])) found.push(...ofTool(tool, always));
    for (const plugin of listOf(body['plugins'])) found.push(...ofPlugin(plugin));
  }
  const [first] = found;
  if (first === undefined) return undefined;
  const sum = (count: (each: AskedSearches) => number): number =>
    found.reduce((total, each) => Math.min(total + count(each), mostSearches), 0);
  return {
    member: first.member,
    most: sum(({ most }) => most),
    unreported: sum(({ unreported }) => unreported),
  };
}

function once(member: string): AskedSearches {
  return { member, most: usualSearches, unreported: 1 };
}

/** `web_search_…` of the messages format, `openrouter:web_search`; the model may leave it alone. */
function ofTool(tool: Json, always: boolean): readonly AskedSearches[] {
  if (!isObject(tool)) return [];
  const { type, max_uses: uses } = tool;
  if (
    typeof type !== 'string' ||
    !(type.startsWith('web_search') || type.endsWith(':web_search'))
  ) {
    return [];
  }
  const most = typeof uses === 'number' && uses >= 0 ? Math.ceil(uses) : usualSearches;
  return most === 0 ? [] : [{ member: 'tools', most, unreported: always ? 1 : 0 }];
}

function ofPlugin(plugin: Json): readonly AskedSearches[] {
  if (!isObject(plugin) || plugin['id'] !== 'web' || plugin['enabled'] === false) return [];
  const results = plugin['max_results'];
  const paid = typeof results === 'number' ? Math.ceil(results / usualResults) : 1;
  const unreported = Math.max(1, paid);
  return [{ member: 'plugins', most: Math.max(usualSearches, unreported), unreported }];
}

/** Of a long body they are counted once. */
const images = new WeakMap<JsonSource, number>();

/** Pictures in the prompt. A body that names no medium is not looked through for them. */
export function askedImages(source: JsonSource): number {
  const known = images.get(source);
  if (known !== undefined) return known;
  // Written with escapes, a name may be any.
  const may = source.holds('media') || source.holds('escape');
  return rememberImages(source, may ? promptOf(source.value) : { media: [] });
}

/** The same, of who has read the prompt anyway. */
export function rememberImages(source: JsonSource, { media }: Pick<Prompt, 'media'>): number {
  const count = media.filter(({ kind }) => kind === 'image').length;
  images.set(source, count);
  return count;
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
