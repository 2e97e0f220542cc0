/** Requests a token and reads the answer: the form that all token servers share, and their complaints in words. */
import type { GatewayError } from '../../core/errors.ts';
import type { Clock } from '../../core/runtime.ts';
import { Secret, withoutKeys } from '../../core/secret.ts';
import { isObject, type JsonObject } from '../../json/value.ts';
import { credentialError, type Token } from './token-cache.ts';
import { askForToken, type TokenAnswer, type TokenRequest } from './token-request.ts';

const maxDescription = 500;
const waitMs = 400;
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface Asking {
  /** Which identity, for people. */
  readonly description: string;
  /** The address of the token server. */
  readonly url: URL;
  readonly clock: Pick<Clock, 'wall'>;
  /** No text may quote them. */
  readonly secrets: readonly (string | undefined)[];
  /** What the operator can do about a failure. */
  readonly advice: string;
  /** The maximum number of tries for a busy server; absent = one. */
  readonly tries?: number;
}

/**
 * @param send asks the server once
 * @throws GatewayError `upstream_auth` that names identity, address, the server's words and what to do
 */
export async function tokenFrom(
  send: () => Promise<TokenAnswer>,
  { description, url, clock, secrets, advice, tries = 1 }: Asking,
): Promise<Token> {
  const place = `${url.origin}${url.pathname}`;
  const failed = (why: string): GatewayError =>
    credentialError(
      `No token (${description}) from ${place}: ${redacted(why, secrets)}. ${advice}`,
    );
  for (let tried = 1; ; tried++) {
    const answer = await send().catch((error: unknown) => {
      throw failed(messageOf(error));
    });
    const token = readToken(answer, clock.wall());
    if (token !== undefined) return token;
    if (tried >= tries || !isBusy(answer.status)) throw failed(complaintOf(answer, secrets));
    await wait(waitMs * tried);
  }
}

/** The answer of a service of the machine; a busy one is tried again. @throws Error as `askForToken` */
export async function askBusy(request: TokenRequest, tries: number): Promise<TokenAnswer> {
  for (let tried = 1; ; tried++) {
    const answer = await askForToken(request);
    if (tried >= tries || !isBusy(answer.status)) return answer;
    await wait(waitMs * tried);
  }
}

/** The service of a machine says so while the identity is being set up (410), and after too many requests. */
function isBusy(status: number): boolean {
  return status === 410 || status === 429 || status >= 500;
}

function readToken({ status, body }: TokenAnswer, wallMs: number): Token | undefined {
  const value = body['access_token'];
  if (status !== 200 || typeof value !== 'string' || value === '') return undefined;
  const lifeMs = lifeOf(body, wallMs);
  return lifeMs > 0 ? { value: new Secret(value), lifeMs } : undefined;
}

/** `expires_in` in seconds, or `expires_on` in seconds since the epoch: numbers, or texts of them. */
function lifeOf({ expires_in: seconds, expires_on: until }: JsonObject, wallMs: number): number {
  const inMs = Number(seconds) * 1000;
  const untilMs = Number(until) * 1000 - wallMs;
  return Number.isFinite(inMs) ? inMs : Number.isFinite(untilMs) ? untilMs : 0;
}

/** `AADSTS7000215: Invalid client secret provided`, without the ids after it. */
function complaintOf({ status, body }: TokenAnswer, secrets: Asking['secrets']): string {
  const { error, error_description: description } = body;
  // Google's APIs put the sentence into `error`.
  const sentence = isObject(error) ? error['message'] : description;
  const text = typeof sentence === 'string' ? sentence : undefined;
  // A secret is replaced before the text is cut: the cut may lie within it.
  const short = (whole: string): string => redacted(whole, secrets).slice(0, maxDescription);
  const [first] = text?.split(/\r?\n|Trace ID:|Correlation ID:/) ?? [];
  const said = first === undefined ? undefined : short(first.trimEnd());
  const word = typeof error === 'string' ? short(error) : undefined;
  if (status >= 300 && status < 400) return `it answered with a redirect (${status})`;
  return `it answered ${status}${said === undefined && word === undefined ? ' without a token' : ''}${said === undefined ? '' : `: ${said}`}${said === undefined && word !== undefined ? `: ${word}` : ''}`;
}

/** The text without these secrets and all that looks like a key; a secret under 4 characters stays. */
export function redacted(text: string, secrets: readonly (string | undefined)[]): string {
  const hidden = secrets.filter((secret) => secret !== undefined && secret.length >= 4);
  return withoutKeys(
    hidden.reduce<string>((rest, secret) => rest.replaceAll(secret ?? '', '[redacted]'), text),
  ).replace(/\.$/, '');
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
