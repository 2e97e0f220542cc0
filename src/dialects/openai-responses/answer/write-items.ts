/** Writes items of an answer: their ids, the client's kind and name of a tool, and sealed reasoning. */
import type {
  Citation,
  Extras,
  OpaquePart,
  ReasoningPart,
  TextSpan,
  Tool,
  ToolCallPart,
} from '../../../core/conversation.ts';
import type { AnswerContext } from '../../../core/dialect.ts';
import { tryParseInnerObject } from '../../../json/parse.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import { originalToolName, AnswerCallIds, allowedToolId } from '../../shared/tool-names.ts';
import { sealCall, sealReasoning } from '../../shared/seals.ts';
import {
  type CallKind,
  callItems,
  callMembers,
  cutMembers,
  dialectId,
  idPrefixes,
  isCallKind,
  isItemId,
  isStableItemId,
  itemExtras,
} from '../items.ts';
import { spanOf } from '../../shared/answers.ts';

/** A call with the client's kind and name of the tool. */
export interface AnsweredCall {
  readonly kind: CallKind;
  readonly id: string;
  readonly callId: string;
  /** `name`, and `namespace` if the tool is in one, of functions and free texts. */
  readonly named: JsonObject;
}

/** Codex sends longer ids back unchanged, and the service refuses them. */
const maxCallId = 64;

/** A search of a messages upstream. */
interface Search {
  readonly id: string;
  readonly query: string;
}

const none: readonly JsonObject[] = [];

