/** Collects the bytes of an answer that is not a stream: a document or an error. Bounded. */
import { isUtf8 } from 'node:buffer';
import type { JsonObject } from '../../json/value.ts';
import { GatewayError, withDetail, withRetryAfter } from '../../core/errors.ts';
import { isBoundedAnswer, tryParseObject } from '../../json/parse.ts';
import type { UpstreamDialect } from '../../core/dialect.ts';
import type { Generation } from '../../core/generation.ts';
import type { Notes } from '../../core/notes.ts';
import { Pieces } from '../../json/pieces.ts';
import type { Endpoint, Provider } from '../../core/provider.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import type { ResponseHeaders } from '../../wire/exchange.ts';
import { readRetryAfterMs } from '../../wire/upstream-error.ts';
import type { LongBodies } from '../long-bodies/body-thread.ts';
import { addNotes, bufferOver } from '../long-bodies/transfer.ts';
import { maskCredentials, secretHeaders } from '../mask-credentials.ts';
import type { DocumentAnswer } from './upstream-answer.ts';

const maxErrorBytes = 64 * 1024;
const maxDocumentBytes = 64 * 1024 * 1024;
/** Documents up to this length are read on the event loop: some milliseconds. */
const longBytes = 1024 * 1024;

type ReadDocument = Omit<DocumentAnswer, 'events'>;

export class AnswerBody {
  /** Most answers come in one piece, and need no list. */
  #first: Buffer | undefined;
  #more: Buffer[] | undefined;
  #length = 0;

