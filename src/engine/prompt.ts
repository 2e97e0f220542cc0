/**
 * From messages to tokens: the model's own chat template, rendered and tokenised.
 *
 * The template's markers (`<|im_end|>` and the like) become control tokens, so the same characters in
 * a caller's text must not: they would end the turn and start a system message of the caller's choice.
 * A break mark is put inside every such sequence of a caller's text, and the rendered prompt is
 * tokenised piece by piece between the breaks: no piece holds the whole sequence, so it stays text.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Token } from 'node-llama-cpp';
import {
  EngineError,
  type Json,
  type JsonObject,
  invalid,
  isArray,
  isObject,
  member,
  tryParse,
  unsupported,
} from './engine-error.ts';
import type { ToolUse } from './tools.ts';

const pieceLength = 16_384;
/** A text without markers is read at once up to here. */
const maxPiece = 65_536;
/** What is tokenised before others get their turn: characters, and for each piece what it costs by itself. */
const turnWork = 16_384;
const pieceWork = 64;
/** Short pieces come again and again where a text is made of markers. */
const keptLength = 64;
const keptPieces = 4096;

/** A compiled Jinja template. */
export interface ChatTemplate {
  /** @throws Error when the template refuses the values (`raise_exception`). */
  render(values: Record<string, unknown>): string;
}

export interface PromptOptions {
  readonly template: ChatTemplate;
  /** Token texts that must never arise from a caller's text. */
  readonly markers: readonly string[];
  readonly bosText: string;
  readonly eosText: string;
  /** Set when the tokenizer requests a first token that templates may omit. */
  readonly bosToken?: Token;
  /** Whether the template knows the Hermes form of tool calls (`<tool_call>`). */
  readonly knowsTools: boolean;
  /** The tag that begins reasoning, for models that reason. */
  readonly reasoningTag?: string;
  /** Tokenises a piece of the prompt, markers included; `continues` = other text is before it. */
  readonly tokenize: (text: string, continues: boolean) => Token[];
  /** Random digits, so that no caller can write the break mark. */
  readonly breakDigits: string;
}

export interface PromptRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools: ToolUse;
  /** Further values for the template, by the names that it uses. */
  readonly values: JsonObject;
}

export interface Prompt {
  readonly tokens: Token[];
  /** It ends in the tag that begins reasoning: the model continues from there. */
  readonly reasoningOpen: boolean;
}

/** A part of a rendered prompt that is tokenised by itself; `continues` = text is before it. */
interface Piece {
  readonly text: string;
  readonly continues: boolean;
}

/** Writes prompts for one model. Stateless between calls. */
export class PromptWriter {
  readonly #options: PromptOptions;
  readonly #markers: RegExp | undefined;
  readonly #break: string;
  readonly #end: string;

  constructor(options: PromptOptions) {
    this.#options = options;
    this.#break = `\uE0F1${options.breakDigits}\uE0F2`;
    this.#end = `\uE0F3${options.breakDigits}\uE0F4`;
    this.#markers = patternOf(options.markers);
  }

