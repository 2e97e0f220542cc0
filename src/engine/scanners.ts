/**
 * Splits an answer of a thinking model into its reasoning and what it says. The reasoning is at
 * the beginning, between tags; the opening one is written by the model or stood in the prompt already.
 */
import { type JsonObject, isArray, isObject, tryParse } from './engine-error.ts';

// Searches for marks in text that comes in pieces. Each character is examined a bounded number of times,
// however the pieces are cut: a model may write white space, or the inside of a call, for ever (S22).

interface Shown {
  /** What may be passed on: up to the mark, without the white space before it. */
  readonly text: string;
  /** What follows the mark; undefined while it was not found. */
  readonly rest: string | undefined;
}

/** Text up to a mark. White space and what may be the beginning of the mark wait for what follows. */
class TextToMark {
  readonly #mark: string;
  #space = '';
  #begun = '';

  /** @param mark does not begin with white space. */
  constructor(mark: string) {
    this.#mark = mark;
  }

  push(piece: string): Shown {
    const text = this.#begun + piece;
    const at = text.indexOf(this.#mark);
    const end = at === -1 ? text.length - heldLength(text, [this.#mark]) : at;
    const shown = this.#behindSpace(text.slice(0, end));
    this.#begun = at === -1 ? text.slice(end) : '';
    if (at === -1) return { text: shown, rest: undefined };
    this.#space = '';
    return { text: shown, rest: text.slice(at + this.#mark.length) };
  }

  /** What waited, when no more text comes. */
  end(): string {
    const text = this.#space + this.#begun;
    this.#space = '';
    this.#begun = '';
    return text;
  }

  #behindSpace(text: string): string {
    const shown = text.trimEnd();
    if (shown === '') {
      this.#space += text;
      return '';
    }
    const before = this.#space;
    this.#space = text.slice(shown.length);
    return before + shown;
  }
}

/** All text before a mark, gathered. */
class TextBefore {
  readonly #mark: string;
  #text = '';
  /** The end of the text, in which the mark may have begun. */
  #tail = '';

  constructor(mark: string) {
    this.#mark = mark;
  }

  /** Undefined while the mark was not found; then what is before and after it. */
  push(piece: string): { readonly before: string; readonly rest: string } | undefined {
    const window = this.#tail + piece;
    const at = window.indexOf(this.#mark);
    this.#text += piece;
    if (at === -1) {
      this.#tail = window.slice(-(this.#mark.length - 1));
      return undefined;
    }
    const rest = window.slice(at + this.#mark.length);
    const length = this.#text.length - rest.length - this.#mark.length;
    return { before: this.#text.slice(0, length), rest };
  }

  /** What was gathered, when no more text comes. */
  get text(): string {
    return this.#text;
  }
}

export interface ReasoningTags {
  readonly open: string;
  readonly close: string;
}

/** Receives both parts, in order. */
export interface ReasoningSink {
  reasoning(text: string): void;
  /** What follows the reasoning, without the white space between. */
  content(text: string): void;
}

/** The tags in use, by the closing one that a template knows. */
const knownTags: readonly ReasoningTags[] = [
  { open: '<think>', close: '</think>' },
  { open: '<thinking>', close: '</thinking>' },
  { open: '<seed:think>', close: '</seed:think>' },
  { open: '[THINK]', close: '[/THINK]' },
];

/** The tags of a model; undefined when its template knows of none. */
export function reasoningTagsOf(template: string): ReasoningTags | undefined {
  return knownTags.find(({ close }) => template.includes(close));
}

/** Text in pieces of any size; what may be the beginning of a tag is held back. */
export class ReasoningScanner {
  readonly #tags: ReasoningTags | undefined;
  readonly #sink: ReasoningSink;
  #state: 'undecided' | 'reasoning' | 'between' | 'content';
  /** White space before anything else, and what may be the beginning of the opening tag. */
  #lead = '';
  #word = '';
  readonly #inside: TextToMark;
  #begun = false;

  /** Without tags everything is content. `open` = the prompt ended in the opening tag. */
  constructor(tags: ReasoningTags | undefined, open: boolean, sink: ReasoningSink) {
    this.#tags = tags;
    this.#sink = sink;
    this.#inside = new TextToMark(tags?.close ?? '');
    if (tags === undefined) this.#state = 'content';
    else this.#state = open ? 'reasoning' : 'undecided';
  }

  /** Whether the text that comes next still belongs to the reasoning. */
  get reasons(): boolean {
    return this.#state === 'reasoning';
  }

  push(piece: string): void {
    if (piece === '') return;
    if (this.#state === 'content' || this.#tags === undefined) {
      this.#sink.content(piece);
      return;
    }
    switch (this.#state) {
      case 'undecided':
        return this.#decide(piece, this.#tags.open);
      case 'reasoning':
        return this.#reason(piece);
      case 'between':
        return this.#leave(piece);
      default:
        return this.#state satisfies never;
    }
  }

  /** No more text comes. */
  end(): void {
    if (this.#state === 'reasoning') this.#emit(this.#inside.end().trimEnd());
    else if (this.#state === 'undecided' && this.#lead + this.#word !== '') {
      this.#sink.content(this.#lead + this.#word);
    }
    this.#lead = '';
    this.#word = '';
  }

  #decide(piece: string, open: string): void {
    const text = this.#word === '' ? piece.trimStart() : piece;
    this.#lead += piece.slice(0, piece.length - text.length);
    this.#word += text;
    if (this.#word.startsWith(open)) {
      this.#state = 'reasoning';
      this.push(this.#word.slice(open.length));
    } else if (!open.startsWith(this.#word)) {
      this.#state = 'content';
      this.#sink.content(this.#lead + this.#word);
    }
  }

  /** White space before the closing tag belongs to the form, so it waits until text follows. */
  #reason(piece: string): void {
    const { text, rest } = this.#inside.push(piece);
    this.#emit(text);
    if (rest === undefined) return;
    this.#state = 'between';
    this.push(rest);
  }

  #leave(piece: string): void {
    const text = piece.trimStart();
    if (text === '') return;
    this.#state = 'content';
    this.#sink.content(text);
  }

  #emit(text: string): void {
    const shown = this.#begun ? text : text.trimStart();
    if (shown === '') return;
    this.#begun = true;
    this.#sink.reasoning(shown);
  }
}

/** Finds stop sequences in text that arrives in pieces; a possible beginning is held back. */
export class StopScanner {
  readonly #sequences: readonly string[];
  #held = '';
  #matched: string | undefined;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences;
  }

  /** The sequence that was found; nothing may be pushed after that. */
  get matched(): string | undefined {
    return this.#matched;
  }

  /** The text that is safe to pass on; when a sequence is found, the text before it. */
  push(piece: string): string {
    if (this.#sequences.length === 0) return piece;
    const text = this.#held + piece;
    const at = this.#find(text);
    const end = at ?? text.length - heldLength(text, this.#sequences);
    this.#held = at === undefined ? text.slice(end) : '';
    return text.slice(0, end);
  }

  /** What was held back, when no more text comes. */
  end(): string {
    const text = this.#held;
    this.#held = '';
    return text;
  }

  /** Offset of the first sequence in the text; of two at one offset the longer one counts. */
  #find(text: string): number | undefined {
    let first: number | undefined;
    for (const sequence of this.#sequences) {
      const at = text.indexOf(sequence);
      if (at === -1 || (first !== undefined && at > first)) continue;
      if (at === first && sequence.length < (this.#matched?.length ?? 0)) continue;
      first = at;
      this.#matched = sequence;
    }
    return first;
  }
}

/** Length of the longest end of the text that begins one of the sequences. */
function heldLength(text: string, sequences: readonly string[]): number {
  let longest = 0;
  for (const sequence of sequences) {
    let length = Math.min(sequence.length - 1, text.length);
    while (length > longest && !sequence.startsWith(text.slice(text.length - length))) length -= 1;
    longest = Math.max(longest, length);
  }
  return longest;
}

// Finds tool calls in the model's text: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, the
// Hermes form that the tiny model and most small open models are trained on, or one element a parameter
// between the same tags (below).
//
// A call whose form a grammar holds is passed on while it is written. Another is passed on when it is
// whole; what is not a call of an offered tool stays text, so that nothing the model said is lost.

// The form of calls that Qwen's coders and their likes write, with one element a parameter:
//
// <function=NAME> <parameter=KEY> value </parameter> … </function>
//
// Values are text; the tool's schema says which of them are JSON.

/** A template that holds it teaches this form. */
export const xmlCallMark = '<function=';

interface XmlCall {
  readonly name: string;
  /** JSON text; numbers keep the digits that the model wrote. */
  readonly argumentsJson: string;
}

const opening = /^<function=([^>\s]+)>/u;
const closing = '</function>';
/** A value may hold the closing tag itself: only what begins or ends an element closes one. */
const parameterForm = /\s*<parameter=([^>\n]+)>\n?([^]*?)\n?<\/parameter>\s*(?=<parameter=|$)/uy;

/** @param schemaOf the parameters of an offered tool. */
export function readXmlCall(
  text: string,
  schemaOf: (name: string) => JsonObject | undefined,
): XmlCall | undefined {
  const call = text.trim();
  const [tag = '', name] = opening.exec(call) ?? [];
  if (name === undefined) return undefined;
  const body = call.slice(tag.length, call.endsWith(closing) ? -closing.length : undefined);
  const properties = schemaOf(name)?.['properties'];
  const members = new Map<string, string>();
  parameterForm.lastIndex = 0;
  let at = 0;
  for (let found = parameterForm.exec(body); found !== null; found = parameterForm.exec(body)) {
    const [whole, key = '', value = ''] = found;
    at += whole.length;
    const schema = isObject(properties) ? properties[key] : undefined;
    members.set(key, isText(schema, value) ? JSON.stringify(value) : value.trim());
  }
  if (body.slice(at).trim() !== '') return undefined;
  const pairs = [...members].map(([key, value]) => `${JSON.stringify(key)}: ${value}`);
  return { name, argumentsJson: `{${pairs.join(', ')}}` };
}

/** Whether a value is a string and not the JSON that it may look like. */
function isText(schema: unknown, value: string): boolean {
  if (tryParse(value) === undefined || !isObject(schema)) return true;
  const { type, enum: choices } = schema;
  if (isArray(choices)) return choices.includes(value);
  const types = isArray(type) ? type : [type];
  if (value.trim() === 'null' && types.includes('null')) return false;
  const says = ['type', 'anyOf', 'oneOf', 'allOf', '$ref', 'const'].some((key) => key in schema);
  return !says || types.includes('string');
}

/** Receives what the scanner finds, in order. */
export interface ToolSink {
  text(text: string): void;
  /** A call begins; its arguments follow. */
  call(name: string): void;
  /** The next piece of the arguments, JSON text as the model writes it. */
  callArguments(text: string): void;
}

interface ToolScannerOptions {
  readonly names: ReadonlySet<string>;
  /** The parameters of a tool, for forms that do not distinguish text from JSON. */
  readonly schemaOf?: (name: string) => JsonObject | undefined;
  /** Called when a call begins, with the text after its tag. Returns whether its form is certain from here on. */
  readonly holdsForm: (rest: string) => boolean;
  /** A call of certain form is over. */
  readonly callEnded: () => void;
}

export const callOpening = '<tool_call>';
export const callClosing = '</tool_call>';
const header = /^\s*\{"name": "([^"\\]*)", "arguments": /u;

/** Splits one answer into text and calls. */
export class ToolScanner {
  readonly #options: ToolScannerOptions;
  readonly #sink: ToolSink;
  #state: 'text' | 'whole' | 'header' | 'arguments' | 'tail' = 'text';
  /** What came last and was not examined; in a header all of it. */
  #held = '';
  readonly #said = new TextToMark(callOpening);
  #body = new TextBefore(callClosing);
  #calls = 0;
  readonly #depth = new JsonDepth();

  /** Without names there are no calls: the text passes through. */
  constructor(options: ToolScannerOptions, sink: ToolSink) {
    this.#options = options;
    this.#sink = sink;
  }

  /** How many calls were found so far. */
  get calls(): number {
    return this.#calls;
  }

  /** How many of them are over. */
  get endedCalls(): number {
    return this.#state === 'arguments' || this.#state === 'tail' ? this.#calls - 1 : this.#calls;
  }

  /** Whether the text that comes next is a call's, in the form that a grammar holds. */
  get insideHeldCall(): boolean {
    return this.#state === 'header' || this.#state === 'arguments' || this.#state === 'tail';
  }

  push(piece: string): void {
    if (piece === '') return;
    if (this.#options.names.size === 0) {
      this.#sink.text(piece);
      return;
    }
    this.#held += piece;
    while (this.#step());
  }

  /** No more text comes. A call whose closing tag the model omitted still counts. */
  end(): void {
    const text = this.#held;
    this.#held = '';
    if (this.#state === 'whole') this.#finishCall(this.#body.text, '');
    else if (this.#state === 'header') this.#emit(`${callOpening}${text}`);
    else if (this.#state === 'text') this.#emit(this.#said.end());
  }

  /** True when what is held may hold more. */
  #step(): boolean {
    switch (this.#state) {
      case 'text': {
        // Passes text on up to a call.
        const { text, rest } = this.#said.push(this.#taken());
        this.#emit(text);
        if (rest === undefined) return false;
        this.#held = rest;
        if (this.#options.holdsForm(rest)) this.#state = 'header';
        else {
          this.#state = 'whole';
          this.#body = new TextBefore(callClosing);
        }
        return true;
      }
      case 'whole': {
        const found = this.#body.push(this.#taken());
        if (found === undefined) return false;
        this.#held = found.rest;
        this.#finishCall(found.before, callClosing);
        return true;
      }
      case 'header': {
        const match = header.exec(this.#held);
        if (match === null) return false;
        this.#held = this.#held.slice(match[0].length);
        this.#calls += 1;
        this.#state = 'arguments';
        this.#depth.reset();
        this.#sink.call(match[1] ?? '');
        return true;
      }
      case 'arguments': {
        const length = this.#depth.read(this.#held);
        if (length > 0) this.#sink.callArguments(this.#held.slice(0, length));
        this.#held = this.#held.slice(length);
        if (!this.#depth.closed) return false;
        this.#state = 'tail';
        return true;
      }
      case 'tail': {
        const at = this.#held.indexOf(callClosing);
        if (at === -1) {
          this.#held = this.#held.slice(1 - callClosing.length);
          return false;
        }
        this.#held = this.#held.slice(at + callClosing.length);
        this.#state = 'text';
        this.#options.callEnded();
        return true;
      }
      default:
        return this.#state satisfies never;
    }
  }

  #taken(): string {
    const text = this.#held;
    this.#held = '';
    return text;
  }

  #finishCall(body: string, closing: string): void {
    this.#state = 'text';
    const call = readCall(body) ?? readXmlCall(body, (name) => this.#options.schemaOf?.(name));
    if (call === undefined || !this.#options.names.has(call.name)) {
      this.#sink.text(`${callOpening}${body}${closing}`);
      return;
    }
    this.#calls += 1;
    this.#sink.call(call.name);
    this.#sink.callArguments(call.argumentsJson);
  }

  #emit(text: string): void {
    const shown = this.#calls > 0 && text.trim() === '' ? '' : text;
    if (shown !== '') this.#sink.text(shown);
  }
}

/** Finds the end of a JSON object that comes in pieces. */
class JsonDepth {
  #depth = 0;
  #inString = false;
  #escaped = false;
  closed = false;

  reset(): void {
    this.#depth = 0;
    this.#inString = false;
    this.#escaped = false;
    this.closed = false;
  }

  /** How much of the text belongs to the object; `closed` says whether it ended there. */
  read(text: string): number {
    for (let index = 0; index < text.length; index++) {
      const character = text[index] ?? '';
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (character === '\\') this.#escaped = true;
        else if (character === '"') this.#inString = false;
      } else if (character === '"') this.#inString = true;
      else if (character === '{' || character === '[') this.#depth += 1;
      else if (character === '}' || character === ']') {
        this.#depth -= 1;
        this.closed = this.#depth === 0;
      }
      if (this.closed) return index + 1;
    }
    return text.length;
  }
}

interface ToolCall {
  readonly name: string;
  /** JSON text as the model wrote it. */
  readonly argumentsJson: string;
}

const argumentsLast =
  /^\s*\{\s*"name"\s*:\s*"[^"\\]*"\s*,\s*"arguments"\s*:\s*(\{[^]*\})\s*\}\s*$/u;

function readCall(text: string): ToolCall | undefined {
  const value = tryParse(text);
  if (!isObject(value) || typeof value['name'] !== 'string') return undefined;
  return { name: value['name'], argumentsJson: argumentsOf(text, value) };
}

/** The arguments as they were written where possible: parsing and printing loses digits of numbers. */
function argumentsOf(text: string, call: JsonObject): string {
  const written = argumentsLast.exec(text)?.[1];
  if (written !== undefined && tryParse(written) !== undefined) return written;
  const value = call['arguments'];
  if (value === undefined || value === null) return '{}';
  if (typeof value === 'string' && isObject(tryParse(value))) return value;
  return JSON.stringify(value);
}
