/** What a failed statement or connection means (postgresql.org/docs/current/errcodes-appendix.html). */
import { StoreError, type StoreFailure } from '../store-error.ts';

/** Exact codes before classes (their first two characters). */
const kindOfState: ReadonlyMap<string, StoreFailure> = new Map<string, StoreFailure>([
  ['25006', 'unavailable'], // read_only_sql_transaction: a replica, or the primary of yesterday
  ['40001', 'busy'], // serialization_failure
  ['40P01', 'busy'], // deadlock_detected
  ['55P03', 'busy'], // lock_not_available
  ['57014', 'busy'], // query_canceled: the statement's time is up
  ['25P03', 'unavailable'], // idle_in_transaction_session_timeout: the connection is gone
  ['57P01', 'unavailable'], // admin_shutdown
  ['57P02', 'unavailable'], // crash_shutdown
  ['57P03', 'unavailable'], // cannot_connect_now: it starts up
  ['57P05', 'unavailable'], // idle_session_timeout
  ['08', 'unavailable'], // connection exceptions
  ['22', 'refused'], // data exceptions: out of range, not a text, …
  ['23', 'refused'], // integrity constraint violations
  ['54', 'refused'], // program limits: too large for an index, …
  ['53100', 'full'], // disk_full
  ['53', 'unavailable'], // too_many_connections and other lack of resources
  ['58', 'full'], // system_error, io_error
  ['XX001', 'corrupt'], // data_corrupted
  ['XX002', 'corrupt'], // index_corrupted
]);

/** Of sockets and name look-ups. */
const brokenConnection: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EMFILE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT', // the Unix socket of a server that is not there
]);

/** Errors of the client library without a code. */
const brokenTexts =
  /^Connection terminated|^timeout expired|^Client has encountered a connection error|^Query read timeout|^Client was closed/;

/** Of the pool: all its connections are at work. That tells nothing about the server. */
const poolWait = /^timeout exceeded when trying to connect/;

/** What the operator can do about it; by exact code. */
const advice: ReadonlyMap<string, string> = new Map([
  ['28P01', 'check user and password of the storage address'],
  [
    '28000',
    'the server wants another kind of login; check its pg_hba.conf, or add sslmode=verify-full',
  ],
  ['3D000', 'make it: CREATE DATABASE … OWNER … ENCODING UTF8'],
  [
    '42501',
    'the user must own the tables, or be allowed to make them: GRANT CREATE ON SCHEMA public',
  ],
  ['42P07', 'the database holds tables of another program; give the gateway a database of its own'],
]);

/** Errors of the client library that say too little, and what they say instead. */
const plainTexts: ReadonlyMap<string, string> = new Map([
  ['timeout expired', 'no answer to a new connection in time'],
  ['Query read timeout', 'it took a connection and a question, and did not answer in time'],
]);
const silenceAdvice =
  'see whether the database runs, and whether a pooler or a firewall holds what it says';

/** Any thrown value as a StoreError that names the server, without user and password. */
export function asPostgresError(thrown: unknown, shown: string): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const code = codeOf(thrown);
  const text = thrown instanceof Error ? textOf(thrown) : 'unknown failure';
  if (code === '' && poolWait.test(text)) {
    return new StoreError('busy', `${shown}: no connection of the pool came free in time.`, thrown);
  }
  const plain = code === '' ? plainTexts.get(text) : undefined;
  const hint = plain === undefined ? advice.get(code) : silenceAdvice;
  const message = `${shown}: ${plain ?? text}${hint === undefined ? '' : ` (${hint})`}`;
  return new StoreError(kindOf(code, text), message, thrown);
}

/** Whether a transaction was undone only because of others, and may work when it is run again. */
export function isConflict(thrown: unknown): boolean {
  const code = codeOf(thrown);
  return code === '40001' || code === '40P01';
}

/** Whether no connection of the pool came free in time: nothing was done, and the server was not asked. */
export function isPoolWait(thrown: unknown): thrown is StoreError {
  if (!(thrown instanceof StoreError) || !(thrown.cause instanceof Error)) return false;
  return thrown.kind === 'busy' && poolWait.test(thrown.cause.message);
}

/** Whether the server is there, and has no connection left for one more. */
export function isCrowded(thrown: unknown): boolean {
  return codeOf(thrown) === '53300';
}

/** Whether a row with this key is there already. */
export function isDuplicate(thrown: unknown): boolean {
  return codeOf(thrown) === '23505';
}

function kindOf(code: string, text: string): StoreFailure {
  if (brokenConnection.has(code)) return 'unavailable';
  const kind = kindOfState.get(code) ?? kindOfState.get(code.slice(0, 2));
  if (kind !== undefined) return kind;
  return code === '' && brokenTexts.test(text) ? 'unavailable' : 'failed';
}

/** SQLSTATE or the system's code; of several tries to connect, that of the first. */
function codeOf(thrown: unknown): string {
  if (thrown instanceof StoreError) return codeOf(thrown.cause);
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return codeOf(thrown.errors[0]);
  if (!(thrown instanceof Error) || !('code' in thrown)) return '';
  return typeof thrown.code === 'string' ? thrown.code : '';
}

function textOf(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  const { message } = first instanceof Error ? first : error;
  return message === '' ? 'it cannot be reached' : message;
}
