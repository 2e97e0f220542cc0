/**
 * From messages to tokens: the model's own chat template, rendered and tokenised.
 *
 * The template's markers (`<|im_end|>` and the like) become control tokens, so the same characters in
 * a caller's text must not: they would end the turn and start a system message of the caller's choice.
 * A break mark is put inside every such sequence of a caller's text, and the rendered prompt is
 * tokenised piece by piece between the breaks: no piece holds the whole sequence, so it stays text.
 */
import type { Token } from 'node-llama-cpp';
import { EngineError, invalid } from './engine-error.ts';
import type { JsonObject } from './json.ts';
import type { ChatMessage } from './messages.ts';
import type { ToolUse } from './tools.ts';

const pieceLength = 16_384;

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
  /** Set when the tokenizer asks for a first token that templates may leave out. */
  readonly bosToken?: Token;
  /** Whether the template knows the Hermes form of tool calls (`<tool_call>`). */
  readonly knowsTools: boolean;
  /** The tag that begins reasoning, for models that reason. */
  readonly reasoningTag?: string;
  /** Tokenises a piece of the prompt, markers included; `continues` = other text stands before it. */
  readonly tokenize: (text: string, continues: boolean) => Token[];
  /** Random digits, so that no caller can write the break mark. */
  readonly breakDigits: string;
}

export interface PromptRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools: ToolUse;
  /** What else the template is told, by the names that it uses. */
  readonly values: JsonObject;
}

export interface Prompt {
  readonly tokens: Token[];
  /** It ends in the tag that begins reasoning: the model goes on from there. */
  readonly reasoningOpen: boolean;
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
   * The prompt's tokens. An assistant message at the end is continued, not answered.
   * @throws EngineError 400 when the template refuses the messages.
   */
  write(request: PromptRequest): Prompt {
    if (request.tools.offered.length > 0 && !this.#options.knowsTools) {
      throw invalid('The chat template of this model has no tools.', 'tools');
    }
    const text = this.#render(request);
    const tokens: Token[] = [];
    for (const [index, part] of text.split(this.#break).entries()) {
      for (const [place, piece] of this.#shortPieces(part).entries()) {
        const continues = index > 0 && place === 0;
        for (const token of this.#options.tokenize(piece, continues)) tokens.push(token);
      }
    }
    const { bosToken, reasoningTag } = this.#options;
    if (bosToken !== undefined && tokens[0] !== bosToken) tokens.unshift(bosToken);
    const reasoningOpen = reasoningTag !== undefined && text.trimEnd().endsWith(reasoningTag);
    return { tokens, reasoningOpen };
  }

  /**
   * The tokenizer's time grows with the square of the markers in a text: 20,000 messages took 10 s. A
   * piece begins with a marker, before which nothing is joined; as the places are counted from the
   * front, a conversation that grows keeps its tokens.
   */
  #shortPieces(text: string): readonly string[] {
    const markers = this.#markers;
    if (markers === undefined || text.length <= pieceLength) return [text];
    const pieces: string[] = [];
    let from = 0;
    for (;;) {
      markers.lastIndex = from + pieceLength;
      const at = markers.exec(text)?.index;
      if (at === undefined) break;
      pieces.push(text.slice(from, at));
      from = at;
    }
    markers.lastIndex = 0;
    pieces.push(text.slice(from));
    return pieces;
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
