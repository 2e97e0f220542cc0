/** `storage:` of the file, `--storage` or its variable: where keys, ledger and counters are kept. */
import { dirname } from 'node:path';
import { outerChoice, type BaseSources } from './base-settings.ts';
import type { CheckedFile } from './config-file.ts';
import { pathText } from './config-error.ts';
import { isExposed, isPostgres, isRedis, readPostgres, readRedis } from './server-address.ts';
import { defaults, type OriginLine, type SharedStorage, type StorageSettings } from './settings.ts';

export interface StorageRead {
  readonly storage: StorageSettings;
  readonly origins: readonly OriginLine[];
  readonly warnings: readonly string[];
}

/** A text and where it stands. */
interface Piece {
  readonly text: string;
  readonly path: string;
  readonly origin: string;
  complain(message: string): void;
}

interface Pieces {
  readonly book: Piece;
  readonly counters?: Piece;
  readonly tenant?: Piece;
  readonly onStoreLoss?: Piece;
  /** Relative files start here. */
  readonly directory: string;
}

const forms = `expected sqlite, memory or postgres://USER:PASSWORD@HOST:5432/DATABASE`;

export function readStorage(sources: BaseSources): StorageRead {
  const pieces = findPieces(sources);
  const { book, counters, tenant, onStoreLoss } = pieces;
  const storage = isPostgres(book.text) ? shared(pieces) : local(pieces);
  if (storage.book !== 'postgres') {
    return { storage, origins: [originOf(book, storage.book)], warnings: [] };
  }
  const { postgres, redis } = storage;
  return {
    storage,
    origins: [
      originOf(book, postgres.shown),
      ...(counters === undefined || redis === undefined ? [] : [originOf(counters, redis.shown)]),
      ...(tenant === undefined ? [] : [originOf(tenant, storage.tenant)]),
      ...(onStoreLoss === undefined ? [] : [originOf(onStoreLoss, storage.onStoreLoss)]),
    ],
    warnings: exposed(storage),
  };
}

function local({ book, counters, tenant, onStoreLoss }: Pieces): StorageSettings {
  if (book.text !== 'sqlite' && book.text !== 'memory') {
    book.complain(isRedis(book.text) ? `${forms} first: Redis keeps counters only` : forms);
    return { book: defaults.storage };
  }
  const needless = 'is for gateways that share a postgres:// book';
  counters?.complain(needless);
  tenant?.complain(needless);
  onStoreLoss?.complain(needless);
  return { book: book.text };
}

function shared({ book, counters, tenant, onStoreLoss, directory }: Pieces): StorageSettings {
  const postgres = readPostgres(book.text, { directory, complain: book.complain });
  const isWrong = counters !== undefined && !isRedis(counters.text);
  if (isWrong) counters.complain('expected redis://USER:PASSWORD@HOST:6379/0 (rediss:// with TLS)');
  const redis =
    counters === undefined || isWrong
      ? undefined
      : readRedis(counters.text, { directory, complain: counters.complain });
  // Where something was complained about, nothing starts with what is left.
  if (postgres === undefined) return { book: defaults.storage };
  return {
    book: 'postgres',
    postgres,
    ...(redis === undefined ? {} : { redis }),
    tenant: tenant?.text ?? defaults.tenant,
    onStoreLoss: onStoreLoss?.text === 'open' ? 'open' : 'closed',
  };
}

function exposed({ postgres, redis }: SharedStorage): readonly string[] {
  const advice = [
    [postgres, 'add sslmode=verify-full to the address'],
    [redis, 'use rediss://'],
  ] as const;
  return advice.flatMap(([address, cure]) =>
    address !== undefined && isExposed(address)
      ? [`storage ${address.shown}: nothing encrypts the way there; ${cure}`]
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
    const book = { text: defaults.storage, path: 'storage', origin: 'default', complain };
    return { book, directory: cwd };
  }
  return { ...ofFile(file, form, report), directory: dirname(file.place.path) };
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
  const { book, counters, tenant, on_store_loss: onStoreLoss } = form;
  return {
    book: at(book, ['storage', 'book']),
    ...(counters === undefined ? {} : { counters: at(counters, ['storage', 'counters']) }),
    ...(tenant === undefined ? {} : { tenant: at(tenant, ['storage', 'tenant']) }),
    ...(onStoreLoss === undefined
      ? {}
      : { onStoreLoss: at(onStoreLoss, ['storage', 'on_store_loss']) }),
  };
}

/** The book, then the counters. */
function ofTexts(
  texts: readonly string[],
  piece: (text: string, path: string, index: number) => Piece,
): Omit<Pieces, 'directory'> {
  const [first = '', second, ...rest] = texts;
  const book = piece(first, second === undefined ? 'storage' : 'storage.book', 0);
  if (rest.length > 0) book.complain('takes two addresses at most: the book and the counters');
  if (second === undefined) return { book };
  return { book, counters: piece(second, 'storage.counters', 1) };
}

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}
