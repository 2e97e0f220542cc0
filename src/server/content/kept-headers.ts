/** Headers as they are kept: of a request only those that are known to hold no secret (S13). */
import type { Redactor } from './redactor.ts';
import type { KeptHeader } from './seen-call.ts';

const known: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'anthropic-beta',
  'anthropic-version',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'openai-beta',
  'traceparent',
  'transfer-encoding',
  'user-agent',
  'x-app',
  'x-client-request-id',
  'x-gateway-tags',
]);
/** What the official clients tell of themselves. */
const knownPrefix = 'x-stainless-';

const mostLength = 1024;

/** @param headers flat. Of others the name is kept, so that one sees that they were there. */
export function requestHeaders(
  headers: readonly string[],
  redactor: Redactor,
): readonly KeptHeader[] {
  return pairs(headers).map(([name, value]) =>
    known.has(name) || name.startsWith(knownPrefix)
      ? { name: redactor.text(name), value: shown(value, redactor) }
      : { name: redactor.text(name), value: null },
  );
}

/** The gateway's own: it writes no secret into any. */
export function answerHeaders(
  headers: readonly string[],
  redactor: Redactor,
): readonly KeptHeader[] {
  return pairs(headers).map(([name, value]) => ({ name, value: shown(value, redactor) }));
}

function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  const names = flat.filter((_, i) => i % 2 === 0);
  return names.map((name, i) => [name.toLowerCase(), flat[2 * i + 1] ?? ''] as const);
}

function shown(value: string, redactor: Redactor): string {
  return redactor.text(value).slice(0, mostLength);
}
