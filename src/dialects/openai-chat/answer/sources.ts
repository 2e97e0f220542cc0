/**
 * Sources that vendors list beside the text, without saying which words rest on them: Perplexity's `citations` and
 * `search_results`, xAI's `citations`; and the tools that Groq ran (`executed_tools`).
 */
import type { Citation, OpaquePart } from '../../../core/conversation.ts';
import { isArray, isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import { isPresent } from '../../shared/answers.ts';

interface ListedSources {
  readonly citations: readonly Citation[];
  readonly unread: boolean;
}

export const noSources: ListedSources = { citations: [], unread: false };

/**
 * The sources that a document, a chunk, a message or a delta lists, each address once. No specification says how they are
 * written, so none of them fails an answer.
 * @returns `unread` if some of them have no address.
 */
export function listedSources(...holders: readonly (JsonObject | undefined)[]): ListedSources {
  if (!holders.some(listsSources)) return noSources;
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

function listsSources(holder: JsonObject | undefined): boolean {
  return isPresent(holder?.['citations']) || isPresent(holder?.['search_results']);
}

function citationOf(url: string, title: string): Citation {
  const value = { type: 'url_citation', url_citation: { url, title } };
  return {
    url,
    ...(title === '' ? {} : { title }),
    native: { dialect: 'openai-chat', value },
  };
}

/** The lists of sources of a stream. Perplexity sends the same ones in each chunk. */
export class SourceLists {
  #last: readonly (Json | undefined)[] = [];

  /** Undefined for a holder whose lists are those of the one before, or that has none. */
  read(holder: JsonObject): ReturnType<typeof listedSources> | undefined {
    const lists = [holder['citations'], holder['search_results']];
    if (lists.every((list, i) => list === undefined || isSameList(list, this.#last[i]))) {
      return undefined;
    }
    this.#last = lists;
    return listedSources(holder);
  }
}

function isSameList(list: Json, last: Json | undefined): boolean {
  if (!isArray(list) || !isArray(last) || list.length !== last.length) return false;
  return list.every((source, i) => isSameSource(source, last[i]));
}

function isSameSource(source: Json, last: Json | undefined): boolean {
  if (!isObject(source) || !isObject(last)) return source === last;
  return source['url'] === last['url'] && source['title'] === last['title'];
}

/**
 * The tools that the provider ran, of a message or a delta. No specification says how they are written, so none of them
 * fails an answer.
 * @returns `unread`: some entries are not objects, and are left out of `runs`.
 */
export function listedRuns({ executed_tools: member }: JsonObject): {
  readonly runs: readonly JsonObject[];
  readonly unread: boolean;
} {
  if (!isPresent(member)) return noRuns;
  const list = isArray(member) ? member : [member ?? null];
  const runs = list.filter(isObject).filter((run) => Object.keys(run).length > 0);
  return { runs, unread: list.some((run) => isPresent(run) && !isObject(run)) };
}

const noRuns = { runs: [], unread: false };

/** A tool that the provider ran. */
export function executedTool(value: JsonObject): OpaquePart {
  return { type: 'opaque', dialect: 'openai-chat', value };
}

/**
 * Runs of a stream. The beginning of one may come before its result, and an entry may be repeated. One without an index
 * is a run of its own, unless it is the same as one before.
 */
export class ExecutedTools {
  readonly #begun = new Map<Json | undefined, JsonObject>();
  readonly #told = new Map<Json | undefined, string>();

  read(entry: JsonObject): void {
    const index = isPresent(entry['index']) ? entry['index'] : JSON.stringify(entry);
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
