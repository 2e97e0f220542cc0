/**
 * Upstreams quote requests in their errors, credentials included (S14). The dialects remove what looks
 * like a key; here goes, by its value, what this gateway sent, whatever it looks like.
 */
import type { Endpoint } from '../core/provider.ts';
import { withWords, type GatewayError } from '../core/errors.ts';
import type { GenerationEvent } from '../core/generation.ts';

/** Header values that are public and may appear in errors. */
const open: ReadonlySet<string> = new Set(['content-type', 'accept-encoding']);
/** Shorter values are not secrets, and are found in ordinary words. */
const minLength = 8;
/** A truncated value of this length at the end of a text is recognised. */
const minCut = minLength / 2;
const mask = '[redacted]';

/** The headers whose values no error may quote: what requests to this endpoint are let in by, whatever that is now. */
export function secretHeaders({ headers, credential }: Endpoint): readonly string[] {
  return credential === undefined ? headers : [...headers, ...credential.secrets];
}

/** The error without any value of the flat `headers` that went upstream. */
export function maskCredentials(error: GatewayError, headers: readonly string[]): GatewayError {
  const secrets = secretsIn(headers);
  return withWords(error, (text) => masked(text, secrets));
}

/** The text without any value of these flat headers. */
export function maskValues(text: string, headers: readonly string[]): string {
  return masked(text, secretsIn(headers));
}

/** The same for many texts. */
export function valueMask(headers: readonly string[]): (text: string) => string {
  const secrets = secretsIn(headers);
  return (text) => masked(text, secrets);
}

function masked(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) shown = withoutCutOff(shown.replaceAll(secret, mask), secret);
  return shown;
}

/** The same for the error events among others. */
export function maskEvents(
  events: readonly GenerationEvent[],
  endpoint: Endpoint,
): readonly GenerationEvent[] {
  if (!events.some((event) => event.type === 'error')) return events;
  const headers = secretHeaders(endpoint);
  return events.map((event) =>
    event.type === 'error' ? { ...event, error: maskCredentials(event.error, headers) } : event,
  );
}

/** Longest first: `Bearer KEY` before `KEY`. */
function secretsIn(headers: readonly string[]): readonly string[] {
  const secrets = new Set<string>();
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const value = headers[i + 1] ?? '';
    if (open.has(headers[i]?.toLowerCase() ?? '')) continue;
    secrets.add(value);
    secrets.add(value.slice(value.lastIndexOf(' ') + 1));
  }
  const long = [...secrets].filter((secret) => secret.length >= minLength);
  return [...new Set(long.flatMap(writtenForms))].toSorted((a, b) => b.length - a.length);
}

/** As it is, and as it is in a JSON text or a URL that an error quotes: some servers escape slashes, too. */
function writtenForms(secret: string): readonly string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  // What came as UTF-16 halves without their pair has no form in a URL.
  const inUrl = encodeURIComponent(secret.toWellFormed());
  return [secret, inJson, inJson.replaceAll('/', String.raw`\/`), inUrl];
}

/** Long messages are cut, perhaps within a secret. */
function withoutCutOff(text: string, secret: string): string {
  // Most texts do not end with a part of it: one comparison shows that, and a body may be a million short texts.
  if (text.length < minCut || !secret.includes(text.slice(-minCut))) return text;
  for (let length = secret.length - 1; length >= minCut; length--) {
    if (text.endsWith(secret.slice(0, length))) return `${text.slice(0, -length)}${mask}`;
  }
  return text;
}
