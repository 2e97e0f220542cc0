/** `storage:` of the file, `--storage` or its variable: where keys, ledger and counters are stored. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Secret } from '../core/secret.ts';
import type { ServerAddress, ServerTls } from '../core/addresses.ts';
import { isLoopback, pathText } from './errors.ts';
import { type BaseSources, outerChoice } from './base.ts';
import { type CheckedFile, isOpenToAll, reason } from './config-file.ts';
import type { OriginLine, SharedStorage, StorageSettings } from './settings.ts';

const defaultDatabase = 'sqlite';
const defaultTenant = 'default';

interface StorageRead {
  readonly storage: StorageSettings;
  readonly origins: readonly OriginLine[];
  readonly warnings: readonly string[];
}

/** A text and where it is. */
interface Piece {
  readonly text: string;
  readonly path: string;
  readonly origin: string;
  complain(message: string): void;
}

interface Pieces {
  readonly database: Piece;
  readonly counters?: Piece;
  readonly tenant?: Piece;
  readonly onStoreLoss?: Piece;
  /** Relative files start here. */
  readonly directory: string;
}

const forms = `expected sqlite, memory or postgres://USER:PASSWORD@HOST:5432/DATABASE`;

export function readStorage(sources: BaseSources): StorageRead {
  const pieces = findPieces(sources);
  const { database, counters, tenant, onStoreLoss } = pieces;
  const storage = postgresForm.test(database.text) ? shared(pieces) : local(pieces);
  if (storage.database !== 'postgres') {
    return { storage, origins: [originOf(database, storage.database)], warnings: [] };
  }
  const { postgres, redis } = storage;
  return {
    storage,
    origins: [
      originOf(database, postgres.shown),
      ...(counters === undefined || redis === undefined ? [] : [originOf(counters, redis.shown)]),
      ...(tenant === undefined ? [] : [originOf(tenant, storage.tenant)]),
      ...(onStoreLoss === undefined ? [] : [originOf(onStoreLoss, storage.onStoreLoss)]),
    ],
    warnings: exposed(storage),
  };
}

function local({ database, counters, tenant, onStoreLoss }: Pieces): StorageSettings {
  if (database.text !== 'sqlite' && database.text !== 'memory') {
    database.complain(isRedis(database.text) ? `${forms} first: Redis keeps counters only` : forms);
    return { database: defaultDatabase };
  }
  const needless = 'applies only to a postgres:// database';
  counters?.complain(needless);
  tenant?.complain(needless);
  onStoreLoss?.complain(needless);
  return { database: database.text };
}

function shared({ database, counters, tenant, onStoreLoss, directory }: Pieces): StorageSettings {
  const postgres = readPostgres(database.text, { directory, complain: database.complain });
  const isWrong = counters !== undefined && !isRedis(counters.text);
  if (isWrong) counters.complain('expected redis://USER:PASSWORD@HOST:6379/0 (rediss:// with TLS)');
  const redis =
    counters === undefined || isWrong
      ? undefined
      : readRedis(counters.text, { directory, complain: counters.complain });
  // Where something was complained about, nothing starts with what is left.
  if (postgres === undefined) return { database: defaultDatabase };
  return {
    database: 'postgres',
    postgres,
    ...(redis === undefined ? {} : { redis }),
    tenant: tenant?.text ?? defaultTenant,
    onStoreLoss: onStoreLoss?.text === 'open' ? 'open' : 'closed',
  };
}

function exposed({ postgres, redis }: SharedStorage): readonly string[] {
  const advice = [
    [postgres, 'add sslmode=verify-full to the address'],
    [redis, 'use rediss://'],
  ] as const;
  return advice.flatMap(([address, cure]) =>
    address !== undefined &&
    address.tls === undefined &&
    !address.host.startsWith('/') &&
    !isLoopback(address.host)
      ? [`storage ${address.shown}: the connection is not encrypted; ${cure}`]
      : [],
  );
}

function originOf({ path, origin }: Piece, value: string): OriginLine {
  return { path, value, origin };
}

