/** What a call said, on its way from the one who saw it to the thread that makes it fit to be kept. */
import type { Json } from '../../json/value.ts';

/** Bytes as they came; what is missing at the end was never held. */
export interface SeenBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** How long it really was. */
  readonly length: number;
}

export interface SeenAttempt {
  /** `provider/model`. */
  readonly target: string;
  readonly status: number | undefined;
  /** What it answered instead of an answer. */
  readonly error: string;
}

export interface SeenCall {
  readonly id: string;
  readonly keyId: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    /** Flat: name, value, … */
    readonly headers: readonly string[];
    /** Undefined when it was not read. */
    readonly body: SeenBody | undefined;
  };
  /** Undefined when the client got none. */
  readonly answer:
    | {
        readonly status: number;
        readonly headers: readonly string[];
        readonly body: SeenBody;
        /** Whether it came to its end. */
        readonly whole: boolean;
      }
    | undefined;
  readonly attempts: readonly SeenAttempt[];
  /** Flat headers whose values may stand nowhere. */
  readonly secrets: readonly string[];
}

/** JSON as it was, events of a stream (those that belong together put together), or text. */
export type BodyForm = 'json' | 'events' | 'text';

export interface KeptBody {
  /** Size of the body before anything was left out. */
  readonly bytes: number;
  /** The text was truncated. */
  readonly cut: boolean;
  readonly form: BodyForm;
  readonly content: Json;
}

export interface KeptHeader {
  readonly name: string;
  /** Null: not kept. */
  readonly value: string | null;
}

/** What a call said, as it is kept: without secrets and media, under a limit. */
export interface KeptContent {
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: readonly KeptHeader[];
    readonly body: KeptBody | null;
  };
  readonly answer: {
    readonly status: number;
    readonly headers: readonly KeptHeader[];
    readonly body: KeptBody;
    readonly whole: boolean;
  } | null;
  readonly attempts: readonly {
    readonly target: string;
    readonly status: number | null;
    readonly body: KeptBody;
  }[];
}
