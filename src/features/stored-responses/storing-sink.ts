/** The end of an answer waits until its response is stored: clients refer to the response at once. */
import type { EndedResponse, StoredResponseCodec } from '../../core/stored-response.ts';
import type { Later } from '../../core/runtime.ts';
import { maxBytesAtOnce } from '../../json/scan.ts';
import type { ClientObserver, ClientSink } from '../../gateway/answer/client-answer.ts';
import type { Receipt } from '../../core/call.ts';

/** Reads the end of an answer. */
type EndCodec = Pick<StoredResponseCodec, 'answered' | 'markUnstored'>;

/** The same for one that is too long to be read on the event loop. Never rejects. */
export interface LongEndCodec {
  answered(last: Buffer): Promise<EndedResponse | undefined>;
  markUnstored(last: Buffer): Promise<Buffer>;
}

interface StoringSinkDeps {
  readonly sink: ClientSink;
  readonly dialect: EndCodec;
  readonly long: LongEndCodec;
  readonly later: Later;
  /** Stores the response. Never rejects. */
  readonly keep: (answer: EndedResponse) => Promise<StoreOutcome>;
  /** Called when the answer continued without waiting for the store. */
  readonly late: () => void;
}

/** `large`: the response is too long to be stored. `dropped`: its key's content was removed meanwhile. */
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
    if (bytes === undefined || this.#status !== 200) return this.#pass(bytes);
    const { dialect, long } = this.#deps;
    const last = copyOf(bytes);
    if (last.length > maxBytesAtOnce) {
      this.#finished = this.#keep(last, long);
      return;
    }
    const answer = dialect.answered(last);
    if (answer === undefined) return this.#pass(last);
    this.#finished = this.#keepAnswer(last, answer, dialect);
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

  async #keep(last: Buffer, long: LongEndCodec): Promise<void> {
    const answer = await long.answered(last);
    if (answer === undefined) return this.#pass(last);
    await this.#keepAnswer(last, answer, long);
  }

  async #keepAnswer(
    last: Buffer,
    answer: EndedResponse,
    codec: EndCodec | LongEndCodec,
  ): Promise<void> {
    const kept = await this.#atMost(this.#deps.keep(answer));
    if (kept === 'kept') return this.#pass(last);
    const note = kept === 'large' ? 'store: dropped, too large' : undefined;
    this.#pass(await codec.markUnstored(last), note);
  }

  #pass(bytes?: Buffer | string, note?: string): void {
    const { sink } = this.#deps;
    if (this.#headers !== undefined) {
      const length = bytes === undefined ? 0 : Buffer.byteLength(bytes);
      sink.start(200, documentHeaders(this.#headers, length, note));
    }
    sink.end(bytes);
  }

  #atMost(keeping: Promise<StoreOutcome>): Promise<StoreOutcome> {
    const { later, late } = this.#deps;
    return new Promise((resolve) => {
      const stop = later(maxHoldMs, () => {
        late();
        resolve('failed');
      });
      const settle = (kept: StoreOutcome): void => {
        stop();
        resolve(kept);
      };
      void keeping.then(settle);
    });
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
