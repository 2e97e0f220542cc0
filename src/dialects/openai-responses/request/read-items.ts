/** Reads input items as turns with their roles, order and parts. */
import type {
  Origin,
  Part,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../core/conversation.ts';
import { type FieldPath, GatewayError, unsupported } from '../../../core/errors.ts';
import { type Notes, withPath, withPathOf } from '../../../core/notes.ts';
import { isSealed, type Sealer } from '../../../core/secret.ts';
import { innerTokens, maxInnerTokens } from '../../../json/parse.ts';
import { maxDepth } from '../../../json/scan.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import { fileOf, foreignFile, imageAt } from '../../shared/body/body-media.ts';
import { unseal } from '../../shared/seals.ts';
import { isPresent } from '../fields.ts';
import { abandonedItems, abandonedNote, pairIdOf } from '../head.ts';
import {
  argumentsOf,
  type CallKind,
  callKindOf,
  dialectId,
  outputKindOf,
  withItemExtras,
} from '../items.ts';
import type { Toolbox } from './read-tools.ts';

interface ReadTurns {
  readonly system: readonly Part[];
  readonly turns: readonly Turn[];
}

interface ReadContext {
  readonly notes: Notes;
  /** Opens values that the gateway sealed. Absent = sealed values stay closed. */
  readonly sealer: Sealer | undefined;
  readonly tools: Toolbox;
}

/** @throws GatewayError `invalid_request` with the path of the member that cannot be read. */
export function readTurns(body: JsonObject, context: ReadContext): ReadTurns {
  const { input, instructions } = body;
  const builder = new TurnBuilder(context);
  if (typeof instructions === 'string' && instructions !== '') {
    builder.system.push(withPath({ type: 'text', text: instructions }, ['instructions']));
  }
  if (typeof input === 'string') builder.user([textPart(input, ['input'])], ['input']);
  if (isArray(input)) {
    const abandoned = abandonedItems(input);
    input.forEach((item, i) => {
      if (abandoned.has(item)) context.notes.lost(['input', i], abandonedNote);
      else if (isObject(item)) builder.add(item, ['input', i]);
    });
  }
  return builder.finish();
}

interface OpenTurn {
  readonly path: FieldPath;
  readonly role: Turn['role'];
  readonly parts: Part[];
  /** The results for the calls of an assistant turn, in the order of the items. */
  readonly results: ToolResultPart[];
}

/** The position of a call. */
interface PositionedCall {
  readonly turn: OpenTurn;
  readonly index: number;
}

/**
 * A run of the model's items is one assistant turn. Results come first in the user turn after their calls, in whatever
 * order the client sent the items.
 */
class TurnBuilder {
  readonly system: Part[] = [];
  readonly #context: ReadContext;
  readonly #turns: OpenTurn[] = [];
  readonly #calls = new Map<string, PositionedCall>();
  /** Extras of calls from upstreams of other dialects, by call id. Reasoning items carry them sealed. */
  readonly #callExtras = new Map<
    string,
    { readonly origin: Origin; readonly extras: JsonObject }
  >();
  /** The number of JSON values in the arguments so far. */
  #argumentTokens = 0;

  constructor(context: ReadContext) {
    this.#context = context;
  }

  finish(): ReadTurns {
    const turns: Turn[] = [];
    let results: readonly ToolResultPart[] = [];
    for (const turn of this.#turns) {
      if (results.length > 0 && turn.role !== 'user') {
        turns.push(withPathOf(results[0] ?? turn, { role: 'user', parts: results }));
        results = [];
      }
      const parts = [...results, ...turn.parts];
      results = this.#ordered(turn);
      if (parts.length > 0) turns.push(withPath({ role: turn.role, parts }, turn.path));
    }
    if (results.length > 0) {
      turns.push(withPathOf(results[0] ?? {}, { role: 'user', parts: results }));
    }
    return { system: this.system, turns };
  }

  #ordered({ results }: OpenTurn): readonly ToolResultPart[] {
    if (results.length < 2) return results;
    const orderOf = ({ callId }: ToolResultPart): number => this.#calls.get(callId)?.index ?? 0;
    return results.toSorted((a, b) => orderOf(a) - orderOf(b));
  }

  add(item: JsonObject, path: FieldPath): void {
    const { type } = item;
    const kind = callKindOf(type);
    if (kind !== undefined) return this.#addCall(kind, item, path);
    const answered = outputKindOf(type);
    if (answered !== undefined) return this.#addOutput(item, path);
    switch (type) {
      case undefined:
      case null:
      case 'message':
        return this.#addMessage(item, path);
      case 'reasoning':
        return this.#assistant(
          this.#readReasoning(item).map((part) => withPath({ ...part }, path)),
          path,
        );
      case 'additional_tools':
      case 'item_reference':
        return;
      default:
        return this.#addOther(item, path);
    }
  }

  user(parts: readonly Part[], path: FieldPath): void {
    this.#extend('user', parts, path);
  }

  /** Parts join the last turn of the same role. */
  #extend(role: Turn['role'], parts: readonly Part[], path: FieldPath): void {
    if (parts.length === 0) return;
    const last = this.#turns.at(-1);
    const joins = last?.role === role && role !== 'system' && last.results.length === 0;
    if (joins) last.parts.push(...parts);
    else this.#turns.push({ path, role, parts: [...parts], results: [] });
  }

  #assistant(parts: readonly Part[], path: FieldPath): void {
    this.#extend('assistant', parts, path);
  }

  #addMessage(item: JsonObject, path: FieldPath): void {
    const { role } = item;
    const parts = this.#content(item['content'], [...path, 'content']);
    if (role === 'user') return this.user(parts, path);
    if (role === 'assistant') return this.#assistant(withItem(parts, item), path);
    // The first run is the system prompt. Later ones stay at their position.
    if (this.#turns.length === 0) this.system.push(...parts);
    else this.#extend('system', parts, path);
  }

  #addCall(kind: CallKind, item: JsonObject, path: FieldPath): void {
    const id = pairIdOf(item);
    if (id === undefined) return this.#addOther(item, path);
    const { namespace, caller } = item;
    const { tools } = this.#context;
    const isNamed = kind === 'function' || kind === 'custom';
    const argumentsJson = argumentsOf(kind, item);
    this.#countArguments(argumentsJson, path);
    const foreign = this.#callExtras.get(id);
    const { extras } = withItemExtras({
      id: item['id'],
      status: item['status'],
      kind,
      namespace,
      caller: isPresent(caller) ? caller : undefined,
    });
    const call: ToolCallPart = withPath(
      {
        type: 'tool-call',
        id,
        name: isNamed ? tools.flatName(textOf(item['name']), namespace) : tools.typedName(kind),
        argumentsJson,
        extras: {
          ...extras,
          ...(foreign === undefined ? {} : { [foreign.origin.dialect]: foreign.extras }),
        },
        ...(foreign === undefined ? {} : { origin: foreign.origin }),
      },
      path,
    );
    this.#assistant([call], path);
    const turn = this.#turns.at(-1);
    if (turn !== undefined) this.#calls.set(id, { turn, index: turn.parts.length });
  }

  #addOutput(item: JsonObject, path: FieldPath): void {
    const callId = pairIdOf(item);
    const parts = this.#outputParts(item, path);
    const call = callId === undefined ? undefined : this.#calls.get(callId);
    if (callId === undefined || call === undefined) return this.#addInjected(item, parts, path);
    const result: ToolResultPart = {
      type: 'tool-result',
      callId,
      parts,
      failed: item['status'] === 'failed',
      ...withItemExtras({ id: item['id'], status: item['status'] }),
    };
    call.turn.results.push(withPath(result, path));
  }

  /** A result without a call id, which Codex injects. */
  #addInjected(item: JsonObject, parts: readonly Part[], path: FieldPath): void {
    if (item['type'] === 'tool_search_output') {
      this.#context.notes.lost(path, 'a search that the service ran means nothing to this model');
      return;
    }
    this.#context.notes.changed(path, 'an output without a call is sent as text');
    const name = textOf(item['name']) || 'a tool';
    this.user([textPart(`[output of ${name}]`, path), ...parts], path);
  }

  #outputParts(item: JsonObject, path: FieldPath): readonly Part[] {
    const { type, output } = item;
    const where = [...path, 'output'];
    if (type === 'tool_search_output') return [textPart(foundTools(item['tools']), path)];
    if (type === 'shell_call_output') return [textPart(shellText(output), where)];
    if (isObject(output)) return [textPart(JSON.stringify(output), where)];
    if (!isPresent(output)) return [];
    return this.#content(output, where);
  }

  #content(content: Json | undefined, path: FieldPath): readonly Part[] {
    if (typeof content === 'string') return content === '' ? [] : [textPart(content, path)];
    if (!isArray(content)) return [];
    return content.flatMap((part, j) => {
      const read = isObject(part) ? readPart(part, [...path, j]) : undefined;
      return read === undefined ? [] : [withPath(read, [...path, j])];
    });
  }

  /** Items of hosted tools become text, so that the model still knows their results. */
  #addOther(item: JsonObject, path: FieldPath): void {
    const type = textOf(item['type']);
    const text = hostedText(type, item);
    if (text === undefined)
      throw unsupported([...path, 'type'], `This model takes no items of the type '${type}'.`);
    this.#context.notes.changed(path, 'what a hosted tool did is shown as text');
    const part = { type: 'text', text, ...withItemExtras({ begins: true }) } as const;
    this.#assistant([withPath(part, path)], path);
    const image = type === 'image_generation_call' ? madeImage(item) : undefined;
    if (image !== undefined) this.user([withPath(image, [...path, 'result'])], path);
  }

  /**
   * Reads `encrypted_content`. Reasoning that the gateway sealed goes back to its upstream; OpenAI's goes to no other.
   */
  #readReasoning(item: JsonObject): readonly ReasoningPart[] {
    const { encrypted_content: blob, id, summary, content } = item;
    const shown = textsOf(summary);
    if (isSealed(textOf(blob))) return this.#unsealed(textOf(blob), shown.join('\n\n'));
    const own = withItemExtras({
      id,
      summary: shown.length,
      content: isArray(content) && content.length > 0 ? content : undefined,
    });
    const text = shown.length > 0 ? shown.join('\n\n') : textsOf(content).join('');
    if (textOf(blob) !== '') {
      const origin: Origin = { provider: '', dialect: dialectId };
      return [{ type: 'reasoning', text, signature: textOf(blob), origin, ...own }];
    }
    return text === '' ? [] : [{ type: 'reasoning', text, ...own }];
  }

  #unsealed(sealed: string, shown: string): readonly ReasoningPart[] {
    const { sealer } = this.#context;
    const record = unseal(sealed, sealer, dialectId);
    if (record === undefined) return [];
    const { origin, extras, callId, textDigest, text = shown, ...proof } = record;
    if (callId !== undefined) {
      if (extras !== undefined) this.#callExtras.set(callId, { origin, extras });
      return [];
    }
    if (textDigest !== undefined && textDigest !== sealer?.digest(text)) return [broken];
    const foreign = extras === undefined ? {} : { extras: { [origin.dialect]: extras } };
    return [{ type: 'reasoning', text, ...proof, ...foreign, origin }];
  }

  /**
   * Counts the values in arguments, which are text here and may become values in the other dialect: the bound of the
   * body does not count them.
   * @throws GatewayError `too_large` beyond the number of values that may be parsed at once (G11).
   */
  #countArguments(argumentsJson: string, path: FieldPath): void {
    this.#argumentTokens += innerTokens(argumentsJson);
    if (this.#argumentTokens <= maxInnerTokens) return;
    throw new GatewayError(
      'too_large',
      `The arguments of all tool calls together hold more than ${maxInnerTokens} JSON values, or are nested more than ${maxDepth} levels deep.`,
      { path },
    );
  }
}

