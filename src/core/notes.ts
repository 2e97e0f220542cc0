/** What a translation lost or changed. Loss is a value: it reaches the client and the log. */
import { GatewayError, type FieldPath } from './errors.ts';

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

/** A 400 that names the field in the client's dialect; no upstream was asked. */
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

  /** The value of `x-gateway-notes`: `field: what happened; …`, ASCII, capped; '' when empty. */
  header(): string {
    if (this.all.length === 0) return '';
    const text = this.all
      .map((note) => `${note.path}: ${note.what === 'lost' ? 'dropped' : 'changed'}, ${note.why}`)
      .join('; ')
      .replace(/[^\x20-\x7e]/g, '?');
    return text.length <= maxHeaderLength ? text : `${text.slice(0, maxHeaderLength - 3)}...`;
  }
}
