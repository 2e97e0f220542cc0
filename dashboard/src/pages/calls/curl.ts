/** A call as a command for a shell, to be made again. */

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

/** Cap that the messages endpoint wants to be told. */
const cap = 1024;

/** @param url of the data plane. Prompt and secret are not known: a placeholder and a variable stand for them. */
export function curlOf(call: MadeCall, url: string): string {
  const { endpoint, model, stream } = call;
  const isMessages = endpoint === 'anthropic-messages';
  const body = {
    model,
    ...(isMessages ? { max_tokens: cap } : {}),
    ...(stream ? { stream } : {}),
    messages: [{ role: 'user', content: 'your prompt' }],
  };
  const path = isMessages ? '/v1/messages' : '/v1/chat/completions';
  const headers = isMessages
    ? [`-H "x-api-key: $MODEL_GATEWAY_KEY"`, `-H 'anthropic-version: 2023-06-01'`]
    : [`-H "authorization: Bearer $MODEL_GATEWAY_KEY"`];
  return [
    `curl ${stream ? '-N ' : ''}${quoted(url + path)}`,
    ...headers,
    `-H 'content-type: application/json'`,
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(' \\\n  ');
}
