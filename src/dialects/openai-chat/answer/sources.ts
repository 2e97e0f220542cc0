/**
 * Sources that vendors list beside the text, without saying which words rest on them: Perplexity's `citations` and
 * `search_results`, xAI's `citations`; and the tools that Groq ran (`executed_tools`).
 */
import type { Citation, OpaquePart } from '../../../core/conversation.ts';
import { isArray, isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import { isPresent } from '../../shared/answers.ts';

/**
 * The sources that a document, a chunk, a message or a delta lists, each address once. No specification says how they are
 * written, so none of them fails an answer.
 * @returns `unread` if some of them have no address.
 */
export function listedSources(...holders: readonly (JsonObject | undefined)[]): {
  readonly citations: readonly Citation[];
  readonly unread: boolean;
} {
  const titles = new Map<string, string>();
  let unread = false;
  for (const holder of holders) {
    for (const member of [holder?.['citations'], holder?.['search_results']]) {
      if (!isPresent(member)) continue;
      for (const source of isArray(member) ? member : [member]) {
        const url = textOf(isObject(source) ? source['url'] : source);
        const title = isObject(source) ? textOf(source['title']) : '';
        if (url === '') unread = true;
        else if (title !== '' || !titles.has(url)) titles.set(url, title);
      }
    }
  }
  return { citations: [...titles].map(([url, title]) => citationOf(url, title)), unread };
}

function citationOf(url: string, title: string): Citation {
  const value = { type: 'url_citation', url_citation: { url, title } };
  return {
    url,
    ...(title === '' ? {} : { title }),
    native: { dialect: 'openai-chat', value },
  };
}

/** A tool that the provider ran. */
export function executedTool(value: JsonObject): OpaquePart {
  return { type: 'opaque', dialect: 'openai-chat', value };
}

/** Runs of a stream. The beginning of one may come before its result, and an entry may be repeated. */
export class ExecutedTools {
  readonly #begun = new Map<Json | undefined, JsonObject>();
  readonly #told = new Map<Json | undefined, string>();

  read(entry: JsonObject): void {
    const { index } = entry;
    const members = Object.entries(entry).filter(([, value]) => isPresent(value));
    this.#begun.set(index, { ...this.#begun.get(index), ...Object.fromEntries(members) });
  }

  /** The runs that were not returned before. */
  take(): readonly OpaquePart[] {
    if (this.#begun.size === 0) return [];
    const fresh = [...this.#begun].filter(([index, run]) => {
      const json = JSON.stringify(run);
      const isRepeated = this.#told.get(index) === json;
      this.#told.set(index, json);
      return !isRepeated;
    });
    this.#begun.clear();
    return fresh.map(([, run]) => executedTool(run));
  }
}