const broken: ReasoningPart = { type: 'reasoning', text: '', broken: true };

function textPart(text: string, path: FieldPath): Part {
  return withPath({ type: 'text', text }, path);
}

/** Adds the members of an assistant message to its first part. */
function withItem(parts: readonly Part[], item: JsonObject): readonly Part[] {
  const [first, ...rest] = parts;
  const { id, status, phase } = item;
  if (first === undefined) return parts;
  const begun = { id, status, phase: isPresent(phase) ? phase : undefined };
  const own = withItemExtras({ ...begun, begins: true });
  return [withPathOf(first, { ...first, ...own }), ...rest];
}

/** Undefined for an empty part. @throws GatewayError for a part that no other API takes. */
function readPart(part: JsonObject, path: FieldPath): Part | undefined {
  const { type } = part;
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
    case 'reasoning_text': {
      const text = textOf(part['text']);
      return text === '' ? undefined : { type: 'text', text, ...markOf(part) };
    }
    case 'refusal': {
      const text = textOf(part['refusal']);
      return text === '' ? undefined : { type: 'refusal', text };
    }
    case 'input_image':
    case 'computer_screenshot':
      return readImage(part, path);
    case 'input_file':
      return readFile(part, path);
    default:
      throw unsupported(
        [...path, 'type'],
        `This model does not know parts of the type '${textOf(type)}'.`,
      );
  }
}

