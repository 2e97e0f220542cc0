/** The end of an answer waits until its response is kept: clients refer to the response at once. */
import type { EndedResponse, StoredResponseCodec } from '../../core/stored-response.ts';
import type { Later } from '../../core/runtime.ts';
import type { ClientObserver, ClientSink } from '../../gateway/answer/client-answer.ts';
import type { Receipt } from '../../core/call.ts';

interface StoringSinkDeps {
  readonly sink: ClientSink;
  readonly dialect: StoredResponseCodec;
  readonly later: Later;
  /** Keeps the response; false = it was not kept. Never rejects. */
  readonly keep: (answer: EndedResponse) => Promise<StoreOutcome>;
  /** Told when the answer went on without waiting for the store any longer. */
  readonly late: () => void;
}

/** `large`: the response is too long to be kept. `dropped`: its key's content was removed meanwhile. */
export type StoreOutcome = 'kept' | 'large' | 'dropped' | 'failed';

/** A store that is slow or away holds the end of an answer up no longer than this. */
const maxHoldMs = 2000;

export class StoringSink implements ClientSink {
  readonly #deps: StoringSinkDeps;
  #status = 0;
  /** Of a document, which may still change: sent with its body. */
  #headers: readonly string[] | undefined;
  #finished: Promise<void> | undefined;

  constructor(deps: StoringSinkDeps) {
    this.#deps = deps;
  }

  /** Resolves when the end of the answer was passed on, or is none to wait for. */
  async finished(): Promise<void> {
    await this.#finished;
  }

  start(status: number, headers: readonly string[]): void {
    this.#status = status;
    if (status === 200 && headers.includes('content-length')) this.#headers = headers;
    else this.#deps.sink.start(status, headers);
  }

  write(bytes: Buffer | string): boolean {
    return this.#deps.sink.write(bytes);
  }

  end(bytes?: Buffer | string): void {
    const last = bytes === undefined || this.#status !== 200 ? undefined : copyOf(bytes);
    const answer = last && this.#deps.dialect.answered(last);
    if (last === undefined || answer === undefined) return this.#pass(bytes);
    this.#finished = this.#keep(last, answer);
  }

  cut(): void {
    this.#deps.sink.cut();
  }

  observe(observer: ClientObserver, stalledMs?: number): void {
    this.#deps.sink.observe(observer, stalledMs);
  }

  settled(receipt: Receipt): void {
    this.#deps.sink.settled?.(receipt);
  }

  async #keep(last: Buffer, answer: EndedResponse): Promise<void> {
    const { dialect, keep } = this.#deps;
    const kept = await this.#atMost(keep(answer));
    if (kept === 'kept') return this.#pass(last);
    this.#pass(dialect.unkept(last), kept === 'large' ? 'store: dropped, too large' : undefined);
  }

  #pass(bytes?: Buffer | string, note?: string): void {
    const { sink } = this.#deps;
    if (this.#headers !== undefined) {
      const length = bytes === undefined ? 0 : Buffer.byteLength(bytes);
      sink.start(200, documentHeaders(this.#headers, length, note));
    }
    sink.end(bytes);
  }

  async #atMost(keeping: Promise<StoreOutcome>): Promise<StoreOutcome> {
    const { later, late } = this.#deps;
    const tooLate = Promise.withResolvers<StoreOutcome>();
    const stop = later(maxHoldMs, () => {
      late();
      tooLate.resolve('failed');
    });
    const kept = await Promise.race([keeping, tooLate.promise]);
    stop();
    return kept;
  }
}

/** The bytes of a stream are in a buffer that is used again. */
function copyOf(bytes: Buffer | string): Buffer {
  return typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes);
}

const notesHeader = 'x-gateway-notes';

function documentHeaders(
  headers: readonly string[],
  length: number,
  note: string | undefined,
): readonly string[] {
  const changed = headers.map((value, at) => {
    const name = at % 2 === 1 ? headers[at - 1] : undefined;
    if (name === 'content-length') return String(length);
    return name === notesHeader && note !== undefined ? `${value}; ${note}` : value;
  });
  if (note === undefined || headers.includes(notesHeader)) return changed;
  return [notesHeader, note, ...changed];
}
