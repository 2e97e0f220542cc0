/**
 * Long bodies, parsed in steps: one `JSON.parse` of 32 MB, or of 400,000 keys, would hold up all other
 * calls for a second (G11). The bytes are walked once; siblings are gathered into groups of some size,
 * each group is parsed natively, and between steps the event loop has its turn.
 */
import type { Json, JsonObject } from './conversation.ts';
import { digitsAtRisk } from './exact-numbers.ts';
import { GatewayError, invalidRequest, type FieldPath } from './errors.ts';
import {
  isClosing,
  isDigit,
  isSpace,
  longNumber,
  maxDepth,
  maxDigits,
  maxKeyLength,
  maxTokens,
  maxTokensAtOnce,
  notJson,
  quote,
  skipSpace,
  tooDeep,
  tooMany,
  trimEnd,
  type Span,
} from './json-bytes.ts';
import { countKeys } from './json-count.ts';
import { assign, define, firstWrong, isEmpty, positionOf, type Frame } from './json-frames.ts';
import { stringInSteps } from './json-long-string.ts';
import { usualSizes, type ParseText, type StepParts, type StepSizes } from './json-step-parts.ts';
import { nextTurn, type Steps } from './steps.ts';

export interface SteppedBody {
  /** Undefined when there is nothing but white space. */
  readonly value: JsonObject | undefined;
  readonly spans: ReadonlyMap<string, Span>;
  readonly repeated: readonly string[];
  readonly tokens: number;
  /** Keys as they stand in the bytes, and as they are left in the value. */
  readonly colons: number;
  readonly keys: number;
  readonly bodyStart: number;
}

/** @throws GatewayError as `parseBody` does, but for what it says of the whole; what `room` throws. */
export async function parseInSteps(
  bytes: Buffer,
  { parse, sizes = usualSizes, room, crowded }: StepParts,
): Promise<SteppedBody> {
  const parser = new StepParser(bytes, parse, sizes);
  let entered = false;
  try {
    while (parser.step()) {
      await nextTurn();
      const { tokens } = parser;
      if (!entered && tokens > maxTokensAtOnce) {
        await crowded?.enter();
        entered = true;
      }
      room?.(tokens);
    }
    return parser.result();
  } finally {
    if (entered) crowded?.leave();
  }
}

interface LongValue {
  /** Where its quotes stand. */
  readonly open: number;
  readonly close: number;
  readonly steps: Steps<string>;
}

const openBrace = 0x7b;
const openBracket = 0x5b;
const closeBrace = 0x7d;
const closeBracket = 0x5d;
const comma = 0x2c;
const colon = 0x3a;
/** So many escaped quotes in one string are passed over before somebody else has a turn. */
const maxLooks = 50_000;

class StepParser {
  readonly #bytes: Buffer;
  readonly #sizes: StepSizes;
  readonly #native: ParseText;
  readonly #stack: Frame[] = [];
  readonly #spans = new Map<string, Span>();
  readonly #repeated: string[] = [];
  #at = 0;
  #tokens = 0;
  #colons = 0;
  #keys = 0;
  #bodyStart = 0;
  #longNumbers = false;
  /** Where the string began that the walk is in. */
  #string: number | undefined;
  /** A value that is one long string: it is read before the walk goes on. */
  #long: LongValue | undefined;
  /** The last string on the top level: a key, once its colon comes. */
  #keyText: readonly [number, number] | undefined;
  #key: string | undefined;
  #valueStart = 0;
  #value: JsonObject | undefined;

  constructor(bytes: Buffer, parse: ParseText, sizes: StepSizes) {
    this.#bytes = bytes;
    this.#native = parse;
    this.#sizes = sizes;
  }