function markOf(part: JsonObject): Pick<Part, 'cacheUntilHere'> {
  const mark = part['prompt_cache_breakpoint'];
  return mark === true || isObject(mark) ? { cacheUntilHere: {} } : {};
}

function readImage(part: JsonObject, path: FieldPath): Part {
  const { image_url: url, file_id: id, detail } = part;
  if (typeof url !== 'string') {
    if (typeof id === 'string') throw unsupported([...path, 'file_id'], foreignFile);
    throw unsupported([...path, 'image_url'], 'An image needs an address or a `data:` URL.');
  }
  const kept = withItemExtras({ detail: typeof detail === 'string' ? detail : undefined });
  return { ...imageAt(url, [...path, 'image_url']), ...kept, ...markOf(part) };
}

function readFile(part: JsonObject, path: FieldPath): Part {
  const { file_data: data, file_url: url, file_id: id, filename } = part;
  if (typeof data === 'string') {
    return { ...fileOf(data, filename, [...path, 'file_data']), ...markOf(part) };
  }
  if (typeof url === 'string') {
    return { ...fileOf(url, filename, [...path, 'file_url']), ...markOf(part) };
  }
  if (typeof id === 'string') throw unsupported([...path, 'file_id'], foreignFile);
  throw unsupported([...path, 'file_data'], 'A file needs its data or an address.');
}

