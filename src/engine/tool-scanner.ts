/**
 * Finds tool calls in the model's text: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, the
 * Hermes form that the tiny model and most small open models are trained on. What is no call of an
 * offered tool stays text, so that nothing the model said is lost.
 */
import { isObject, tryParse, type JsonObject } from './json.ts';
import { heldLength } from './stop-scanner.ts';

export interface ToolCall {
  readonly name: string;
  /** JSON text as the model wrote it. */
  readonly argumentsJson: string;
}

/** Receives what the scanner finds, in order. */
export interface ScanSink {
  text(text: string): void;
  toolCall(call: ToolCall): void;
}

export const callOpening = '<tool_call>';
export const callClosing = '</tool_call>';
const trailingSpace = /\s+$/u;

/** Splits one answer into text and calls. */
export class ToolScanner {
  readonly #names: ReadonlySet<string>;
  readonly #sink: ScanSink;
  #held = '';
  #insideCall = false;
  #calls = 0;

  /** Without names there are no calls: the text passes through. */
  constructor(names: ReadonlySet<string>, sink: ScanSink) {
    this.#names = names;
    this.#sink = sink;
  }

  /** How many calls were found so far. */
  get calls(): number {
    return this.#calls;
  }

  push(piece: string): void {
    if (piece === '') return;
    if (this.#names.size === 0) {
      this.#sink.text(piece);
      return;
    }
    this.#held += piece;
    while (this.#insideCall ? this.#closeCall() : this.#openCall());
  }

  /** No more text comes. A call whose closing tag the model left out still counts. */
  end(): void {
    if (this.#insideCall) this.#finishCall(this.#held, '');
    else this.#emit(this.#held);
    this.#held = '';
  }

  /** Passes text on up to a call; true when a call began. */
  #openCall(): boolean {
    const at = this.#held.indexOf(callOpening);
    if (at !== -1) {
      this.#emit(this.#held.slice(0, at).replace(trailingSpace, ''));
      this.#held = this.#held.slice(at + callOpening.length);
      this.#insideCall = true;
      return true;
    }
    const safe = this.#held.length - heldLength(this.#held, [callOpening]);
    // Space before a call belongs to the call's form, so it waits until text follows.
    const text = this.#held.slice(0, safe).replace(trailingSpace, '');
    this.#emit(text);
    this.#held = this.#held.slice(text.length);
    return false;
  }

  /** True when a call ended and more may follow. */
  #closeCall(): boolean {
    const at = this.#held.indexOf(callClosing);
    if (at === -1) return false;
    const body = this.#held.slice(0, at);
    this.#held = this.#held.slice(at + callClosing.length);
    this.#finishCall(body, callClosing);
    return true;
  }

  #finishCall(body: string, closing: string): void {
    this.#insideCall = false;
    const call = readCall(body);
    if (call === undefined || !this.#names.has(call.name)) {
      this.#sink.text(`${callOpening}${body}${closing}`);
      return;
    }
    this.#calls += 1;
    this.#sink.toolCall(call);
  }

  #emit(text: string): void {
    const shown = this.#calls > 0 && text.trim() === '' ? '' : text;
    if (shown !== '') this.#sink.text(shown);
  }
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
