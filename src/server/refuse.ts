/** Refusals made before a call exists: in the caller's dialect, with the body that was not read. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientDialect } from '../core/dialect.ts';
import type { GatewayError } from '../core/errors.ts';
import { retryHeaders } from '../gateway/answer-headers.ts';
import { leavesTooMuch } from './body.ts';

/** How long an unread body is read and thrown away, so that the client sees the answer first. */
const lingerMs = 2000;

export interface Refusal {
  readonly error: GatewayError;
  readonly dialect: ClientDialect;
  readonly requestId: string;
  readonly random: () => number;
  readonly headers?: readonly string[];
}

/** Answers with the error; closes the connection when much of the body is unread (E2, B24). Returns the status. */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
): number {
  const { error, dialect, requestId } = refusal;
  const written = dialect.writeError(error, requestId);
  const text = request.method === 'HEAD' ? '' : JSON.stringify(written.body);
  // What comes too slowly is not waited for even if it is short (G10).
  const late = error.code === 'request_timeout' && !request.complete;
  const unread = late || leavesTooMuch(request);
  response.writeHead(written.status, [
    'x-request-id',
    requestId,
    'request-id',
    requestId,
    ...retryHeaders(error, refusal.random),
    ...(refusal.headers ?? []),
    ...(unread ? ['connection', 'close'] : []),
    'content-type',
    'application/json',
    'content-length',
    String(Buffer.byteLength(text)),
  ]);
  if (!unread) {
    // As a string it leaves in one write with its head, which is most of what a refusal costs.
    response.end(text);
    return written.status;
  }
  // Closing with unread bytes in the socket would reset it and may destroy the answer on its way.
  response.write(text);
  const finish = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(finish, lingerMs);
  request.once('end', finish);
  request.once('close', finish);
  request.resume();
  return written.status;
}
