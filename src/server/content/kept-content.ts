/** What a call said, made fit to be kept. */
import { answerHeaders, requestHeaders } from './kept-headers.ts';
import { keptBody } from './kept-body.ts';
import { Redactor } from './redactor.ts';
import type { KeptContent, SeenCall } from './seen-call.ts';

/** What an upstream says when it fails tells the rest in fewer words. */
const mostOfError = 16_384;

/**
 * @param most characters of each body
 * @param redactor takes out what nobody is to find, and tells whether there was something
 */
export function keptContent(
  seen: SeenCall,
  most: number,
  redactor = new Redactor(seen.secrets),
): KeptContent {
  const { request, answer, attempts } = seen;
  return {
    request: {
      method: request.method,
      path: redactor.text(request.path),
      headers: requestHeaders(request.headers, redactor),
      body: request.body === undefined ? null : keptBody(request.body, { redactor, most }),
    },
    answer:
      answer === undefined
        ? null
        : {
            status: answer.status,
            headers: answerHeaders(answer.headers, redactor),
            body: keptBody(answer.body, { redactor, most }, isStream(answer.headers)),
            whole: answer.whole,
          },
    attempts: attempts.map(({ target, status, error }) => {
      const bytes = new TextEncoder().encode(error);
      const body = { bytes, length: bytes.length };
      const means = { redactor, most: Math.min(most, mostOfError) };
      return { target, status: status ?? null, body: keptBody(body, means) };
    }),
  };
}

function isStream(headers: readonly string[]): boolean {
  return headers.some(
    (value, i) =>
      i % 2 === 1 &&
      headers[i - 1]?.toLowerCase() === 'content-type' &&
      value.startsWith('text/event-stream'),
  );
}