function findPieces(sources: BaseSources): Pieces {
  const { cwd, file, report } = sources;
  const outer = outerChoice('storage', sources);
  if (outer !== undefined) {
    const piece = (text: string, path: string): Piece => ({
      text,
      path,
      origin: outer.origin,
      complain: (message) => report({ path: outer.path, message }),
    });
    return { ...ofTexts(words(outer.text), piece), directory: cwd };
  }
  const form = file?.content.storage;
  if (file === undefined || form === undefined) {
    const complain = (message: string): void => report({ path: 'storage', message });
    const database = { text: defaultDatabase, path: 'storage', origin: 'default', complain };
    return { database, directory: cwd };
  }
  return { ...ofFile(file, form, report), directory: dirname(file.location.path) };
}

type Form = NonNullable<CheckedFile['content']['storage']>;

function ofFile(
  file: CheckedFile,
  form: Form,
  report: BaseSources['report'],
): Omit<Pieces, 'directory'> {
  const at = (text: string, path: readonly (string | number)[]): Piece => ({
    text,
    path: pathText(path),
    origin: file.where(path),
    complain: (message) => report(file.issue(path, message)),
  });
  if (typeof form === 'string') {
    return ofTexts(words(form), (text, path) => ({ ...at(text, ['storage']), path }));
  }
  if (Array.isArray(form))
    return ofTexts(form, (text, path, index) => ({ ...at(text, ['storage', index]), path }));
  const { database, counters, tenant, on_store_loss: onStoreLoss } = form;
  return {
    database: at(database, ['storage', 'database']),
    ...(counters === undefined ? {} : { counters: at(counters, ['storage', 'counters']) }),
    ...(tenant === undefined ? {} : { tenant: at(tenant, ['storage', 'tenant']) }),
    ...(onStoreLoss === undefined
      ? {}
      : { onStoreLoss: at(onStoreLoss, ['storage', 'on_store_loss']) }),
  };
}

/** The database, then the counters. */
function ofTexts(
  texts: readonly string[],
  piece: (text: string, path: string, index: number) => Piece,
): Omit<Pieces, 'directory'> {
  const [first = '', second, ...rest] = texts;
  const database = piece(first, second === undefined ? 'storage' : 'storage.database', 0);
  if (rest.length > 0)
    database.complain('takes two addresses at most: the database and the counters');
  if (second === undefined) return { database };
  return { database, counters: piece(second, 'storage.counters', 1) };
}

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

// Addresses of servers. Nothing of their text is in a message: any part of a mistyped address may be a
// piece of the password.

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

function isRedis(text: string): boolean {
  return redisForm.test(text);
}

/** Undefined when it is no such address; then it was complained about. */
export function readPostgres(text: string, scope: AddressScope): ServerAddress | undefined {
  const parts = split(text);
  const database = parts?.path ?? '';
  if (parts === undefined || database === '' || database.includes('/')) {
    scope.complain(`is not the address of a PostgreSQL server: ${postgresExample}; ${encoding}`);
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
    scope.complain(`is not the address of a Redis or Valkey server: ${redisExample}; ${encoding}`);
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
  scope.complain('has TLS options, which need rediss://');
  return 'wrong';
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
  if (!fine)
    scope.complain(`has an unknown option after the ?; known options: ${known.join(', ')}`);
  return fine;
}

interface AddressInput {
  readonly parts: Parts;
  readonly database: string;
  readonly tls: ServerTls | undefined;
}

function address(
  { parts, database, tls }: AddressInput,
  scheme: ServerAddress['scheme'],
): ServerAddress {
  const port = parts.port ?? (scheme === 'postgres' ? 5432 : 6379);
  const { host } = parts;
  const shownHost = host.includes(':') ? `[${host}]` : host;
  return {
    scheme,
    host,
    port,
    ...(parts.user === '' ? {} : { user: parts.user }),
    ...(parts.password === '' ? {} : { password: new Secret(parts.password) }),
    database,
    ...(tls === undefined ? {} : { tls }),
    shown: `${scheme}://${shownHost}:${port}/${database}`,
  };
}

/**
 * libpq's names. `require` verifies too (S19). `prefer` and `allow` are refused, since an attacker on the path
 * could strip TLS.
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
      scope.complain('names certificates but no sslmode; add sslmode=verify-full');
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
    scope.complain('names only one of the client certificate and its key; both are needed');
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
      complain(`${what} is not a PEM file`);
    } else if (text.includes('PRIVATE KEY') && isOpenToAll(path)) {
      complain(`the file of ${what} is readable by every user of this machine; chmod 600 it`);
    } else return text;
  } catch (error) {
    complain(`the file of ${what} cannot be read (${reason(error)})`);
  }
  return 'wrong';
}
