/**
 * Arguments of a call that arrive in pieces (`partialArgs`). Each piece has a path in the arguments and a value. They
 * are joined at the end of the call, since a later piece may continue an earlier path.
 */
import { GatewayError } from '../../../core/errors.ts';
import type { Json, JsonObject } from '../../../json/value.ts';
import { answerObjects } from '../../shared/answers.ts';

type Step = string | number;
type Holder = Json[] | { [key: string]: Json };

/** The maximum depth of a path, and the maximum index in a list. No model writes arguments beyond it. */
const maxSteps = 64;
const maxIndex = 10_000;

export class PartialArgs {
  readonly #args: { [key: string]: Json } = {};

  /** @throws GatewayError `upstream_invalid` for a path that does not fit the pieces before. */
  add(pieces: Json | undefined): void {
    for (const piece of answerObjects(pieces, 'partialArgs')) {
      const steps = stepsOf(piece['jsonPath']);
      const value = valueOf(piece);
      if (value !== undefined) this.#set(steps, value);
    }
  }

  get json(): string {
    return JSON.stringify(this.#args);
  }

  #set(steps: readonly Step[], value: Json): void {
    const last = steps.at(-1);
    if (last === undefined) throw misplaced();
    let at: Holder = this.#args;
    steps.slice(0, -1).forEach((step, i) => {
      at = holderIn(at, step, typeof steps[i + 1] === 'number');
    });
    const before = own(at, last);
    // A second piece with the same path continues the string.
    const continues = typeof before === 'string' && typeof value === 'string';
    put(at, last, continues ? before + value : value);
  }
}

function valueOf(piece: JsonObject): Json | undefined {
  const { stringValue, numberValue, boolValue } = piece;
  if (typeof stringValue === 'string') return stringValue;
  if (numberValue !== undefined) return numberValue;
  if (typeof boolValue === 'boolean') return boolValue;
  return 'nullValue' in piece ? null : undefined;
}

function holderIn(at: Holder, step: Step, list: boolean): Holder {
  const found = own(at, step);
  if (found === undefined) {
    const made: Holder = list ? [] : {};
    put(at, step, made);
    return made;
  }
  if (list !== Array.isArray(found) || typeof found !== 'object' || found === null) {
    throw misplaced();
  }
  return found as Holder;
}

/** Keys are data: `__proto__` is an ordinary key. */
function own(at: Holder, step: Step): Json | undefined {
  if (Array.isArray(at) !== (typeof step === 'number')) throw misplaced();
  return Object.hasOwn(at, step)
    ? (Object.getOwnPropertyDescriptor(at, step)?.value as Json)
    : undefined;
}

function put(at: Holder, step: Step, value: Json): void {
  if (typeof step === 'number' && step > maxIndex) throw misplaced();
  Object.defineProperty(at, step, { value, enumerable: true, writable: true, configurable: true });
}

/** The steps of a normalised path (RFC 9535): `$.a['b'][0]`. */
function stepsOf(path: Json | undefined): readonly Step[] {
  if (typeof path !== 'string' || !path.startsWith('$')) throw misplaced();
  const steps: Step[] = [];
  let at = 1;
  while (at < path.length) {
    if (steps.length >= maxSteps) throw misplaced();
    const { step, end } = path[at] === '[' ? bracketed(path, at + 1) : dotted(path, at);
    steps.push(step);
    at = end;
  }
  return steps;
}

interface ReadStep {
  readonly step: Step;
  readonly end: number;
}

function dotted(path: string, at: number): ReadStep {
  if (path[at] !== '.') throw misplaced();
  let end = at + 1;
  while (end < path.length && path[end] !== '.' && path[end] !== '[') end += 1;
  return { step: path.slice(at + 1, end), end };
}

function bracketed(path: string, at: number): ReadStep {
  const quote = path[at];
  if (quote !== "'" && quote !== '"') {
    const close = path.indexOf(']', at);
    const index = Number(path.slice(at, close));
    if (close === -1 || !Number.isInteger(index) || index < 0) throw misplaced();
    return { step: index, end: close + 1 };
  }
  let name = '';
  let i = at + 1;
  for (; i < path.length && path[i] !== quote; i += 1) {
    if (path[i] === '\\') i += 1;
    name += path[i] ?? '';
  }
  if (path[i + 1] !== ']') throw misplaced();
  return { step: name, end: i + 2 };
}

function misplaced(): GatewayError {
  return new GatewayError(
    'upstream_invalid',
    'The upstream sent a piece of arguments at a place that does not exist.',
  );
}
