/** Notes about losses and changes of a translation. Loss is a value: it reaches the client and the log. */
import { type FieldPath, GatewayError } from './errors.ts';

export interface Notes {
  /** A field was dropped. */
  lost(path: FieldPath, why: string): void;
  /** A field was carried with a slightly different meaning. */
  changed(path: FieldPath, why: string): void;
}

export interface Note {
  readonly path: string;
  readonly what: 'lost' | 'changed';
  readonly why: string;
}

const maxHeaderLength = 1024;

/** `field: dropped, why`: a note in `x-gateway-notes`, in the log and in the ledger. */
export function noteText({ path, what, why }: Note): string {
  return `${path}: ${what === 'lost' ? 'dropped' : 'changed'}, ${why}`;
}

/**
 * For keys and routes that take no loss: the first note is the refusal of the request. Another target
 * may be tried, since it may carry the field or need no translation.
 */
export class StrictNotes implements Notes {
  lost(path: FieldPath, why: string): never {
    throw new StrictRefusal(path, `would be dropped: ${why}`);
  }

  changed(path: FieldPath, why: string): never {
    throw new StrictRefusal(path, `would be changed: ${why}`);
  }
}

/** A 400 that names the field in the client's dialect; no upstream request was sent. */
export class StrictRefusal extends GatewayError {
  /** The end of the sentence. */
  readonly why: string;

  constructor(path: FieldPath, why: string) {
    const reason = 'unsupported_parameter';
    super('invalid_request', `Strict: this ${why}`, { path, reason, retryable: true });
    this.why = why;
  }
}

/** Collects the notes of one call. */
export class NoteList implements Notes {
  readonly all: Note[] = [];

  lost(path: FieldPath, why: string): void {
    this.all.push({ path: path.join('.'), what: 'lost', why });
  }

  changed(path: FieldPath, why: string): void {
    this.all.push({ path: path.join('.'), what: 'changed', why });
  }

  /** The value of `x-gateway-notes`: `field: what happened; …`, each note once, ASCII, capped; '' when empty. */
  header(): string {
    if (this.all.length === 0) return '';
    const text = [...new Set(this.all.map(noteText))].join('; ').replace(/[^\x20-\x7e]/g, '?');
    return text.length <= maxHeaderLength ? text : `${text.slice(0, maxHeaderLength - 3)}...`;
  }
}

// Paths in the client's request of the parts of a conversation: notes and refusals of another dialect's writer name the
// path that the client knows. A path is kept outside of its value, so that equal values stay equal wherever they stood.

const paths = new WeakMap<object, FieldPath>();

/** Remembers the path of a part or turn. */
export function withPath<const T extends object>(value: T, path: FieldPath): T {
  paths.set(value, path);
  return value;
}

/** Gives a changed copy the path of the original. */
export function withPathOf<T extends object>(original: object, copy: T): T {
  const path = paths.get(original);
  return path === undefined ? copy : withPath(copy, path);
}

/** Paths of members that are no objects in the conversation, by its `extras`, which all copies of it share. */
const memberPaths = new WeakMap<object, { readonly [member: string]: FieldPath }>();

/** Remembers the client's paths of members of a conversation. */
export function withMemberPaths<T extends object>(
  extras: T,
  named: { readonly [member: string]: FieldPath },
): T {
  memberPaths.set(extras, named);
  return extras;
}

/** The client's path of a member of the conversation, or `otherwise` if it is not known. */
export function memberPath(extras: object, member: string, otherwise: FieldPath): FieldPath {
  return memberPaths.get(extras)?.[member] ?? otherwise;
}

/** The path of a value, or `otherwise` where none is known. */
export function pathOf(value: object, otherwise: FieldPath): FieldPath {
  return paths.get(value) ?? otherwise;
}
