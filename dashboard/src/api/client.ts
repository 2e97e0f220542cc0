/** Calls of the admin API. The session is a cookie that no script can read; changes carry a header that no form can. */
import { ApiError, late, refused, unreachable } from './api-error.ts';
import { changing, questionsAllowed } from './sign-out.ts';

export type QueryValue = string | number | boolean | undefined;

export interface CallOptions {
  /** Parameters; those that are undefined are omitted. */
  readonly query?: { readonly [name: string]: QueryValue };
  readonly signal?: AbortSignal | undefined;
  /** Tag of what was read: the change is refused when it is another by now. */
  readonly ifMatch?: string;
}

/** What takes longer has failed: whatever holds it up, the page must not stand still with it. */
const patienceMs = 60_000;

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/** Marks a change as made by this page (S11). */
const changeHeader = 'x-model-gateway-csrf';

/** Path and parameters: `/api/calls?limit=50`. */
export function addressOf(path: string, query: CallOptions['query'] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Requests JSON, not while a session ends. @throws ApiError */
export async function get<Answer>(path: string, options: CallOptions = {}): Promise<Answer> {
  await questionsAllowed();
  return call<Answer>('GET', path, options);
}

/** Changes something; the body is JSON. An answer without a body is undefined. @throws ApiError */
export function send<Answer>(
  method: Exclude<Method, 'GET'>,
  path: string,
  options: CallOptions & { readonly body?: unknown } = {},
): Promise<Answer> {
  return changing(`${method} ${path}`, () => call<Answer>(method, path, options));
}

/** Ends the session, behind all changes. @throws ApiError */
export function endSession(): Promise<void> {
  return call<void>('DELETE', '/api/session', {});
}

async function call<Answer>(
  method: Method,
  path: string,
  options: CallOptions & { readonly body?: unknown },
): Promise<Answer> {
  const response = await answerOf(method, path, options);
  // The type is the caller's word: the API is described in openapi.json and tested there.
  if (response.status === 204) return undefined as Answer;
  const where = `${method} ${path}`;
  return (await readJson(response, where)) as Answer;
}

async function answerOf(
  method: Method,
  path: string,
  options: CallOptions & { readonly body?: unknown },
): Promise<Response> {
  const { query, signal, body, ifMatch } = options;
  const where = `${method} ${path}`;
  const headers: Record<string, string> = { accept: 'application/json' };
  if (method !== 'GET') headers[changeHeader] = '1';
  if (ifMatch !== undefined) headers['if-match'] = ifMatch;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const deadline = AbortSignal.timeout(patienceMs);
  const response = await fetch(addressOf(path, query), {
    method,
    headers,
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    // Until the last byte of the answer.
    signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
  }).catch((error: unknown) => {
    throw givenUp(error, where) ?? unreachable(where);
  });
  if (!response.ok) throw await refusalOf(response, where);
  return response;
}

/** What to throw for a call that the page gave up; undefined: it did not. */
function givenUp(error: unknown, where: string): Error | undefined {
  if (!(error instanceof DOMException)) return undefined;
  return error.name === 'TimeoutError' ? late(where, patienceMs) : error;
}

async function readJson(response: Response, where: string): Promise<unknown> {
  try {
    return (await response.json()) as unknown;
  } catch (error) {
    throw (
      givenUp(error, where) ??
      new ApiError({
        kind: 'failed',
        what: 'The answer is not JSON.',
        where,
        next: 'Check that this address is the admin listener of the gateway and not a proxy in front of it.',
        status: response.status,
      })
    );
  }
}

interface ErrorBody {
  readonly error?: {
    readonly message?: unknown;
    readonly field?: unknown;
    readonly problems?: unknown;
  };
}

async function refusalOf(response: Response, where: string): Promise<ApiError> {
  const body = (await response.json().catch(() => ({}))) as ErrorBody | null;
  const { message, field, problems } = body?.error ?? {};
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return refused({
    status: response.status,
    where,
    message: typeof message === 'string' ? message : undefined,
    field: typeof field === 'string' ? field : undefined,
    problems: Array.isArray(problems) ? problems.map(String) : [],
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
  });
}