  /**
   * The prompt's tokens. An assistant message at the end is continued, not answered. A long prompt lets
   * others have their turns while it is tokenised.
   * @throws EngineError 400 when the template refuses the messages.
   * @throws the signal's reason when it is aborted meanwhile.
   */
  async write(request: PromptRequest, signal?: AbortSignal): Promise<Prompt> {
    if (request.tools.offered.length > 0 && !this.#options.knowsTools) {
      throw invalid('The chat template of this model has no tools.', 'tools');
    }
    const text = this.#render(request);
    const tokens: Token[] = [];
    const kept = new Map<string, readonly Token[]>();
    let work = 0;
    for (const piece of this.#pieces(text)) {
      for (const token of this.#tokensOf(piece, kept)) tokens.push(token);
      work += piece.text.length + pieceWork;
      if (work < turnWork) continue;
      work = 0;
      await nextTurn();
      signal?.throwIfAborted();
    }
    const { bosToken, reasoningTag } = this.#options;
    if (bosToken !== undefined && tokens[0] !== bosToken) tokens.unshift(bosToken);
    const reasoningOpen = reasoningTag !== undefined && text.trimEnd().endsWith(reasoningTag);
    return { tokens, reasoningOpen };
  }

  #tokensOf({ text, continues }: Piece, kept: Map<string, readonly Token[]>): readonly Token[] {
    if (text.length > keptLength) return this.#options.tokenize(text, continues);
    const key = `${continues ? '+' : ' '}${text}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const tokens = this.#options.tokenize(text, continues);
    if (kept.size < keptPieces) kept.set(key, tokens);
    return tokens;
  }

  *#pieces(text: string): Generator<Piece> {
    let continues = false;
    for (const part of text.split(this.#break)) {
      for (const stretch of this.#stretches(part)) {
        for (const piece of piecesOf(stretch)) {
          yield { text: piece, continues };
          continues = true;
        }
        // The next one begins with a marker, before which nothing is joined.
        continues = false;
      }
      continues = true;
    }
  }

  /**
   * The tokenizer's time grows with the square of the markers in a text: 20,000 messages took 10 s. A
   * stretch begins with a marker, before which nothing is joined; as the offsets are counted from the
   * front, a conversation that grows retains its tokens.
   */
  *#stretches(text: string): Generator<string> {
    let from = 0;
    while (text.length - from > pieceLength) {
      const at = this.#markerBehind(text, from + pieceLength);
      if (at === undefined) break;
      yield text.slice(from, at);
      from = at;
    }
    yield text.slice(from);
  }

  #markerBehind(text: string, offset: number): number | undefined {
    if (this.#markers === undefined) return undefined;
    this.#markers.lastIndex = offset;
    const at = this.#markers.exec(text)?.index;
    this.#markers.lastIndex = 0;
    return at;
  }

  #render({ messages, tools, values }: PromptRequest): string {
    const last = messages.at(-1);
    const continued = last?.role === 'assistant' && last.tool_calls === undefined;
    const protectedMessages = messages.map((message) => this.#protect(message));
    if (continued) {
      const marked = { ...last, content: `${this.#protectText(last.content)}${this.#end}` };
      protectedMessages.splice(-1, 1, marked);
    }
    const text = this.#renderTemplate({
      ...this.#protectValues(values),
      messages: protectedMessages,
      tools: tools.offered.length === 0 ? null : tools.offered.map((tool) => this.#protect(tool)),
      add_generation_prompt: !continued,
      bos_token: this.#options.bosText,
      eos_token: this.#options.eosText,
    });
    if (!continued) return text;
    const end = text.lastIndexOf(this.#end);
    if (end !== -1) return text.slice(0, end);
    const message = 'The chat template of this model cannot continue an assistant message.';
    throw invalid(message, `messages[${messages.length - 1}]`);
  }

  #protectValues(values: JsonObject): Record<string, unknown> {
    const entries = Object.entries(values);
    return Object.fromEntries(entries.map(([key, value]) => [key, this.#protect(value)]));
  }

  #renderTemplate(values: Record<string, unknown>): string {
    try {
      return this.#options.template.render(values);
    } catch (error) {
      const why = error instanceof Error ? error.message : 'unknown error';
      throw new EngineError(`The model's chat template refused the messages: ${why}`, {
        status: 400,
        type: 'invalid_request_error',
        code: 'invalid_value',
        param: 'messages',
        cause: error,
      });
    }
  }

  /** The same value with break marks in every string and key. */
  #protect(value: unknown): unknown {
    if (typeof value === 'string') return this.#protectText(value);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.#protect(item));
    const entries = Object.entries(value);
    return Object.fromEntries(
      entries.map(([key, item]) => [this.#protectText(key), this.#protect(item)]),
    );
  }

  #protectText(text: string): string {
    if (this.#markers === undefined) return text;
    let result = text;
    // Again until none is left: two markers may overlap, and one pass breaks the first only.
    while (result.search(this.#markers) !== -1) {
      result = result.replace(this.#markers, (marker) => {
        const first = String.fromCodePoint(marker.codePointAt(0) ?? 0);
        return `${first}${this.#break}${marker.slice(first.length)}`;
      });
    }
    return result;
  }
}

/** Matches any of the texts, the longest first; undefined when there is nothing to match. */
function patternOf(texts: readonly string[]): RegExp | undefined {
  const breakable = texts.filter((text) => [...text].length > 1);
  if (breakable.length === 0) return undefined;
  const sources = breakable
    .toSorted((a, b) => b.length - a.length)
    .map((text) => text.replace(/[\^$.*+?()[\]{}|/]/g, String.raw`\$&`));
  return new RegExp(sources.join('|'), 'gu');
}

/** Cut before white space where there is some, so that hardly a token is another for it. */
function* piecesOf(text: string): Generator<string> {
  let from = 0;
  while (text.length - from > maxPiece) {
    const at = endOfPiece(text, from);
    yield text.slice(from, at);
    from = at;
  }
  yield text.slice(from);
}

function endOfPiece(text: string, from: number): number {
  const limit = from + maxPiece;
  for (let at = limit; at > from + pieceLength; at--) {
    if (text[at] === ' ' || text[at] === '\n') return at;
  }
  const behind = text.charCodeAt(limit);
  // Not between the halves of one character.
  return behind >= 0xdc00 && behind <= 0xdfff ? limit - 1 : limit;
}

// Reads `messages` into what chat templates expect: one string of content each, arguments as values.

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly name?: string;
  /** What an earlier answer was reasoned from; templates print it where their model wants it. */
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly TemplateToolCall[];
  readonly tool_call_id?: string;
}

/** A call of an earlier turn. Templates print `arguments` with `tojson`, so it is not a string here. */
interface TemplateToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: Json };
}

