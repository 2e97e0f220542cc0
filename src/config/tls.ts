/** `tls:` and `admin_tls:` of the file: the certificates of both listeners. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { ListenerTls } from '../core/addresses.ts';
import { Secret } from '../core/secret.ts';
import type { CheckedFile } from './config-file.ts';
import type { ConfigIssue } from './errors.ts';
import type { OriginLine } from './settings.ts';
import { readPem } from './storage.ts';

export interface ReadTls {
  readonly tls: ListenerTls | undefined;
  readonly adminTls: ListenerTls | undefined;
  readonly origins: readonly OriginLine[];
  readonly warnings: readonly string[];
}

interface Scope {
  report(issue: ConfigIssue): void;
  /** Ms since the epoch. */
  readonly now: number;
  /** Called with the absolute path of each file before it is read. */
  readonly reading?: (file: string) => void;
}

/** Sections of the file, one for each listener. */
const sections = ['tls', 'admin_tls'] as const;
type Section = (typeof sections)[number];

/** Certificates that expire within this time are logged. Automatic renewal happens long before. */
const soonMs = 7 * 86_400_000;

/** Reads the files; what is wrong with one is reported with its path. */
export function readTls(file: CheckedFile | undefined, scope: Scope): ReadTls {
  const found = sections.map((section) => readSection(section, file, scope));
  return {
    tls: found[0]?.tls,
    adminTls: found[1]?.tls,
    origins: found.flatMap(({ origins }) => origins),
    warnings: found.flatMap(({ warnings }) => warnings),
  };
}

/** The certificate of the admin plane, for a client on this machine; undefined where none can be read. */
export function readAdminCertificate(file: CheckedFile | undefined): string | undefined {
  const cert = file?.content.admin_tls?.cert;
  if (file === undefined || cert === undefined) return undefined;
  const scope = { directory: dirname(file.location.path), complain: () => undefined };
  const text = readPem(cert, '', scope);
  return text === 'wrong' ? undefined : text;
}

interface Read {
  readonly tls?: ListenerTls;
  readonly origins: readonly OriginLine[];
  readonly warnings: readonly string[];
}

const nothing: Read = { origins: [], warnings: [] };

function readSection(section: Section, file: CheckedFile | undefined, scope: Scope): Read {
  const form = file?.content[section] ?? undefined;
  if (file === undefined || form === undefined) return nothing;
  const { cert, key, client_ca: clientCa } = form;
  if (cert === undefined || key === undefined) {
    const missing = cert === undefined ? 'cert' : 'key';
    scope.report(file.issue([section], `needs ${missing}, the path of a PEM file`));
    return nothing;
  }
  const texts = readFiles(section, file, scope);
  if (texts === undefined) return nothing;
  const directory = dirname(file.location.path);
  const paths = [cert, key, ...(clientCa === undefined ? [] : [clientCa])];
  const line = (part: Part, value: string): OriginLine => ({
    path: `${section}.${part}`,
    value,
    origin: file.where([section, part]),
  });
  return {
    tls: { ...texts, files: paths.map((path) => resolve(directory, path)) },
    origins: [
      line('cert', `${cert} (${describe(texts.cert)})`),
      line('key', key),
      ...(clientCa === undefined ? [] : [line('client_ca', clientCa)]),
    ],
    warnings: dateWarnings(`${section}.cert ${cert}`, texts.cert, scope.now),
  };
}

type Part = 'cert' | 'key' | 'client_ca';

/** The texts of a section's files; undefined where something was reported. */
function readFiles(
  section: Section,
  file: CheckedFile,
  { report, reading }: Scope,
): Omit<ListenerTls, 'files'> | undefined {
  const form = file.content[section] ?? {};
  const read = (part: Part): string | undefined => {
    const path = form[part];
    if (path === undefined) return undefined;
    const directory = dirname(file.location.path);
    reading?.(resolve(directory, path));
    const what = `${words[part]} ${path}`;
    // Another user of the machine may run a command without the right to read the key.
    const complain = (message: string): void =>
      report({
        ...file.issue([section, part], message),
        ...(message.includes(unreadable) && { unresolved: true }),
      });
    const text = readPem(path, what, { directory, complain });
    if (text === undefined || text === 'wrong') return undefined;
    const problem = part === 'key' ? keyProblem(text) : certificateProblem(text);
    if (problem === undefined) return text;
    complain(`${what} ${problem}`);
    return undefined;
  };
  const [cert, key, clientCa] = [read('cert'), read('key'), read('client_ca')];
  if (cert === undefined || key === undefined) return undefined;
  if (form.client_ca !== undefined && clientCa === undefined) return undefined;
  if (!isPair(cert, key)) {
    const message = `the private key ${form.key} does not belong to the certificate ${form.cert}`;
    report(file.issue([section, 'key'], message));
    return undefined;
  }
  return { cert, key: new Secret(key), ...(clientCa === undefined ? {} : { clientCa }) };
}

const words = {
  cert: 'the certificate',
  key: 'the private key',
  client_ca: 'the authority',
} as const;

/** Of the message of a file that this user may not read, or that is not there. */
const unreadable = 'cannot be read';

/** What follows the name of the file; undefined where all is well. */
function certificateProblem(pem: string): string | undefined {
  try {
    // The listener reads all certificates of the file, and fails if one of them is broken.
    createSecureContext({ ca: pem });
    return new X509Certificate(pem).raw.length > 0 ? undefined : 'is empty';
  } catch (error) {
    return `is not a certificate (${opensslReason(error)})`;
  }
}

function keyProblem(pem: string): string | undefined {
  if (/ENCRYPTED/.test(pem)) {
    return 'has a passphrase; write it without one: openssl pkey -in KEY -out NEW';
  }
  try {
    createPrivateKey(pem);
    return undefined;
  } catch (error) {
    return `is not a private key (${opensslReason(error)})`;
  }
}

/** OpenSSL's code, e.g. ERR_OSSL_PEM_BAD_BASE64_DECODE: its texts name addresses of functions. */
function opensslReason(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
}

function isPair(cert: string, key: string): boolean {
  return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
}

/** `localhost, 127.0.0.1; until 2027-01-31`. */
function describe(pem: string): string {
  const { subject, subjectAltName, validTo } = new X509Certificate(pem);
  const names = (subjectAltName ?? subject).replaceAll(/\b(?:DNS|IP Address):/g, '');
  return `${names.replaceAll('\n', ', ')}; until ${dayOf(validTo)}`;
}

function dateWarnings(what: string, pem: string, now: number): readonly string[] {
  const { validFrom, validTo } = new X509Certificate(pem);
  if (Date.parse(validFrom) > now) return [`${what} is not valid before ${dayOf(validFrom)}`];
  const left = Date.parse(validTo) - now;
  if (left <= 0) return [`${what} expired on ${dayOf(validTo)}: clients refuse it`];
  return left < soonMs ? [`${what} expires on ${dayOf(validTo)}`] : [];
}

/** OpenSSL writes `Nov 26 23:40:29 2026 GMT`. */
function dayOf(text: string): string {
  return new Date(text).toISOString().slice(0, 10);
}
