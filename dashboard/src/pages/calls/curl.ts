/** A call as a command for a shell, to be made again. */
import type { LoggedRequest } from '../../api/content.ts';

/** What is known of a call that was made. */
interface MadeCall {
  readonly endpoint: string;
  readonly model: string;
  readonly stream: boolean;
}

/** One argument for a POSIX shell, whatever it holds. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The output cap, which the messages endpoint requires. */
const cap = 1024;

const paths: { readonly [endpoint: string]: string } = {
  'anthropic-messages': '/v1/messages',
  'openai-responses': '/v1/responses',
};

/** Headers of a request that change its answer. */
const telling: ReadonlySet<string> = new Set(['anthropic-beta', 'openai-beta', 'x-gateway-tags']);

/**
 * @param url of the data plane. The secret is not known: a variable stands for it.
 * @param request where it was stored whole; without it a placeholder stands for the prompt.
 */
export function curlOf(call: MadeCall, url: string, request?: LoggedRequest | null): string {
  const { endpoint, stream } = call;
  const isMessages = endpoint === 'anthropic-messages';
  const path = paths[endpoint] ?? '/v1/chat/completions';
  const headers = isMessages
    ? [`-H "x-api-key: $MODEL_GATEWAY_KEY"`, `-H 'anthropic-version: 2023-06-01'`]
    : [`-H "authorization: Bearer $MODEL_GATEWAY_KEY"`];
  return [
    `curl ${stream ? '-N ' : ''}${quoted(url + path)}`,
    ...headers,
    ...loggedHeaders(request),
    `-H 'content-type: application/json'`,
    `-d ${quoted(JSON.stringify(wholeBody(request) ?? placeholder(call)))}`,
  ].join(' \\\n  ');
}

function placeholder({ endpoint, model, stream }: MadeCall): object {
  if (endpoint === 'openai-responses') {
    return { model, ...(stream ? { stream } : {}), input: 'your prompt' };
  }
  return {
    model,
    ...(endpoint === 'anthropic-messages' ? { max_tokens: cap } : {}),
    ...(stream ? { stream } : {}),
    messages: [{ role: 'user', content: 'your prompt' }],
  };
}

/** What was cut is not a request any more. */
function wholeBody(request: LoggedRequest | null | undefined): unknown {
  const body = request?.body;
  return body?.form === 'json' && !body.cut ? body.content : undefined;
}

function loggedHeaders(request: LoggedRequest | null | undefined): readonly string[] {
  return (request?.headers ?? []).flatMap(({ name, value }) =>
    telling.has(name) && value !== null ? [`-H ${quoted(`${name}: ${value}`)}`] : [],
  );
}