/** @throws EngineError 400 that names the message or the part. */
export function readMessages(value: Json | undefined): readonly ChatMessage[] {
  if (!isArray(value)) {
    throw invalid('"messages" must be an array.', 'messages', 'missing_required_parameter');
  }
  if (value.length === 0) throw invalid('"messages" must not be empty.', 'messages');
  return value.map((item, index) => readMessage(item, `messages[${index}]`));
}

function readMessage(value: Json, path: string): ChatMessage {
  if (!isObject(value)) throw invalid('A message must be an object.', path, 'invalid_type');
  const name = member(value, 'name');
  const shared = typeof name === 'string' ? { name } : {};
  const role = value['role'];
  switch (role) {
    case 'system':
    case 'developer':
      return { role: 'system', content: readContent(value, path), ...shared };
    case 'user':
      return { role: 'user', content: readContent(value, path), ...shared };
    case 'assistant':
      return { ...readAssistant(value, path), ...readReasoning(value), ...shared };
    case 'tool':
      return {
        role: 'tool',
        content: readContent(value, path),
        tool_call_id: requiredText(value, 'tool_call_id', path),
        ...shared,
      };
    default:
      throw invalid(
        'A message has the role system, developer, user, assistant or tool.',
        `${path}.role`,
      );
  }
}

function readAssistant(message: JsonObject, path: string): ChatMessage {
  const calls = member(message, 'tool_calls');
  if (member(message, 'function_call') !== undefined) {
    throw unsupported('"function_call" is not supported; use "tool_calls".', path);
  }
  const hasContent = member(message, 'content') !== undefined;
  const refusal = member(message, 'refusal');
  if (!hasContent && typeof refusal === 'string') return { role: 'assistant', content: refusal };
  if (calls === undefined || (isArray(calls) && calls.length === 0)) {
    return { role: 'assistant', content: readContent(message, path) };
  }
  if (!isArray(calls)) throw invalid('"tool_calls" must be an array.', `${path}.tool_calls`);
  return {
    role: 'assistant',
    content: hasContent ? readContent(message, path) : '',
    tool_calls: calls.map((call, index) => readCall(call, `${path}.tool_calls[${index}]`)),
  };
}

function readReasoning(message: JsonObject): { readonly reasoning_content?: string } {
  const text = member(message, 'reasoning_content') ?? member(message, 'reasoning');
  return typeof text === 'string' && text !== '' ? { reasoning_content: text } : {};
}

function readCall(value: Json, path: string): TemplateToolCall {
  const called = isObject(value) ? value['function'] : undefined;
  if (!isObject(value) || !isObject(called)) {
    throw invalid('A tool call must have the form {"id","type":"function","function"}.', path);
  }
  const text = called['arguments'] ?? '';
  if (typeof text !== 'string') {
    throw invalid('Arguments must be a string of JSON.', `${path}.function.arguments`);
  }
  return {
    id: requiredText(value, 'id', path),
    type: 'function',
    function: {
      name: requiredText(called, 'name', `${path}.function`),
      // An old turn with broken arguments must not end the conversation: the template gets the text.
      arguments: text === '' ? {} : (tryParse(text) ?? text),
    },
  };
}

function readContent(message: JsonObject, path: string): string {
  const content = member(message, 'content');
  if (typeof content === 'string') return content;
  if (!isArray(content)) {
    throw invalid('"content" must be a string or an array of parts.', `${path}.content`);
  }
  if (content.length === 0) throw invalid('"content" must not be empty.', `${path}.content`);
  // Parts are separate blocks: joined without a break, two instructions would run into each other.
  return content.map((part, index) => readPart(part, `${path}.content[${index}]`)).join('\n');
}

function readPart(part: Json, path: string): string {
  if (!isObject(part)) throw invalid('A content part must be an object.', path, 'invalid_type');
  const type = part['type'];
  if (type === 'text') return requiredText(part, 'text', path);
  if (type === 'refusal') return requiredText(part, 'refusal', path);
  if (typeof type !== 'string') throw invalid('A content part needs a "type".', path);
  throw unsupported(`The local model reads text only; a part of type "${type}" is refused.`, path);
}

function requiredText(object: JsonObject, key: string, path: string): string {
  const value = member(object, key);
  if (typeof value === 'string') return value;
  throw invalid(`"${key}" must be a string.`, `${path}.${key}`, 'invalid_type');
}
