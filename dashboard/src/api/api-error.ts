/** What went wrong between the page and the gateway, in words for the person who examines it. */

/** `unreachable`: no answer. `late`: an answer may still come. `signed-out`: the session is over or was never there. */
export type ApiErrorKind = 'unreachable' | 'late' | 'signed-out' | 'refused' | 'failed';

interface ApiErrorInput {
  readonly kind: ApiErrorKind;
  /** What happened, one sentence. */
  readonly what: string;
  /** The same where the field is in sight: without its name. */
  readonly said?: string;
  /** Method and path. */
  readonly where: string;
  /** What the person can do. */
  readonly next: string;
  /** HTTP status; undefined when no answer came. */
  readonly status?: number | undefined;
  /** Member of the sent body, or parameter, that was refused: `limits.rpm`. */
  readonly field?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** All lines of a refusal that has several, e.g. of a configuration. */
  readonly problems?: readonly string[] | undefined;
}

/** Thrown by every call of the API; nothing else is. An aborted call rejects with the browser's AbortError. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly kind: ApiErrorKind;
  readonly where: string;
  readonly next: string;
  readonly status: number | undefined;
  readonly field: string | undefined;
  readonly said: string;
  readonly retryAfterSeconds: number | undefined;
  readonly problems: readonly string[];

  constructor(input: ApiErrorInput) {
    super(input.what);
    this.kind = input.kind;
    this.where = input.where;
    this.next = input.next;
    this.status = input.status;
    this.field = input.field;
    this.said = input.said ?? input.what;
    this.retryAfterSeconds = input.retryAfterSeconds;
    this.problems = input.problems ?? [];
  }
}

/** No answer at all: the gateway is stopped, restarting, or the network is away. */
export function unreachable(where: string): ApiError {
  return new ApiError({
    kind: 'unreachable',
    what: 'The gateway does not answer.',
    where,
    next: 'Check that it runs and is reachable from this machine, then try again.',
  });
}

/** No answer in time. */
export function late(where: string, patienceMs: number): ApiError {
  return new ApiError({
    kind: 'late',
    what: `The gateway did not answer within ${patienceMs / 1000} s.`,
    where,
    next: where.startsWith('GET ')
      ? 'Try again. The log of the gateway may show the cause.'
      : 'The change may have been made. Reload and check before you try again.',
  });
}

export interface Refusal {
  readonly status: number;
  readonly where: string;
  /** What the gateway said; undefined when its answer was not JSON. */
  readonly message: string | undefined;
  readonly field: string | undefined;
  readonly problems: readonly string[];
  readonly retryAfterSeconds: number | undefined;
}

/** An answer that is not 2xx. */
export function refused(refusal: Refusal): ApiError {
  const { status, where, message, field, problems, retryAfterSeconds } = refusal;
  const said = message ?? `The gateway answered with status ${status} and no details.`;
  return new ApiError({
    kind: kindOf(status),
    what: field === undefined ? said : `${field}: ${said}`,
    said,
    where,
    next: nextStep(status, retryAfterSeconds),
    status,
    field,
    problems,
    retryAfterSeconds,
  });
}

function kindOf(status: number): ApiErrorKind {
  if (status === 401) return 'signed-out';
  return status < 500 ? 'refused' : 'failed';
}

const nextSteps: ReadonlyMap<number, string> = new Map([
  [400, 'Correct the named field and send again.'],
  [401, 'Sign in with the admin token.'],
  [403, 'Reload this page and try again. Behind a proxy, check that it passes Origin and cookies.'],
  [404, 'It may have been removed; go back to the list.'],
  [409, 'Reload to see the current state.'],
  [412, 'Load it again, then make the change in what is there now.'],
  [413, 'Send a smaller request.'],
  [422, 'Correct the named problem and try again.'],
  [503, 'Wait a moment and try again. `model-gateway status` shows details.'],
]);

function nextStep(status: number, retryAfterSeconds: number | undefined): string {
  if (retryAfterSeconds !== undefined) return `Try again in ${retryAfterSeconds} s.`;
  const known = nextSteps.get(status);
  if (known !== undefined) return known;
  return status >= 500 ? 'The log of the gateway has the cause.' : 'Check the request.';
}

/** Whether the session is over. */
export function isSignedOut(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.kind === 'signed-out';
}

/** What to show of anything that was thrown. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const what = thrown instanceof Error ? thrown.message : String(thrown);
  if (isMissingCode(what)) return unreachable('loading the page');
  return new ApiError({
    kind: 'failed',
    what: `This page failed: ${what}`,
    where: 'in the browser',
    next: 'Reload the page. If it happens again, report it to the maintainers.',
  });
}

/** A badge's word for a status that could not be read: only a missing answer says that the gateway is away. */
export function failedStatus(thrown: unknown): string {
  const { kind } = asApiError(thrown);
  return kind === 'unreachable' || kind === 'late' ? 'unreachable' : 'unknown: the request failed';
}

/** Pages are fetched when they are opened: browsers and the bundler have their own words for one that was not. */
export function isMissingCode(message: string): boolean {
  return /unable to preload|dynamically imported module|importing a module script/i.test(message);
}
