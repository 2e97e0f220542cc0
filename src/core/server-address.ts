/** Where a database server listens and how it is spoken to: the parts of a `postgres://` or `redis://` text. */
import type { Secret } from './secret.ts';

export interface ServerAddress {
  readonly scheme: 'postgres' | 'redis';
  /** A name, an address, or the directory of a Unix socket (begins with `/`). */
  readonly host: string;
  readonly port: number;
  readonly user?: string;
  readonly password?: Secret;
  /** Name of the database; the number of one for Redis. */
  readonly database: string;
  /** Absent = nothing is encrypted. Certificates are always verified (S19). */
  readonly tls?: ServerTls;
  /** What may be shown: scheme, host, port and database; never user or password. */
  readonly shown: string;
}

export interface ServerTls {
  /** PEM; absent = the authorities that Node trusts. */
  readonly ca?: string;
  /** PEM of the client's own certificate and its key. */
  readonly cert?: string;
  readonly key?: Secret;
  /** Whether the certificate must be for the very host; false = `sslmode=verify-ca`. */
  readonly checkHost: boolean;
}