  /** Goes on for a while; false when it is through. @throws GatewayError */
  step(): boolean {
    const bytes = this.#bytes;
    if (this.#long !== undefined) this.#readLong(this.#long);
    if (this.#long !== undefined) return true;
    const untilByte = Math.min(bytes.length, this.#at + this.#sizes.bytes);
    const untilToken = this.#tokens + this.#sizes.tokens;
    while (this.#at < untilByte && this.#tokens < untilToken) {
      if (this.#string === undefined) this.#see(bytes[this.#at] ?? 0);
      else if (!this.#passString(this.#string)) break;
    }
    if (this.#at < bytes.length) return true;
    if (this.#value === undefined && (this.#bodyStart > 0 || this.#string !== undefined)) {
      throw this.#wrong(bytes.length);
    }
    return false;
  }

  /** So far. */
  get tokens(): number {
    return this.#tokens;
  }

  result(): SteppedBody {
    return {
      value: this.#value,
      spans: this.#spans,
      repeated: this.#repeated,
      tokens: this.#tokens,
      colons: this.#colons,
      keys: this.#keys,
      bodyStart: this.#bodyStart,
    };
  }

  // One switch because it runs for every byte outside of strings.
  // oxlint-disable-next-line eslint/complexity
  #see(byte: number): void {
    const at = this.#at;
    this.#at += 1;
    if (this.#stack.length === 0) return this.#outside(byte, at);
    switch (byte) {
      case quote:
        this.#string = at;
        break;
      case openBrace:
      case openBracket:
        this.#open(byte, at);
        break;
      case closeBrace:
      case closeBracket:
        this.#close(byte, at);
        break;
      case comma:
        this.#count();
        this.#boundary(at);
        break;
      case colon:
        this.#count();
        this.#colons += 1;
        if (this.#stack.length === 1) this.#beginMember(at);
        break;
      default:
        if (isDigit(byte)) this.#passDigits(at);
    }
  }

  #outside(byte: number, at: number): void {
    if (isSpace(byte)) return;
    if (this.#value !== undefined) throw this.#wrong(at);
    if (byte !== openBrace) {
      // Whatever it is: what begins so is no object.
      if (byte === openBracket || byte === quote || /[-\dtfn]/.test(String.fromCharCode(byte))) {
        throw invalidRequest('The request body must be a JSON object.');
      }
      throw this.#wrong(at);
    }
    this.#bodyStart = at + 1;
    this.#open(byte, at);
  }

  #count(): void {
    this.#tokens += 1;
    if (this.#tokens > maxTokens) throw tooMany();
  }

  /** False when the string is longer than one step; then it is gone on with. */
  #passString(start: number): boolean {
    const bytes = this.#bytes;
    for (let looks = 0; looks < maxLooks; looks += 1) {
      const end = bytes.indexOf(quote, this.#at);
      // It is wrong where it begins, as it does not end; what is in it is not looked at.
      if (end === -1) throw this.#wrong(start);
      const closing = isClosing(bytes, end, this.#at);
      this.#at = end + 1;
      if (!closing) continue;
      this.#string = undefined;
      if (this.#isLongValue(start, end)) {
        this.#beginLong(start, end);
        return false;
      }
      if (this.#stack.length === 1 && this.#key === undefined) this.#keyText = [start, end + 1];
      return true;
    }
    return false;
  }

  /** What stands where a key does is left to the parse of its group, which refuses it. */
  #isLongValue(open: number, close: number): boolean {
    if (close - open <= this.#sizes.stringBytes) return false;
    const frame = this.#stack.at(-1);
    if (frame === undefined || frame.attachedEnd !== undefined) return false;
    return frame.items !== undefined || this.#bytes[trimEnd(this.#bytes, open) - 1] === colon;
  }

  #beginLong(open: number, close: number): void {
    const place = { start: open + 1, end: close, stepBytes: this.#sizes.stringBytes };
    const parse = (text: string): Json => this.#native(text, false);
    this.#long = { open, close, steps: stringInSteps(this.#bytes, place, parse) };
  }

  #readLong({ open, close, steps }: LongValue): void {
    const step = this.#nextOf(steps, close);
    if (step.done !== true) return;
    this.#long = undefined;
    this.#attach(step.value, open, close);
  }

  /** @throws GatewayError for what is no text. */
  #nextOf(steps: Steps<string>, close: number): IteratorResult<undefined, string> {
    try {
      return steps.next();
    } catch {
      throw this.#wrong(close);
    }
  }

  #passDigits(from: number): void {
    let i = from + 1;
    while (isDigit(this.#bytes[i])) i += 1;
    this.#at = i;
    if (i - from >= digitsAtRisk) this.#longNumbers = true;
    if (i - from > maxDigits) throw longNumber();
  }

  #open(byte: number, at: number): void {
    this.#count();
    if (this.#stack.length >= maxDepth) throw tooDeep();
    if (this.#stack.at(-1)?.attachedEnd !== undefined) throw this.#wrong(at);
    this.#stack.push({
      open: at,
      items: byte === openBracket ? [] : undefined,
      members: {},
      groupStart: at + 1,
      groupTokens: this.#tokens,
      itemStart: at + 1,
      attachedEnd: undefined,
      begun: false,
    });
  }

  /** A comma. */
  #boundary(at: number): void {
    const frame = this.#stack.at(-1);
    if (frame === undefined) return;
    if (this.#stack.length === 1) this.#endMember(at);
    if (frame.attachedEnd !== undefined) {
      this.#onlySpace(frame.attachedEnd, at);
      frame.attachedEnd = undefined;
      this.#beginGroup(frame, at + 1);
      return;
    }
    const { groupBytes, groupTokens } = this.#sizes;
    const isFull =
      at - frame.groupStart >= groupBytes || this.#tokens - frame.groupTokens >= groupTokens;
    if (isFull) {
      this.#parseGroup(frame, at);
      this.#beginGroup(frame, at + 1);
    } else frame.itemStart = at + 1;
  }

  #beginGroup(frame: Frame, at: number): void {
    frame.groupStart = at;
    frame.itemStart = at;
    frame.groupTokens = this.#tokens;
  }

  #close(byte: number, at: number): void {
    const frame = this.#stack.at(-1);
    if (frame === undefined) return;
    const isRoot = this.#stack.length === 1;
    if ((byte === closeBracket) !== (frame.items !== undefined)) throw this.#wrong(at);
    if (isRoot) this.#endMember(at);
    if (frame.attachedEnd !== undefined) this.#onlySpace(frame.attachedEnd, at);
    else if (frame.begun) this.#parseGroup(frame, at);
    else if (isRoot && skipSpace(this.#bytes, frame.groupStart) < at) this.#parseGroup(frame, at);
    this.#stack.pop();
    if (isRoot) this.#value = frame.members;
    else if (frame.begun) this.#attach(frame.items ?? frame.members, frame.open, at);
    // What was not begun stays text of the container around it.
  }

  /** Parses the items up to here, all of them whole. */
  #parseGroup(frame: Frame, end: number): void {
    const text = this.#bytes.toString('utf8', frame.groupStart, end);
    const parsed = this.#parse(frame.items === undefined ? `{${text}}` : `[${text}]`);
    if (parsed === undefined || isEmpty(parsed)) throw this.#wrong(end);
    frame.begun = true;
    this.#keys += this.#checked(() => countKeys(parsed), frame);
    if (frame.items === undefined) this.#keys -= assign(frame.members, parsed);
    else if (Array.isArray(parsed)) for (const item of parsed) frame.items.push(item);
  }

  /** Puts what was parsed on its own, from `open` to `at`, into the container around it. */
  #attach(value: Json, open: number, at: number): void {
    const frame = this.#stack.at(-1);
    if (frame === undefined) return;
    if (frame.itemStart > frame.groupStart) this.#parseGroup(frame, frame.itemStart - 1);
    frame.groupStart = frame.itemStart;
    if (frame.items !== undefined) {
      if (skipSpace(this.#bytes, frame.itemStart) < open) throw this.#wrong(at);
      frame.items.push(value);
    } else {
      const key = this.#keyBefore(frame, open);
      if (key === undefined) throw this.#wrong(at);
      if (key.length > maxKeyLength) throw longKey(this.#pathOf(this.#stack.length - 1));
      if (!Object.hasOwn(frame.members, key)) this.#keys += 1;
      define(frame.members, key, value);
    }
    frame.begun = true;
    frame.attachedEnd = at + 1;
  }

  /** The key of the item that begins at `open`; undefined when what stands before it is none. */
  #keyBefore(frame: Frame, open: number): string | undefined {
    const text = this.#bytes.toString('utf8', frame.itemStart, open);
    const parsed = this.#parse(`{${text}null}`);
    const keys = parsed === undefined ? [] : Object.keys(parsed);
    return keys.length === 1 ? keys[0] : undefined;
  }

  #parse(text: string): JsonObject | readonly Json[] | undefined {
    try {
      const value = this.#native(text, this.#longNumbers);
      return typeof value === 'object' && value !== null ? value : undefined;
    } catch {
      return undefined;
    }
  }

  /** Runs a check of a group's values; the path of what it finds begins at the top. */
  #checked(check: () => number, frame: Frame): number {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const [first, ...rest] = error.path ?? [];
      const own =
        typeof first === 'number' && frame.items !== undefined
          ? [first + frame.items.length, ...rest]
          : (error.path ?? []);
      throw invalidRequest(error.message, [...this.#pathOf(this.#stack.length - 1), ...own]);
    }
  }

  /** Where the container at a depth stands. */
  #pathOf(depth: number): FieldPath {
    const path: (string | number)[] = [];
    for (let i = 0; i < depth; i += 1) {
      const frame = this.#stack[i];
      const child = this.#stack[i + 1];
      if (frame === undefined || child === undefined) break;
      path.push(this.#placeOf(frame, child));
    }
    return path;
  }

  #placeOf(frame: Frame, child: Frame): string | number {
    if (frame.items === undefined) return this.#keyBefore(frame, child.open) ?? '';
    const waiting =
      frame.itemStart > frame.groupStart
        ? this.#parse(`[${this.#bytes.toString('utf8', frame.groupStart, frame.itemStart - 1)}]`)
        : [];
    return frame.items.length + (Array.isArray(waiting) ? waiting.length : 0);
  }

  #beginMember(at: number): void {
    if (this.#keyText === undefined) return;
    const [start, end] = this.#keyText;
    const parsed = this.#parse(`[${this.#bytes.toString('utf8', start, end)}]`);
    const key = Array.isArray(parsed) ? parsed[0] : undefined;
    this.#keyText = undefined;
    if (typeof key !== 'string') return;
    this.#key = key;
    this.#valueStart = skipSpace(this.#bytes, at + 1);
  }

  #endMember(at: number): void {
    const key = this.#key;
    if (key === undefined) return;
    if (this.#spans.has(key)) this.#repeated.push(key);
    this.#spans.set(key, { start: this.#valueStart, end: trimEnd(this.#bytes, at) });
    this.#key = undefined;
  }

  #onlySpace(from: number, to: number): void {
    const at = skipSpace(this.#bytes, from);
    if (at < to) throw this.#wrong(at);
  }

  /** What stands here, or earlier in text that was not parsed yet, cannot stand there. */
  #wrong(at: number): GatewayError {
    return notJson(positionOf(this.#bytes, firstWrong(this.#bytes, this.#stack, at)));
  }
}

function longKey(path: FieldPath): GatewayError {
  return invalidRequest(`A key is longer than ${maxKeyLength} characters.`, path);
}
