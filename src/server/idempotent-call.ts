/** A call with an `Idempotency-Key`: answered once, and with the same words when it is asked again. */
import type { Gateway } from '../gateway/call.ts';
import type { ClientSink } from '../gateway/client-sink.ts';
import type { Receipt } from '../gateway/receipt.ts';
import type { IdempotentAnswers, IdempotentRequest, KeptAnswer } from './idempotent-answers.ts';
import { RecordingSink } from './recording-sink.ts';

export interface IdempotentCall {
  readonly answers: IdempotentAnswers;
  readonly request: IdempotentRequest;
  readonly gateway: Gateway;
  readonly sink: ClientSink;
  /** Of this sending. */
  readonly requestId: string;
}

/**
 * @param run serves the call; may throw before it began, which keeps nothing.
 * @throws GatewayError as `IdempotentAnswers.claim`, and what `run` throws.
 */
export async function answerOnce(
  call: IdempotentCall,
  run: (gateway: Gateway, sink: ClientSink) => Promise<void>,
): Promise<void> {
  const { gateway, sink, requestId, request } = call;
  const claim = call.answers.claim(request);
  if (claim.kept !== undefined) {
    replay(sink, claim.kept, requestId);
    gateway.log.info('replayed', { id: requestId, key: request.keyId, status: claim.kept.status });
    return;
  }
  const recording = new RecordingSink(sink, claim);
  let receipt: Receipt | undefined;
  const watched: Gateway = {
    ...gateway,
    settle: (settled, told) => {
      receipt = told;
      gateway.settle(settled, told);
    },
  };
  try {
    await run(watched, recording);
  } finally {
    claim.finish(isFinal(receipt) ? recording.answer : undefined);
  }
}

function replay(
  sink: ClientSink,
  { status, headers, body }: KeptAnswer & { readonly body: Buffer },
  requestId: string,
): void {
  const ids = ['x-request-id', requestId, 'request-id', requestId];
  sink.start(status, [...ids, ...headers, 'idempotent-replayed', 'true']);
  sink.end(body);
}

/** A wait may be over when the request comes again. */
const passing: ReadonlySet<number> = new Set([408, 409, 429]);

/** Whether the same request would have the same end: what failed otherwise is worth another try. */
function isFinal(receipt: Receipt | undefined): boolean {
  if (receipt === undefined) return false;
  const { outcome, status = 0, attempts } = receipt;
  if (outcome === 'ok') return true;
  const refused = status >= 400 && status < 500 && !passing.has(status);
  return outcome === 'failed' && attempts.length > 0 && refused;
}
