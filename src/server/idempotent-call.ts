/** A call with an `Idempotency-Key`: answered once, and with the same words when it is asked again. */
import type { Gateway } from '../gateway/call.ts';
import type { ClientSink } from '../gateway/client-sink.ts';
import type { Receipt } from '../gateway/receipt.ts';
import type { Finished, IdempotentAnswers } from './idempotent-answers.ts';
import { RecordingSink } from './recording-sink.ts';
import type { IdempotentRequest, KeptAnswer } from './sealed-answer.ts';

export interface IdempotentCall {
  readonly answers: IdempotentAnswers;
  readonly request: IdempotentRequest;
  readonly gateway: Gateway;
  readonly sink: ClientSink;
  /** Of this sending. */
  readonly requestId: string;
}

/** A store that is slow or away holds the end of an answer up no longer than this. */
const longestHoldMs = 1000;

/**
 * The last bytes of an answer go out when it is kept, so that an answer which a client has seen to its end
 * is the one that it gets again, whatever happens to this process in between.
 * @param run serves the call; may throw before it began, which keeps nothing.
 * @throws GatewayError as `IdempotentAnswers.claim`, and what `run` throws.
 */
export async function answerOnce(
  call: IdempotentCall,
  run: (gateway: Gateway, sink: ClientSink) => Promise<void>,
): Promise<void> {
  const { answers, gateway, sink, requestId, request } = call;
  const claim = await answers.claim(request, requestId);
  if (claim.kept !== undefined) {
    replay(sink, claim.kept, requestId);
    gateway.log.info('replayed', { id: requestId, key: request.keyId, status: claim.kept.status });
    return;
  }
  const recording = new RecordingSink(sink, claim, answers.limits.answerBytes);
  let receipt: Receipt | undefined;
  const watched: Gateway = {
    ...gateway,
    settle: (settled, told) => {
      receipt = told;
      gateway.settle(settled, told);
      // Nothing is kept, and last words have no time to wait: a stop may close the connection next (G14).
      if (!isFinal(told)) recording.release();
    },
  };
  try {
    await run(watched, recording);
  } finally {
    const finished: Finished = isFinal(receipt) ? recording.answer : undefined;
    await atMost(gateway, claim.finish(finished));
    recording.release();
  }
}

function replay(sink: ClientSink, { status, headers, body }: KeptAnswer, requestId: string): void {
  const ids = ['x-request-id', requestId, 'request-id', requestId];
  sink.start(status, [...ids, ...headers, 'idempotent-replayed', 'true']);
  sink.end(body);
}

function atMost(gateway: Gateway, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const stop = gateway.later(longestHoldMs, resolve);
    void work.finally(() => {
      stop();
      resolve();
    });
  });
}

/** A wait may be over when the request comes again. */
const passing: ReadonlySet<number> = new Set([408, 409, 429]);

/** Whether the same request would have the same end: what failed otherwise is worth another try. */
function isFinal(receipt: Receipt | undefined): boolean {
  if (receipt === undefined) return false;
  const { outcome, status = 0, attempts, readToEnd } = receipt;
  // It was paid for in full: whoever comes back for it gets it.
  if (outcome === 'ok' || readToEnd === true) return true;
  const refused = status >= 400 && status < 500 && !passing.has(status);
  return outcome === 'failed' && attempts.length > 0 && refused;
}
