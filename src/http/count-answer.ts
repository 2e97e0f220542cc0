/** What `POST /v1/messages/count_tokens` answers, once it is known who counts. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientDialect } from '../core/dialect.ts';
import type { Grant } from '../core/policy.ts';
import type { JsonSource } from '../core/client-body.ts';
import type { Target } from '../core/provider.ts';
import { countTokens } from '../gateway/count-tokens.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { headerValue } from './request-headers.ts';
import { idHeaders, sendJson } from './send.ts';

interface AskedCount {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Of the body. */
  readonly dialect: ClientDialect;
  readonly source: JsonSource;
  readonly target: Target;
  /** The target takes no calls now. */
  readonly unasked: boolean;
  /** Absent where nothing limits who asks. */
  readonly grant: Pick<Grant, 'standings'> | undefined;
}

/** Counts and sends the number, with who counted it. Rejects as `countTokens` does. */
export async function answerCount(gateway: Gateway, asked: AskedCount): Promise<void> {
  const { request, response, requestId, dialect, source, target, unasked, grant } = asked;
  const left = new AbortController();
  response.once('close', () => left.abort());
  const count = await countTokens(gateway, {
    target,
    unasked,
    source,
    dialect,
    counting: true,
    header: (name) => headerValue(request, name),
    signal: left.signal,
  });
  sendJson(response, {
    status: 200,
    body: dialect.count?.write(count.tokens) ?? {},
    headers: [
      ...idHeaders(requestId),
      'x-gateway-usage',
      count.source,
      ...(grant === undefined ? [] : dialect.limitHeaders(grant.standings, gateway.clock.wall())),
    ],
  });
}
