/** The connection to the Redis or Valkey server that counts. Nothing waits for a server that is away. */
import type { Redis, RedisOptions } from 'ioredis';
import type { ServerAddress } from '../../core/addresses.ts';

export type RedisClient = Redis;
type Options = Omit<RedisOptions, 'replyMapping'>;

const connectMs = 2000;
const longestPauseMs = 1000;

/** Loads the driver and begins to connect; goes on trying for as long as it is open. */
export async function openRedis(
  address: ServerAddress,
  random: () => number,
): Promise<RedisClient> {
  const { Redis: Client } = await import('ioredis');
  const options: Options = { ...optionsOf(address), ...manners(random) };
  const client = new Client(options);
  // Who needs it is told by the command that fails.
  client.on('error', () => undefined);
  return client;
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
    retryStrategy: (tries) => Math.min(longestPauseMs, 50 * tries) * (0.5 + random() / 2),
    // The primary of yesterday after a failover.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
}