export class AnswerItems {
  /** Searches whose results have not come yet. */
  readonly #searches: Search[] = [];
  readonly #context: AnswerContext;
  readonly #tools: readonly Tool[];
  readonly #ids: AnswerCallIds;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#tools = context.conversation?.tools ?? [];
    this.#ids = new AnswerCallIds(context, { prefix: 'call_', anyText: true });
  }

  get hidesReasoning(): boolean {
    return this.#context.conversation?.reasoning?.hidden === true;
  }

  /** The upstream's id if it is valid for such an item and unique, else a new one. */
  itemId(part: { readonly extras?: Extras }, prefix: string): string {
    const { id } = itemExtras(part);
    return isItemId(id, prefix) && isStableItemId(id) ? id : this.#context.newId(prefix);
  }

  call(part: ToolCallPart): AnsweredCall {
    const tool = this.#toolOf(part.name);
    const declared = tool === undefined ? itemExtras(part) : itemExtras(tool);
    const { kind: given, name = tool?.name ?? part.name, namespace } = declared;
    const kind = isCallKind(given) ? given : 'function';
    return {
      kind,
      id: this.itemId(part, callItems[kind].prefix),
      callId: this.#callId(part.id),
      named:
        kind === 'function' || kind === 'custom'
          ? { name, ...(namespace === undefined ? {} : { namespace }) }
          : {},
    };
  }

  /** The item of a complete call. If the arguments do not fit a typed tool, the item is a function call. */
  callItem(call: AnsweredCall, argumentsJson: string): JsonObject {
    const { kind, id, callId, named } = call;
    const members = callMembers(kind, argumentsJson);
    const base = { status: 'completed', call_id: callId };
    if (members !== undefined) {
      return { id, type: callItems[kind].type, ...base, ...named, ...members };
    }
    this.lost(`arguments that fit no ${callItems[kind].type}`);
    const own = this.#context.newId(callItems.function.prefix);
    return {
      id: own,
      type: callItems.function.type,
      ...base,
      name: kind,
      arguments: argumentsJson,
    };
  }

  /** The item of a call before its arguments. */
  begunCall(call: AnsweredCall): JsonObject {
    return this.#partOfCall(call, 'in_progress');
  }

  /** The item of a call whose arguments were cut off, as far as they came. */
  cutCall(call: AnsweredCall, argumentsJson: string): JsonObject {
    return { ...this.#partOfCall(call, 'incomplete'), ...cutMembers(call.kind, argumentsJson) };
  }

  #partOfCall({ kind, id, callId, named }: AnsweredCall, status: string): JsonObject {
    const base = { id, type: callItems[kind].type, status, call_id: callId, ...named };
    return { ...base, ...empty(kind) };
  }

  /** Finds a tool by the name that was sent, or by the form in which models write names with namespaces. */
  #toolOf(name: string): Tool | undefined {
    const tools = this.#tools;
    const flat = originalToolName(name, tools);
    const exact = tools.find((tool) => tool.name === flat);
    if (exact !== undefined) return exact;
    const spaced = tools.filter((tool) => {
      const { namespace, name: bare } = itemExtras(tool);
      return (
        bare === name ||
        `${textOf(namespace)}.${textOf(bare)}` === name ||
        `${textOf(namespace)}__${textOf(bare)}` === name
      );
    });
    return spaced.length === 1 ? spaced[0] : undefined;
  }

  #callId(id: string): string {
    const shown = this.#ids.show(id.length > maxCallId ? allowedToolId(id, 0) : id);
    if (id.length > maxCallId) this.#context.sealing?.callShown?.(id, shown);
    return shown;
  }

  /** The reasoning item before a call that seals the upstream's extras of the call. Undefined if there are none. */
  companion(part: ToolCallPart, callId: string): JsonObject | undefined {
    const { sealing, newId } = this.#context;
    const extras = sealing === undefined ? undefined : part.extras?.[sealing.upstream.dialect];
    if (sealing === undefined || extras === undefined) return undefined;
    const blob = sealCall(callId, extras, sealing);
    return {
      id: newId(idPrefixes.reasoning),
      type: 'reasoning',
      summary: [],
      encrypted_content: blob,
    };
  }

  reasoning(id: string, part: ReasoningPart): JsonObject {
    const shown = part.text !== '' && !this.hidesReasoning;
    return {
      id,
      type: 'reasoning',
      summary: shown ? [{ type: 'summary_text', text: part.text }] : [],
      encrypted_content: this.#blob(part),
    };
  }

  #blob(part: ReasoningPart): string | null {
    const { sealing } = this.#context;
    if (sealing !== undefined) return sealReasoning(part, this.hidesReasoning, sealing);
    return part.signature ?? part.encrypted ?? null;
  }

  /**
   * The items to show: an unchanged one of this dialect, a search of a messages or chat upstream. None, with a note, for
   * others.
   */
  opaque({ dialect, value }: OpaquePart): readonly JsonObject[] {
    if (dialect === dialectId) return [value];
    if (dialect === 'anthropic-messages') {
      const { type, name, id, input } = value;
      if (type === 'server_tool_use' && name === 'web_search') {
        this.#searches.push({
          id: textOf(id),
          query: isObject(input) ? textOf(input['query']) : '',
        });
        return none;
      }
      if (type === 'web_search_tool_result') return this.#found(value);
    }
    if (dialect === 'openai-chat') {
      const { search_results: found, arguments: given } = value;
      const results = isObject(found) ? found['results'] : undefined;
      if (Array.isArray(results)) {
        const query = textOf(tryParseInnerObject(textOf(given))?.['query']);
        const sources = sourcesIn(results);
        return [this.#searchItem({ id: '', query }, { status: 'completed', sources })];
      }
    }
    this.lost('a block that only its provider knows');
    return none;
  }

  /** The item of a search whose results have come. Its status and sources are known only now. */
  #found({ tool_use_id: id, content }: JsonObject): readonly JsonObject[] {
    const at = this.#searches.findIndex((search) => search.id === id);
    const [search] = at === -1 ? [] : this.#searches.splice(at, 1);
    if (search === undefined) {
      this.lost('the result of a search that was not called');
      return none;
    }
    if (!Array.isArray(content)) return [this.#searchItem(search, { status: 'failed' })];
    const sources = sourcesIn(content);
    return [this.#searchItem(search, { status: 'completed', sources })];
  }

  /** Items of searches whose results do not come any more. */
  openSearches(): readonly JsonObject[] {
    if (this.#searches.length === 0) return none;
    return this.#searches
      .splice(0)
      .map((search) => this.#searchItem(search, { status: 'completed' }));
  }

  #searchItem(
    { query }: Search,
    { status, sources }: { readonly status: string; readonly sources?: readonly JsonObject[] },
  ): JsonObject {
    return {
      id: this.#context.newId(idPrefixes.search),
      type: 'web_search_call',
      status,
      action: {
        type: 'search',
        query,
        queries: [query],
        ...(sources === undefined || sources.length === 0 ? {} : { sources }),
      },
    };
  }

  lateSources(): void {
    this.#context.notes.lost(['citations'], 'the text ended before its sources came');
  }

  lost(what: string): void {
    this.#context.notes.lost(['output'], `${what} has no place in this answer`);
  }

  /**
   * The annotation for a source. Undefined, with a note, for a source without an address.
   * @param part the span of the citing text part in the item's text.
   */
  annotation(citation: Citation, part: TextSpan): JsonObject | undefined {
    const { native, url, title } = citation;
    if (native.dialect === dialectId) return shifted(native.value, part.start);
    if (url === undefined) {
      this.#context.notes.lost(
        ['citations'],
        'a source without an address has no place in this answer',
      );
      return undefined;
    }
    const { start, end } = spanOf(citation, part);
    return { type: 'url_citation', url, title: title ?? '', start_index: start, end_index: end };
  }
}

/** The addresses of what a search found. */
function sourcesIn(results: readonly Json[]): readonly JsonObject[] {
  const urls = results.filter(isObject).map((result) => textOf(result['url']));
  return urls.filter((url) => url !== '').map((url) => ({ type: 'url', url }));
}

/** Shifts offsets, which count from the beginning of the part. */
function shifted(value: JsonObject, by: number): JsonObject {
  const { start_index: start, end_index: end } = value;
  if (by === 0 || typeof start !== 'number' || typeof end !== 'number') return value;
  return { ...value, start_index: start + by, end_index: end + by };
}

/** The members of a call before its arguments. */
function empty(kind: CallKind): JsonObject {
  switch (kind) {
    case 'function':
      return { arguments: '' };
    case 'custom':
      return { input: '' };
    case 'tool_search':
      return { execution: 'client', arguments: {} };
    case 'local_shell':
      return { action: { type: 'exec', command: [], env: {} } };
    case 'shell':
      return { action: { commands: [], timeout_ms: null, max_output_length: null } };
    case 'apply_patch':
      return { operation: { type: 'update_file', path: '', diff: '' } };
    default:
      return kind satisfies never;
  }
}
