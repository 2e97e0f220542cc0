/**
 * Reads `postgres://…` and `redis://…`. Nothing of the text stands in a message: any part of a mistyped
 * address may be a piece of the password.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Secret } from '../core/secret.ts';
import type { ServerAddress, ServerTls } from '../core/server-address.ts';
import { isLoopback } from './address.ts';
import { isOpenToAll, reason } from './references.ts';

export interface AddressScope {
  /** Relative files of certificates start here. */
  readonly directory: string;
  complain(message: string): void;
}

const postgresForm = /^postgres(?:ql)?:\/\//;
const redisForm = /^(?:redis|valkey)(s?):\/\//;

const postgresExample = 'postgres://USER:PASSWORD@HOST:5432/DATABASE';
const redisExample = 'redis://USER:PASSWORD@HOST:6379/0';
const encoding = 'in names and passwords write : / ? # @ and % as %3A %2F %3F %23 %40 and %25';

export function isPostgres(text: string): boolean {
  return postgresForm.test(text);
}

export function isRedis(text: string): boolean {
  return redisForm.test(text);
}

/** Undefined when it is no such address; then it was complained about. */
export function readPostgres(text: string, scope: AddressScope): ServerAddress | undefined {
  const parts = split(text);
  const database = parts?.path ?? '';
  if (parts === undefined || database === '' || database.includes('/')) {
    scope.complain(`is no address of a PostgreSQL server: ${postgresExample}; ${encoding}`);
    return undefined;
  }
  if (!onlyKnown(parts, ['host', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'], scope)) {
    return undefined;
  }
  const tls = postgresTls(parts.options, scope);
  return tls === 'wrong' ? undefined : address({ parts, database, tls }, 'postgres');
}

/** Undefined when it is no such address; then it was complained about. */
export function readRedis(text: string, scope: AddressScope): ServerAddress | undefined {
  const parts = split(text);
  const database = parts?.path === '' ? '0' : (parts?.path ?? '');
  if (parts === undefined || !/^\d{1,4}$/.test(database)) {
    scope.complain(`is no address of a Redis or Valkey server: ${redisExample}; ${encoding}`);
    return undefined;
  }
  if (!onlyKnown(parts, ['ca', 'cert', 'key'], scope)) return undefined;
  const encrypted = redisForm.exec(text)?.[1] === 's';
  const tls = redisTls(encrypted, parts.options, scope);
  return tls === 'wrong' ? undefined : address({ parts, database, tls }, 'redis');
}

function redisTls(
  encrypted: boolean,
  options: Parts['options'],
  scope: AddressScope,
): ServerTls | undefined | 'wrong' {
  if (encrypted) {
    const files = { ca: options.get('ca'), cert: options.get('cert'), key: options.get('key') };
    return readTls(files, true, scope);
  }
  if (options.size === 0) return undefined;
  scope.complain('has options of TLS, which rediss:// is for');
  return 'wrong';
}

/** Whether what is sent there can be read on the way. */
export function isExposed({ host, tls }: ServerAddress): boolean {
  return tls === undefined && !host.startsWith('/') && !isLoopback(host);
}

interface Parts {
  readonly host: string;
  readonly port: number | undefined;
  readonly user: string;
  readonly password: string;
  /** Without the leading slash. */
  readonly path: string;
  readonly options: ReadonlyMap<string, string>;
}

function split(text: string): Parts | undefined {
  try {
    const url = new URL(text);
    const options = new Map(url.searchParams);
    const host = options.get('host') ?? decodeURIComponent(url.hostname);
    if (url.hash !== '' || host === '') return undefined;
    return {
      host: host.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? undefined : Number(url.port),
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      path: decodeURIComponent(url.pathname.replace(/^\//, '')),
      options,
    };
  } catch {
    return undefined;
  }
}

function onlyKnown({ options }: Parts, known: readonly string[], scope: AddressScope): boolean {
  const fine = [...options.keys()].every((name) => known.includes(name));
  if (!fine) scope.complain(`has an unknown option behind the ?; known are ${known.join(', ')}`);
  return fine;
}

interface AddressParts {
  readonly parts: Parts;
  readonly database: string;
  readonly tls: ServerTls | undefined;
}

function address(
  { parts, database, tls }: AddressParts,
  scheme: ServerAddress['scheme'],
): ServerAddress {
  const port = parts.port ?? (scheme === 'postgres' ? 5432 : 6379);
  const { host } = parts;
  const place = host.includes(':') ? `[${host}]` : host;
  return {
    scheme,
    host,
    port,
    ...(parts.user === '' ? {} : { user: parts.user }),
    ...(parts.password === '' ? {} : { password: new Secret(parts.password) }),
    database,
    ...(tls === undefined ? {} : { tls }),
    shown: `${scheme}://${place}:${port}/${database}`,
  };
}

/**
 * libpq's names. `require` verifies too (S19); `prefer` and `allow` are refused: who can read the line
 * can also take the TLS out of it.
 */
function postgresTls(
  options: Parts['options'],
  scope: AddressScope,
): ServerTls | undefined | 'wrong' {
  const mode = options.get('sslmode') ?? 'disable';
  const files = {
    ca: options.get('sslrootcert'),
    cert: options.get('sslcert'),
    key: options.get('sslkey'),
  };
  switch (mode) {
    case 'require':
    case 'verify-full':
    case 'verify-ca':
      return readTls(files, mode !== 'verify-ca', scope);
    case 'disable':
      if (Object.values(files).every((file) => file === undefined)) return undefined;
      scope.complain('names certificates and no sslmode; add sslmode=verify-full');
      return 'wrong';
    default:
      scope.complain(
        'sslmode is one of disable, verify-ca, verify-full and require (verified too)',
      );
      return 'wrong';
  }
}

interface TlsFiles {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

function readTls(files: TlsFiles, checkHost: boolean, scope: AddressScope): ServerTls | 'wrong' {
  if ((files.cert === undefined) !== (files.key === undefined)) {
    scope.complain("names one of the client's certificate and its key; both are needed");
    return 'wrong';
  }
  const ca = readPem(files.ca, 'the certificate of the authority', scope);
  const cert = readPem(files.cert, "the client's certificate", scope);
  const key = readPem(files.key, "the key of the client's certificate", scope);
  if (ca === 'wrong' || cert === 'wrong' || key === 'wrong') return 'wrong';
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key: new Secret(key) }),
    checkHost,
  };
}

/** A PEM file; undefined where none is named, `wrong` where it complained. */
export function readPem(
  name: string | undefined,
  what: string,
  { directory, complain }: AddressScope,
): string | undefined {
  if (name === undefined) return undefined;
  const path = resolve(directory, name);
  try {
    const text = readFileSync(path, 'utf8');
    if (!text.includes('-----BEGIN ')) {
      complain(`${what} is no PEM file`);
    } else if (text.includes('PRIVATE KEY') && isOpenToAll(path)) {
      complain(`the file of ${what} is readable by every user of this machine; chmod 600 it`);
    } else return text;
  } catch (error) {
    complain(`the file of ${what} cannot be read (${reason(error)})`);
  }
  return 'wrong';
}