  /** All bytes so far; usually without a copy. */
  bytes(): Buffer {
    if (this.#first === undefined) return nothing;
    return this.#more === undefined ? this.#first : Buffer.concat([this.#first, ...this.#more]);
  }

  /** Adds the first bytes of an answer of unknown kind; returns all of them. */
  sniffed(chunk: Buffer): Buffer {
    this.#push(chunk);
    const bytes = this.bytes();
    this.clear();
    this.#first = bytes;
    return bytes;
  }

  /** Drops the sniffed bytes, since the answer's kind is known now. */
  clear(): void {
    this.#first = undefined;
    this.#more = undefined;
  }

  #push(chunk: Buffer): void {
    if (this.#first === undefined) this.#first = chunk;
    else if (this.#more === undefined) this.#more = [chunk];
    else this.#more.push(chunk);
  }

  /** Adds a piece of a document. @throws GatewayError `upstream_invalid` beyond the limit. */
  add(chunk: Buffer): void {
    this.#push(chunk);
    this.#length += chunk.length;
    if (this.#length > maxDocumentBytes) {
      throw new GatewayError('upstream_invalid', 'The upstream sent an answer beyond 64 MiB.', {
        retryable: false,
      });
    }
  }

  /** Adds a piece of an error; bytes beyond the limit are dropped. */
  addError(chunk: Buffer): void {
    if (this.#length >= maxErrorBytes) return;
    this.#push(chunk);
    this.#length += chunk.length;
  }

  /**
   * The whole document. A promise only for a long one, which is read in the worker thread (G11).
   * @throws GatewayError `upstream_invalid` for what is not an answer, or the error that it contains.
   */
  document(
    provider: Provider,
    traits: UpstreamTraits,
    thread: ReadingThread,
  ): ReadDocument | Promise<ReadDocument> {
    const bytes = this.bytes();
    if (bytes.length > longBytes) return readInThread(bytes, { provider, traits, ...thread });
    try {
      const { dialect } = provider;
      const { notes, choices } = thread;
      const read = readAnswerDocument(bytes, dialect, { traits, notes, choices });
      return { kind: 'document', bytes, ...read };
    } catch (error) {
      throw masked(error, provider);
    }
  }

  /** The received text of an error. */
  get errorText(): string {
    const text = this.bytes().toString('utf8').slice(0, maxErrorBytes);
    return text.replace(/^\ufeff/, '');
  }

  error(
    provider: Provider,
    head: { readonly status: number; readonly headers: ResponseHeaders; readonly wallMs: number },
  ): GatewayError {
    const body = this.errorText;
    const { dialect, generate } = provider;
    const read =
      provider.readError?.(head.status, head.headers, body) ?? dialect.readError(head.status, body);
    const error = askedAt(maskCredentials(read, secretHeaders(generate)), generate, head.status);
    const words = error.code === 'rate_limited' ? error.message : '';
    return withRetryAfter(error, readRetryAfterMs(head.headers, head.wallMs, words));
  }
}

/** What a server answers where it has no such path: most often the base address is wrong. */
const wrongPath: ReadonlySet<number> = new Set([404, 405]);

/** The error with the address that was asked, for the operator. Its query, which may hold a key, is left out. */
function askedAt(
  error: GatewayError,
  { origin, path, socketPath }: Endpoint,
  status: number,
): GatewayError {
  if (error.code !== 'upstream_invalid' || !wrongPath.has(status)) return error;
  if (socketPath !== undefined) return error;
  const [place = ''] = path.split('?', 1);
  const told = error.detail ?? error.message;
  return withDetail(error, `${told} (${origin}${place} was asked: is base_url right?)`);
}

/** Where a long document is read. */
export interface ReadingThread {
  readonly bodies: LongBodies;
  /** Whether the answer is still of use when its turn comes. */
  readonly wanted: () => boolean;
  /** Of what is lost; absent where the document itself goes to the client. */
  readonly notes?: Notes | undefined;
  /** How many answers were requested. */
  readonly choices?: number;
}

interface Reading extends ReadingThread {
  readonly provider: Provider;
  readonly traits: UpstreamTraits;
}

async function readInThread(
  bytes: Buffer,
  { provider, traits, bodies, wanted, notes, choices }: Reading,
): Promise<ReadDocument> {
  const body = { id: bodies.nextId(), pieces: Pieces.of(bytes), give: true, wanted };
  try {
    const relayed = notes === undefined;
    const input = { upstream: provider.dialect.id, traits, choices, relayed };
    const read = await bodies.run('read', input, body);
    if (notes !== undefined) addNotes(notes, read.notes);
    return { kind: 'document', bytes: bufferOver(read.bytes), generation: read.generation };
  } catch (error) {
    throw masked(error, provider);
  }
}

/** An error inside a document may quote the request (S14). */
function masked(error: unknown, { generate }: Provider): unknown {
  return error instanceof GatewayError ? maskCredentials(error, secretHeaders(generate)) : error;
}

/** What a dialect reads a document with: see `readResponse` of `UpstreamDialect`. */
interface DocumentReading {
  readonly traits: UpstreamTraits;
  readonly notes?: Notes | undefined;
  readonly choices?: number | undefined;
}

/**
 * Reads a document by its dialect.
 * @throws GatewayError `upstream_invalid`, also for an error inside the document
 */
export function readAnswerDocument(
  bytes: Buffer,
  dialect: UpstreamDialect,
  { traits, notes, choices }: DocumentReading,
): { readonly body: JsonObject; readonly generation: Generation } {
  const body = parseAnswer(bytes);
  return { body, generation: dialect.readResponse(body, traits, notes, choices) };
}

/** @throws GatewayError for JSON that would take long to parse, and for invalid UTF-8. */
export function parseAnswer(bytes: Buffer): JsonObject {
  if (!isBoundedAnswer(bytes)) {
    throw new GatewayError(
      'upstream_invalid',
      'The upstream sent an answer that is nested deeper, or has more values, than any answer.',
      { retryable: false },
    );
  }
  // A lenient decoder would replace broken bytes, which would be sent as the model's words (F46).
  const body = isUtf8(bytes) ? tryParseObject(bytes.toString('utf8')) : undefined;
  if (body === undefined) throw notJson();
  return body;
}

function notJson(): GatewayError {
  return new GatewayError(
    'upstream_invalid',
    'The upstream sent an answer that is not a JSON object in UTF-8.',
    { repeat: 'may' },
  );
}

const eventFields = ['data:', 'event:', 'id:', 'retry:', ':'];
const sniffedBytes = 64;
const byteOrderMark = Buffer.from('\ufeff');
const nothing = Buffer.alloc(0);
const blank: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Offset of the first byte of the answer: after a byte order mark and blank lines that servers send as
 * keep-alives.
 */
export function contentStart(bytes: Buffer): number {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  let at = marked ? byteOrderMark.length : 0;
  while (at < bytes.length && blank.has(bytes[at] ?? 0)) at += 1;
  return at;
}

/** The kind of an answer by its first bytes; `unknown` while there are too few. */
export function kindOf(bytes: Buffer): 'document' | 'stream' | 'neither' | 'unknown' {
  const text = bytes.toString('utf8', 0, sniffedBytes);
  if (text.startsWith('{')) return 'document';
  if (eventFields.some((field) => text.startsWith(field))) return 'stream';
  const tooLittle =
    bytes.length < sniffedBytes && eventFields.some((field) => field.startsWith(text));
  return tooLittle || isPartOfMark(bytes) ? 'unknown' : 'neither';
}

function isPartOfMark(bytes: Buffer): boolean {
  return (
    bytes.length < byteOrderMark.length && byteOrderMark.subarray(0, bytes.length).equals(bytes)
  );
}
