/** What the store's two threads say to each other; values travel by structured clone. */
import type { StoreFailure } from './store-error.ts';
import type { CallValues } from './sqlite-rows.ts';
import type { KeyRecord, UsageQuery } from './store.ts';

export interface WorkerOptions {
  readonly path: string;
  /** A reader opens the file for queries only, so that a long one never holds up a write (L5). */
  readonly readOnly: boolean;
  /** False once the file was open: a thread that replaces a dead one must find it (F87). */
  readonly mayCreate: boolean;
}

export type StoreRequest =
  | { readonly op: 'listKeys' }
  | { readonly op: 'addKey'; readonly record: KeyRecord }
  | { readonly op: 'revokeKey'; readonly id: string; readonly at: number }
  | { readonly op: 'readSetting'; readonly name: string }
  | { readonly op: 'writeSetting'; readonly name: string; readonly value: string }
  | { readonly op: 'recordCalls'; readonly rows: readonly CallValues[] }
  | { readonly op: 'usage'; readonly query: UsageQuery }
  | { readonly op: 'listCalls'; readonly limit: number }
  | { readonly op: 'close' };

export interface RequestMessage {
  readonly seq: number;
  readonly request: StoreRequest;
}

export interface FailureMessage {
  readonly kind: StoreFailure;
  readonly message: string;
}

/** The answer to `seq`; 0 is the opening of the database. */
export interface ReplyMessage {
  readonly seq: number;
  readonly value?: unknown;
  readonly failure?: FailureMessage;
}
