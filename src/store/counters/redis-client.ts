/** The connection to the Redis or Valkey server that counts. Nothing waits for a server that is away. */
import { createHash } from 'node:crypto';
import type { Redis, RedisOptions } from 'ioredis';
import type { ServerAddress } from '../../core/addresses.ts';
import type { Log } from '../../core/runtime.ts';
import { StoreError } from '../store-error.ts';

export type RedisClient = Redis;
type Options = Omit<RedisOptions, 'replyMapping'>;

const connectMs = 2000;
const maxPauseMs = 1000;

/** Loads the driver and begins to connect; continues trying for as long as it is open. */
export async function openRedis(
  address: ServerAddress,
  random: () => number,
): Promise<RedisClient> {
  const { Redis: Client } = await import('ioredis');
  const options: Options = { ...optionsOf(address), ...manners(random) };
  const client = new Client(options);
  // A caller that needs it gets the error of its command.
  client.on('error', () => undefined);
  return client;
}

/** Logs why the server cannot be used, once an outage: without limits no call would notice that it is away. */
export function reportOutages(
  client: Pick<RedisClient, 'on'>,
  { host, port }: Pick<ServerAddress, 'host' | 'port'>,
  log: Log,
): void {
  const server = host.startsWith('/') ? host : `${host}:${port}`;
  let isAway = false;
  client.on('error', (error: Error) => {
    if (isAway) return;
    isAway = true;
    const message = textOf(error);
    const hint = /^(WRONGPASS|NOAUTH)\b/.test(message)
      ? ' (check user and password of the Redis address)'
      : '';
    log.error('redis_unavailable', { server, reason: `${message}${hint}` });
  });
  client.on('ready', () => {
    if (isAway) log.warn('redis_available', { server });
    isAway = false;
  });
}

/** A name with several addresses fails with one error for each, and no text of its own. */
function textOf(error: Error): string {
  if (!(error instanceof AggregateError) || error.message !== '') return error.message;
  return error.errors.map((each) => (each instanceof Error ? each.message : '')).join(', ');
}

function optionsOf({ host, port, user, password, database, tls }: ServerAddress): Options {
  return {
    ...(host.startsWith('/') ? { path: host } : { host, port }),
    db: Number(database),
    ...(user === undefined ? {} : { username: user }),
    ...(password === undefined ? {} : { password: password.reveal() }),
    ...(tls === undefined
      ? {}
      : {
          tls: {
            ...(tls.ca === undefined ? {} : { ca: tls.ca }),
            ...(tls.cert === undefined ? {} : { cert: tls.cert }),
            ...(tls.key === undefined ? {} : { key: tls.key.reveal() }),
            rejectUnauthorized: true,
            ...(tls.checkHost ? {} : { checkServerIdentity: () => undefined }),
          },
        }),
  };
}

function manners(random: () => number): Options {
  return {
    connectionName: 'model-gateway',
    connectTimeout: connectMs,
    keepAlive: 10_000,
    noDelay: true,
    // A command for a server that is not there fails at once, and none is sent a second time.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (tries) => Math.min(maxPauseMs, 50 * tries) * (0.5 + random() / 2),
    // The primary of yesterday after a failover.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
}

// Redis that does not answer, or refuses commands.

/** What the client throws, as a failure of the store. */
export function unavailable(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError('unavailable', `Redis does not count: ${String(error)}`, error);
}

/** Whether the server refuses the command itself, and not because of its current state. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^(?:ERR|WRONGTYPE) /.test(error.message);
}

/** @throws StoreError `unavailable` when it takes longer */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const end = (): void => {
    reject(new StoreError('unavailable', `Redis did not answer within ${ms} ms.`));
  };
  // Timers come before what sockets have brought: an answer that waited for this process is read first.
  const timer = setTimeout(() => setImmediate(end), ms);
  work.then(resolve, reject);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}

// Scripts on Redis, and their answers.

export type Answer = readonly (string | number)[];

/** A script that the server knows by its hash, and is sent again where it forgot it. */
export class Script {
  readonly #client: RedisClient;
  readonly #text: string;
  readonly #hash: string;

  constructor(client: RedisClient, text: string) {
    this.#client = client;
    this.#text = text;
    this.#hash = createHash('sha1').update(text).digest('hex');
  }

  async run(key: string, values: readonly (string | number)[]): Promise<Answer> {
    sendTogether(this.#client);
    try {
      return readAnswer(await this.#client.evalsha(this.#hash, 1, key, ...values));
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    }
    return readAnswer(await this.#client.eval(this.#text, 1, key, ...values));
  }
}

/** What is sent in one turn of the event loop goes out in one write: a write is more expensive than a command. */
function sendTogether({ stream }: RedisClient): void {
  // There is none before the first connection.
  const socket: RedisClient['stream'] | undefined = stream;
  if (socket === undefined || socket.writableCorked > 0) return;
  socket.cork();
  setImmediate(() => socket.uncork());
}

function readAnswer(answer: unknown): Answer {
  return Array.isArray(answer)
    ? answer.map((each: unknown) => (typeof each === 'number' ? each : String(each)))
    : [];
}
