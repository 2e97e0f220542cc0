/** The bytes of an answer that is no stream: a document, or an error. Gathered under a limit. */
import { isUtf8 } from 'node:buffer';
import type { JsonObject } from '../core/conversation.ts';
import { GatewayError, withRetryAfter } from '../core/errors.ts';
import { isBoundedAnswer, parseAnswerInSteps, type WholeDocument } from '../core/json-answer.ts';
import { tryParseObject } from '../core/json.ts';
import type { Provider } from '../core/provider.ts';
import { atOnce, inTurns, nextTurn, type Steps } from '../core/steps.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import type { ResponseHeaders } from '../wire/exchange.ts';
import { readRetryAfterMs } from '../wire/retry-after.ts';
import { maskCredentials } from './mask-credentials.ts';
import type { DocumentAnswer } from './upstream-answer.ts';

const maxErrorBytes = 64 * 1024;
const maxDocumentBytes = 64 * 1024 * 1024;
/** Up to here a document is read at once: some milliseconds. */
const longBytes = 1024 * 1024;

type ReadDocument = Omit<DocumentAnswer, 'events'>;

export class AnswerBody {
  #pieces: Buffer[] = [];
  #length = 0;

  /** All bytes so far; usually without a copy. */
  bytes(): Buffer {
    const [first] = this.#pieces;
    return this.#pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces);
  }

  /** Takes the first bytes of an answer whose kind is not known yet; returns all of them. */
  sniffed(chunk: Buffer): Buffer {
    this.#pieces.push(chunk);
    const bytes = this.bytes();
    this.#pieces = [bytes];
    return bytes;
  }

  /** Forgets what was sniffed: it goes on as what it turned out to be. */
  clear(): void {
    this.#pieces = [];
  }

  /** A piece of a document. @throws GatewayError `upstream_invalid` beyond the limit. */
  add(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    if (this.#length > maxDocumentBytes) {
      throw new GatewayError('upstream_invalid', 'The upstream sent an answer beyond 64 MiB.', {
        retryable: false,
      });
    }
  }

  /** A piece of an error; what is beyond the limit is dropped. */
  addError(chunk: Buffer): void {
    if (this.#length >= maxErrorBytes) return;
    this.#pieces.push(chunk);
    this.#length += chunk.length;
  }

  /**
   * The whole document. A promise only where it is long: all other calls have their turn between the steps of
   * reading it (G11).
   * @throws GatewayError `upstream_invalid` for what is no answer, or the error that it is.
   */
  document(provider: Provider, traits: UpstreamTraits): ReadDocument | Promise<ReadDocument> {
    const bytes = this.bytes();
    const read = (document: WholeDocument): Steps<ReadDocument> =>
      reading(document, provider, traits);
    if (bytes.length > longBytes) return inSteps(bytes, read);
    return atOnce(read({ bytes, body: parseAtOnce(bytes) }));
  }

  /** Of an error, as far as it came. */
  get errorText(): string {
    return this.bytes().toString('utf8').slice(0, maxErrorBytes);
  }

  error(
    provider: Provider,
    head: { readonly status: number; readonly headers: ResponseHeaders; readonly wallMs: number },
  ): GatewayError {
    const body = this.errorText;
    const { dialect, generate } = provider;
    const error = maskCredentials(dialect.readError(head.status, body), generate.headers);
    return withRetryAfter(error, readRetryAfterMs(head.headers, head.wallMs));
  }
}

async function inSteps(
  bytes: Buffer,
  read: (document: WholeDocument) => Steps<ReadDocument>,
): Promise<ReadDocument> {
  await nextTurn();
  const parsed = isUtf8(bytes) ? await parseAnswerInSteps(bytes) : undefined;
  await nextTurn();
  const whole = parsed ?? { bytes, body: parseAtOnce(bytes) };
  await nextTurn();
  const document = await inTurns(read(whole));
  // Whoever writes it has a turn of his own.
  await nextTurn();
  return document;
}

/** @throws GatewayError for what would take long to parse, or is no text. */
function parseAtOnce(bytes: Buffer): JsonObject {
  if (!isBoundedAnswer(bytes)) {
    throw new GatewayError(
      'upstream_invalid',
      'The upstream sent an answer that is nested deeper, or has more values, than any answer.',
      { retryable: false },
    );
  }
  // Read leniently, broken bytes would become other characters and go out as the model's words (F46).
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

/** @throws GatewayError also for an error that stands in the document (F24); it may quote the request (S14). */
function* reading(
  document: WholeDocument,
  { dialect, generate }: Provider,
  traits: UpstreamTraits,
): Steps<ReadDocument> {
  try {
    const generation = yield* dialect.responseReading(document.body, traits);
    return { kind: 'document', ...document, generation };
  } catch (error) {
    throw error instanceof GatewayError ? maskCredentials(error, generate.headers) : error;
  }
}
