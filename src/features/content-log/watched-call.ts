/** One call whose content is kept, from its first byte to the hand-over. Nothing here waits or throws. */
import type { IncomingMessage } from 'node:http';
import type { Pieces } from '../../json/pieces.ts';
import type { ClientSink } from '../../gateway/client-answer.ts';
import { nameOf } from '../../gateway/health.ts';
import { secretHeaders } from '../../gateway/mask-credentials.ts';
import type { AttemptReceipt } from '../../core/receipt.ts';
import { AnswerTee } from '../answer-tee.ts';
import type { SeenBody, SeenCall } from './sealed-content.ts';

/** A longer body is not looked at to its end: of what is cut away nothing is copied. */
const maxSeenBytes = 4 * 1024 * 1024;

export interface WatchedParts {
  readonly id: string;
  readonly keyId: string;
  readonly startedAt: number;
  readonly path: string;
  readonly request: IncomingMessage;
  /** Takes memory for the copies; false when there is none. */
  readonly hold: (bytes: number) => boolean;
  /** Told once, when the call is over. */
  readonly over: (call: WatchedCall) => void;
}

/** Headers with public values. The values of all other upstream headers are never stored. */
const open: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'anthropic-beta',
  'anthropic-version',
  'content-length',
  'content-type',
  'user-agent',
]);
const clientSecrets = ['authorization', 'x-api-key', 'cookie', 'proxy-authorization'] as const;

export class WatchedCall {
  readonly #parts: WatchedParts;
  #body: Pieces | undefined;
  #answer: AnswerTee | undefined;
  #refused = false;
  #refusal: SeenCall['answer'];

  constructor(parts: WatchedParts) {
    this.#parts = parts;
  }

  get id(): string {
    return this.#parts.id;
  }

  get keyId(): string {
    return this.#parts.keyId;
  }

  get startedAt(): number {
    return this.#parts.startedAt;
  }

  /** The request's body is this. */
  asked(body: Pieces): void {
    this.#body = body;
  }

  /** What is written there is the answer. */
  watch(sink: ClientSink): ClientSink {
    this.#answer = new AnswerTee(sink, { maxBytes: maxSeenBytes, hold: this.#parts.hold });
    return this.#answer;
  }

  /** It was refused before its path began; the answer was this. */
  refused(status: number | undefined, body: unknown): void {
    this.#refused = true;
    if (status === undefined) return;
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    const seen = { bytes, length: bytes.length };
    this.#refusal = { status, headers: [], body: seen, whole: true };
  }

  /** The call is over, whatever became of it. */
  end(): void {
    this.#parts.over(this);
  }

  /** `none`: there is no call to tell of, an answer was only given again. `no room`: no memory to copy it. */
  seen(): SeenCall | 'none' | 'no room' {
    const receipt = this.#answer?.receipt;
    if (receipt === undefined && !this.#refused) return 'none';
    const { id, keyId, path, request } = this.#parts;
    const body = this.#copied();
    if (body === 'no room') return body;
    const { attempts = [] } = receipt ?? {};
    return {
      id,
      keyId,
      request: { method: request.method ?? '', path, headers: request.rawHeaders, body },
      answer: this.#refusal ?? this.#given(),
      attempts: attempts.flatMap(failedAttempt),
      secrets: [...this.#ownSecrets(), ...attempts.flatMap(upstreamSecrets)],
    };
  }

  #given(): SeenCall['answer'] {
    const answer = this.#answer;
    if (answer?.status === undefined) return undefined;
    const { status, headers, copy, length, ended } = answer;
    return { status, headers, body: { bytes: new Uint8Array(copy), length }, whole: ended };
  }

  #copied(): SeenBody | 'no room' | undefined {
    if (this.#body === undefined) return undefined;
    const { length } = this.#body;
    const taken = Math.min(length, maxSeenBytes);
    if (!this.#parts.hold(taken)) return 'no room';
    const bytes = new Uint8Array(new ArrayBuffer(taken));
    let at = 0;
    for (const piece of this.#body.between(0, taken)) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return { bytes, length };
  }

  #ownSecrets(): readonly string[] {
    const { headers } = this.#parts.request;
    return clientSecrets.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [name, value] : [];
    });
  }
}

function failedAttempt({ target, status, errorBody }: AttemptReceipt): SeenCall['attempts'] {
  return errorBody === undefined ? [] : [{ target: nameOf(target), status, error: errorBody }];
}

function upstreamSecrets({ target }: AttemptReceipt): readonly string[] {
  const headers = secretHeaders(target.provider.generate);
  return headers.filter((_, i) => !open.has((headers[i - (i % 2)] ?? '').toLowerCase()));
}
