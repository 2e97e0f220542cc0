/** One call of the playground: sent through the admin plane, shown as it comes. */
import { documentAnswer, nothingYet, withEvent, type Answer } from './formats/answer.ts';
import { FrameReader } from './formats/frames.ts';
import { isRecord, type JsonRecord } from './formats/request.ts';
import { endpointPaths, type Endpoint } from './formats/turns.ts';

export interface Asked {
  readonly endpoint: Endpoint;
  readonly body: JsonRecord;
  /** Id of the key to call as; '' = none. */
  readonly key: string;
}

/** How far a call is. */
export interface Played {
  readonly asked: Asked;
  readonly state: 'running' | 'done' | 'stopped' | 'failed';
  readonly answer: Answer;
  /** HTTP status; undefined before there is one. */
  readonly status: number | undefined;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Frames of a stream, or the one document, as they came. */
  readonly raw: readonly string[];
  /** Why it failed, in words. */
  readonly failure: string | undefined;
  /** Of the call in the ledger. */
  readonly requestId: string | undefined;
  readonly firstMs: number | undefined;
  readonly totalMs: number | undefined;
}

/** As the admin plane wants it of a page that changes something. */
const changeHeader = 'x-model-gateway-csrf';

export function playAddress({ endpoint, key }: Pick<Asked, 'endpoint' | 'key'>): string {
  const path = `/api/playground${endpointPaths[endpoint].slice('/v1'.length)}`;
  return key === '' ? path : `${path}?key=${encodeURIComponent(key)}`;
}

export function startOf(asked: Asked): Played {
  return {
    asked,
    state: 'running',
    answer: nothingYet,
    status: undefined,
    headers: [],
    raw: [],
    failure: undefined,
    requestId: undefined,
    firstMs: undefined,
    totalMs: undefined,
  };
}

/** Makes the call. `show` is called with every step, the last one included; never rejects. */
export async function play(
  asked: Asked,
  signal: AbortSignal,
  show: (played: Played) => void,
): Promise<void> {
  const run = new Run(asked, show);
  try {
    await run.fetch(signal);
  } catch (error) {
    run.broken(error, signal);
  }
}

class Run {
  readonly #show: (played: Played) => void;
  readonly #begin = performance.now();
  #played: Played;

  constructor(asked: Asked, show: (played: Played) => void) {
    this.#show = show;
    this.#played = startOf(asked);
  }

  async fetch(signal: AbortSignal): Promise<void> {
    const { asked } = this.#played;
    const response = await fetch(playAddress(asked), {
      method: 'POST',
      headers: { 'content-type': 'application/json', [changeHeader]: '1' },
      body: JSON.stringify(asked.body),
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      signal,
    });
    this.#step({
      status: response.status,
      headers: [...response.headers],
      requestId: response.headers.get('x-request-id') ?? undefined,
    });
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) await this.#stream(response);
    else this.#document(response.ok, await response.text());
  }

  broken(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) {
      this.#end({ state: 'stopped' });
      return;
    }
    const { status } = this.#played;
    const failure =
      status === undefined
        ? 'The gateway does not answer. Check that it runs and is reachable from this machine, then send again.'
        : `The answer was cut off: ${error instanceof Error ? error.message : 'the connection is gone'}. See the log of the gateway.`;
    this.#end({ state: 'failed', failure });
  }

  async #stream(response: Response): Promise<void> {
    const frames = new FrameReader();
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const piece = await reader?.read();
      if (piece?.value === undefined) break;
      this.#frames(frames.push(piece.value));
    }
    const { answer } = this.#played;
    if (answer.error !== undefined) this.#end({ state: 'failed', failure: answer.error });
    else if (answer.finish === undefined) {
      this.#end({ state: 'failed', failure: 'The stream ended before the answer did.' });
    } else this.#end({ state: 'done' });
  }

  #frames(frames: ReturnType<FrameReader['push']>): void {
    if (frames.length === 0) return;
    const { asked, answer, raw } = this.#played;
    const grown = frames.reduce(
      (soFar, { data }) => withEvent(soFar, asked.endpoint, data),
      answer,
    );
    const began = grown.text !== '' || grown.reasoning !== '' || grown.calls.length > 0;
    const { firstMs = began ? this.#elapsed() : undefined } = this.#played;
    this.#step({ answer: grown, raw: [...raw, ...frames.map(({ text }) => text)], firstMs });
  }

  #document(ok: boolean, text: string): void {
    const document = parsed(text);
    const raw = [document === undefined ? text : JSON.stringify(document, null, 2)];
    if (!ok) {
      this.#end({ state: 'failed', raw, failure: errorText(document) });
      return;
    }
    const answer = documentAnswer(this.#played.asked.endpoint, document);
    this.#end({ state: 'done', raw, answer });
  }

  #elapsed(): number {
    return performance.now() - this.#begin;
  }

  #step(change: Partial<Played>): void {
    this.#played = { ...this.#played, ...change };
    this.#show(this.#played);
  }

  #end(change: Partial<Played>): void {
    this.#step({ ...change, totalMs: this.#elapsed() });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Both endpoints and the admin plane have their words at the same place. */
function errorText(document: unknown): string {
  const error = isRecord(document) && isRecord(document['error']) ? document['error'] : {};
  const { message } = error;
  return typeof message === 'string' ? message : 'The answer has no details beyond its status.';
}
