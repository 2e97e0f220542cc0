/** A call with an `Idempotency-Key`: answered once, and with the same words when it is asked again. */
import type { Gateway } from '../../gateway/gateway.ts';
import type { ClientSink } from '../../gateway/client-answer.ts';
import type { Receipt } from '../../core/receipt.ts';
import type {
  Finished,
  IdempotentAnswers,
  IdempotentRequest,
  KeptAnswer,
} from './idempotent-answers.ts';
import { AnswerTee } from '../answer-tee.ts';

export interface IdempotentCall {
  readonly answers: IdempotentAnswers;
  readonly request: IdempotentRequest;
  readonly gateway: Pick<Gateway, 'later' | 'log'>;
  readonly sink: ClientSink;
  /** Of this sending. */
  readonly requestId: string;
}

/** A store that is slow or away holds the end of an answer up no longer than this. */
const maxHoldMs = 1000;

/**
 * The last bytes of an answer go out when it is kept, so that an answer which a client has seen to its end
 * is the one that it gets again, whatever happens to this process in between.
 * @param run serves the call; may throw before it began, which keeps nothing.
 * @throws GatewayError as `IdempotentAnswers.claim`, and what `run` throws.
 */
export async function answerOnce(
  call: IdempotentCall,
  run: (sink: ClientSink) => Promise<void>,
): Promise<void> {
  const { answers, gateway, sink, requestId, request } = call;
  const claim = await answers.claim(request, requestId);
  if (claim.kept !== undefined) {
    replay(sink, claim.kept, requestId);
    gateway.log.info('replayed', { id: requestId, key: request.keyId, status: claim.kept.status });
    return;
  }
  const tee = new AnswerTee(sink, {
    maxBytes: answers.limits.answerBytes,
    hold: (bytes) => claim.hold(bytes),
    holdsEnd: true,
    // Nothing is kept, and an error must not wait: a stop may close the connection next (G14).
    settled: (receipt) => {
      if (!isFinal(receipt)) tee.release();
    },
  });
  try {
    await run(tee);
  } finally {
    await atMost(gateway, claim.finish(isFinal(tee.receipt) ? answerOf(tee) : undefined));
    tee.release();
  }
}

/**
 * Headers of one request, which a replay has of its own; rate limits of the first sending would make clients wait.
 */
const ownHeader = /^(?:x-request-id|request-id|(?:x|anthropic)-ratelimit-.*)$/;

/** The answer as it is kept; undefined unless it came to its end. */
export function answerOf(tee: AnswerTee): Finished {
  if (!tee.ended) return undefined;
  if (!tee.complete) return 'too long';
  const { headers, status = 0, copy: body } = tee;
  return {
    status,
    headers: headers.filter((_, at) => !ownHeader.test(headers[at - (at % 2)] ?? '')),
    body,
  };
}

function replay(sink: ClientSink, { status, headers, body }: KeptAnswer, requestId: string): void {
  const ids = ['x-request-id', requestId, 'request-id', requestId];
  sink.start(status, [...ids, ...headers, 'idempotent-replayed', 'true']);
  sink.end(body);
}

function atMost(gateway: Pick<Gateway, 'later'>, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const stop = gateway.later(maxHoldMs, resolve);
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
  const { outcome, status = 0, error, attempts, readToEnd } = receipt;
  // It was paid for in full: a repeated request gets it.
  if (outcome === 'ok' || readToEnd === true) return true;
  // A 400 of our own credential is mended by the operator, and then the same request is served.
  const refused =
    status >= 400 && status < 500 && !passing.has(status) && error !== 'upstream_auth';
  return outcome === 'failed' && attempts.length > 0 && refused;
}