function textsOf(parts: Json | undefined): readonly string[] {
  if (!isArray(parts)) return [];
  return parts
    .map((part) => (isObject(part) ? textOf(part['text']) : ''))
    .filter((text) => text !== '');
}

/** The names that a tool search found. The model is offered the tools themselves. */
function foundTools(tools: Json | undefined): string {
  const lines: string[] = [];
  const add = (tool: Json, prefix: string): void => {
    if (!isObject(tool)) return;
    const name = prefix + textOf(tool['name']);
    const description = textOf(tool['description']);
    lines.push(description === '' ? `- ${name}` : `- ${name}: ${description}`);
    if (isArray(tool['tools'])) for (const inner of tool['tools']) add(inner, `${name}.`);
  };
  if (isArray(tools)) for (const tool of tools) add(tool, '');
  return lines.length === 0 ? 'No tools were found.' : `Tools found:\n${lines.join('\n')}`;
}

/** The outputs of commands in the order in which they ran. */
function shellText(output: Json | undefined): string {
  if (typeof output === 'string') return output;
  if (!isArray(output)) return '';
  return output
    .filter(isObject)
    .map((each) => {
      const { stdout, stderr, outcome } = each;
      const ended = isObject(outcome) ? outcome : {};
      const how =
        ended['type'] === 'timeout'
          ? '[timed out]'
          : isPresent(ended['exit_code'])
            ? `[exit code ${JSON.stringify(ended['exit_code'])}]`
            : '';
      return [textOf(stdout), textOf(stderr), how].filter((text) => text !== '').join('\n');
    })
    .join('\n');
}

/** Base64 of the first bytes of the formats in which images are made. */
const imageTypes: readonly (readonly [start: string, mediaType: string])[] = [
  ['/9j/', 'image/jpeg'],
  ['UklGR', 'image/webp'],
];

/** The image of a call that ended. The model is shown it as the user's: its own turns hold no images. */
function madeImage({ result }: JsonObject): Part | undefined {
  const base64 = textOf(result);
  if (base64 === '') return undefined;
  const mediaType = imageTypes.find(([start]) => base64.startsWith(start))?.[1] ?? 'image/png';
  return { type: 'media', kind: 'image', mediaType, source: { base64 } };
}

/** `[web_search "query" → url, url]`, `[web_search "pattern" in url]` */
function searchText({ action, results, status }: JsonObject): string {
  const { query, queries, url, pattern, sources } = isObject(action) ? action : {};
  const named = isArray(queries) ? queries.map(textOf) : [];
  const asked = named.length > 0 ? named : [textOf(query) || textOf(pattern) || textOf(url)];
  const page = textOf(pattern) === '' ? '' : ` in ${textOf(url)}`;
  const urls = isArray(sources) ? sources.map((each) => textOf(isObject(each) && each['url'])) : [];
  const found = isArray(results) && results.length > 0 ? JSON.stringify(results) : urls.join(', ');
  const end = status === 'failed' ? 'failed' : found;
  return `[web_search ${asked.map((each) => `"${each}"`).join(', ')}${page}${end === '' ? '' : ` → ${end}`}]`;
}

/** Text for an item that the service made by itself. Undefined for an item whose content would be lost. */
function hostedText(type: string, item: JsonObject): string | undefined {
  switch (type) {
    case 'web_search_call':
      return searchText(item);
    case 'file_search_call':
    case 'code_interpreter_call':
    case 'mcp_list_tools':
    case 'mcp_call':
      return `[${type} ${JSON.stringify(without(item))}]`;
    case 'image_generation_call':
      return '[image_generation_call: an image was made]';
    case 'tool_search_call':
      return '[tool_search by the service]';
    default:
      return undefined;
  }
}

function without({ id: _id, type: _type, status: _status, ...rest }: JsonObject): JsonObject {
  return rest;
}
