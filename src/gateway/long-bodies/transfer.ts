/** What the structured clone of messages between threads does not carry: errors of the gateway, numbers with all digits, pieces of bytes. */
import { types } from 'node:util';
import type { Note, Notes } from '../../core/notes.ts';
import { StrictRefusal } from '../../core/notes.ts';
import { GatewayError, type GatewayErrorOptions } from '../../core/errors.ts';
import { Pieces } from '../../json/pieces.ts';

/** A thrown value as plain data. */
export type SentError =
  | {
      readonly kind: 'gateway';
      readonly code: GatewayError['code'];
      readonly message: string;
      readonly options: GatewayErrorOptions;
    }
  | { readonly kind: 'strict'; readonly path: GatewayError['path']; readonly why: string }
  | { readonly kind: 'other'; readonly stack: string };

export function sentError(thrown: unknown): SentError {
  if (thrown instanceof StrictRefusal)
    return { kind: 'strict', path: thrown.path, why: thrown.why };
  if (thrown instanceof GatewayError) {
    const { code, message, cause: _, ...known } = thrown;
    const { path, reason, status, retryable, repeat, ofRequest, upstream, detail } = known;
    const options = {
      ...(path === undefined ? {} : { path }),
      ...(reason === undefined ? {} : { reason }),
      ...(status === undefined ? {} : { status }),
      ...(repeat === undefined ? {} : { repeat }),
      ...(upstream === undefined ? {} : { upstream }),
      ...(detail === undefined ? {} : { detail }),
      retryable,
      ofRequest,
    };
    return { kind: 'gateway', code, message, options };
  }
  return { kind: 'other', stack: thrown instanceof Error ? (thrown.stack ?? '') : String(thrown) };
}

/** The error that was thrown in the other thread. What is no GatewayError becomes `internal` later, with its stack as the cause. */
export function receivedError(sent: SentError): Error {
  switch (sent.kind) {
    case 'strict':
      return new StrictRefusal(sent.path ?? [], sent.why);
    case 'gateway':
      return new GatewayError(sent.code, sent.message, sent.options);
    default:
      return new Error(`in the thread for long bodies: ${sent.stack}`);
  }
}

/**
 * A value that can be cloned: `JSON.rawJSON` objects, which are numbers with more digits than a double holds, lose what
 * they are in a clone. They travel as `String` objects, which no JSON text can make. The same value where it holds none.
 */
export function packed<T>(value: T): T {
  return rewritten(value, (object) =>
    JSON.isRawJSON(object) ? Object(JSON.stringify(object)) : undefined,
  );
}

/** The value as it was before `packed`: undoes it. */
export function unpacked<T>(value: T): T {
  return rewritten(value, (object) =>
    types.isStringObject(object) ? JSON.rawJSON(object.valueOf()) : undefined,
  );
}

type Replace = (object: object) => object | undefined;

/** The value with some objects in it replaced; what holds none of these stays the same object. */
function rewritten<T>(value: T, replace: Replace): T;
function rewritten(value: unknown, replace: Replace): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBuffer.isView(value) || value instanceof Set) return value;
  const replaced = replace(value);
  if (replaced !== undefined) return replaced;
  if (value instanceof Map) return rewrittenMap(value, replace);
  if (Array.isArray(value)) return rewrittenList(value, replace);
  let copy: { [key: string]: unknown } | undefined;
  for (const [key, each] of Object.entries(value)) {
    const next = rewritten(each, replace);
    if (next === each) continue;
    copy ??= { ...value };
    copy[key] = next;
  }
  return copy ?? value;
}

function rewrittenMap(map: ReadonlyMap<unknown, unknown>, replace: Replace): unknown {
  const copy = new Map([...map].map(([key, each]) => [key, rewritten(each, replace)]));
  return [...map].every(([key, each]) => copy.get(key) === each) ? map : copy;
}

function rewrittenList(list: readonly unknown[], replace: Replace): unknown {
  let copy: unknown[] | undefined;
  for (const [i, each] of list.entries()) {
    const next = rewritten(each, replace);
    if (next === each) continue;
    copy ??= [...list];
    copy[i] = next;
  }
  return copy ?? list;
}

/** A piece of bytes: new ones, or a range of the body that both threads have. `end` is exclusive. */
export type SentPiece = Uint8Array | { readonly start: number; readonly end: number };

/** @param body the bytes of which pieces may be parts. */
export function sentPieces(pieces: Pieces, body: Uint8Array): readonly SentPiece[] {
  return pieces.list.map((piece): SentPiece => {
    if (piece.buffer === body.buffer) {
      const start = piece.byteOffset - body.byteOffset;
      return { start, end: start + piece.length };
    }
    // Memory of its own can be moved; a part of a pool is copied.
    return piece.length === piece.buffer.byteLength ? piece : new Uint8Array(piece);
  });
}

/** @param body the sender's `body`, as it is here. */
export function receivedPieces(sent: readonly SentPiece[], body: Pieces): Pieces {
  const [first] = sent;
  if (sent.length === 1 && first instanceof Uint8Array) return Pieces.of(bufferOver(first));
  return new Pieces(
    sent.flatMap((piece) =>
      piece instanceof Uint8Array ? [bufferOver(piece)] : body.between(piece.start, piece.end),
    ),
  );
}

/** The same memory as a Buffer. */
export function bufferOver(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Adds what was noted in the other thread. */
export function addNotes(notes: Notes, more: readonly Note[]): void {
  for (const { path, what, why } of more) notes[what]([path], why);
}
