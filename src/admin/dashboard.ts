/** The built dashboard in memory: its files by address, compressed where the build did so. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';

export interface DashboardFile {
  readonly type: string;
  readonly bytes: Buffer;
  /** The same, compressed; undefined if that saves little. */
  readonly gzip: Buffer | undefined;
  /** Of `bytes`, for an ETag. */
  readonly hash: string;
}

export interface DashboardFiles {
  /** The file of an address such as `/assets/index-3fa9.js`; undefined when there is none. */
  file(path: string): DashboardFile | undefined;
  /** The HTML of all pages; undefined: it is not built. */
  index(): DashboardFile | undefined;
}

const types: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.md', 'text/plain; charset=utf-8'],
]);

const indexPath = '/index.html';

/**
 * Files of a folder, read when the first is requested, and again when the folder was built anew. While a build replaces
 * the folder, the files of the build before are served.
 * @param folder `dist/dashboard`; it need not be there.
 */
export function dashboardFiles(folder: string): DashboardFiles {
  let files: ReadonlyMap<string, DashboardFile> = new Map();
  let builtAt: number | undefined;
  const current = (): ReadonlyMap<string, DashboardFile> => {
    const found = statSync(join(folder, indexPath), { throwIfNoEntry: false })?.mtimeMs;
    if (found === undefined || found === builtAt) return files;
    try {
      files = readFiles(folder);
      builtAt = found;
    } catch (error) {
      // The folder was replaced meanwhile: the next request reads it.
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
    return files;
  };
  return {
    file: (path) => current().get(path),
    index: () => current().get(indexPath),
  };
}

function readFiles(folder: string): ReadonlyMap<string, DashboardFile> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const known = new Set(names);
  const files = new Map<string, DashboardFile>();
  for (const name of names) {
    const type = types.get(extname(name));
    if (type === undefined) continue;
    const bytes = readFileSync(join(folder, name));
    const gzip = known.has(`${name}.gz`) ? readFileSync(join(folder, `${name}.gz`)) : undefined;
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    files.set(`/${name.replaceAll('\\', '/')}`, { type, bytes, gzip, hash });
  }
  return files;
}

// The dashboard on the admin listener: static files that are public, since they contain no data. Data comes
// from the admin API, which authenticates (S12).

/** Their names change with their content. */
const cachedForever = 'public, max-age=31536000, immutable';
/** Revalidated each time; an unchanged file is answered with 304. */
const revalidated = 'no-cache';

const notBuilt = Buffer.from(
  [
    '<!doctype html>',
    '<html lang="en">',
    '<title>Model Gateway: no dashboard</title>',
    '<h1>The dashboard is not built</h1>',
    '<p>The gateway and its admin API run. In the folder of the project, run',
    '<code>npm run build:dashboard</code>, then reload this page.</p>',
    '<p>An install with <code>--omit=dev</code> lacks the tools for it: stop the gateway, run',
    '<code>npm ci</code>, and start it again.</p>',
    '</html>',
    '',
  ].join('\n'),
);

/** Addresses for programs, which never are pages, whatever the request accepts. */
const notPages = /^\/(api|metrics|healthz|v1|assets)(\/|$)/;

/** Answers when the address is one of the dashboard's; otherwise false, and nothing is sent. */
export function sendDashboard(
  files: DashboardFiles,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const { method, url = '/' } = request;
  if (method !== 'GET' && method !== 'HEAD') return false;
  const queryAt = url.indexOf('?');
  const path = queryAt === -1 ? url : url.slice(0, queryAt);
  const isPage = path === '/' || isPageOf(path, request);
  // Before the files are examined: most requests are the API's.
  if (!isPage && /^\/(api|metrics|healthz)(\/|$)/.test(path)) return false;
  const file = isPage ? files.index() : files.file(path);
  if (file !== undefined)
    sendFile(file, path.startsWith('/assets/') ? cachedForever : revalidated, {
      request,
      response,
    });
  else if (isPage) {
    response.writeHead(404, {
      ...pageSafety,
      'content-type': 'text/html; charset=utf-8',
      'content-length': notBuilt.length,
      'cache-control': 'no-store',
    });
    response.end(request.method === 'HEAD' ? undefined : notBuilt);
    request.resume();
  } else return false;
  return true;
}

/** Any other address that a person opens. The script finds the page of the address. */
function isPageOf(path: string, { headers }: IncomingMessage): boolean {
  if (notPages.test(path) || path.includes('.')) return false;
  return headers.accept?.includes('text/html') === true;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

function sendFile(file: DashboardFile, caching: string, { request, response }: Exchange): void {
  const { headers, method } = request;
  const gzip = takesGzip(headers['accept-encoding']) ? file.gzip : undefined;
  const bytes = gzip ?? file.bytes;
  const etag = gzip === undefined ? `"${file.hash}"` : `"${file.hash}-gz"`;
  const about = { ...pageSafety, etag, 'cache-control': caching, vary: 'accept-encoding' };
  // A proxy that compresses makes tags weak, and weak ones are the same here (RFC 9110 §13.1.2).
  const known = headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (known?.includes(etag) === true) {
    response.writeHead(304, about).end();
  } else {
    response.writeHead(200, {
      ...about,
      'content-type': file.type,
      'content-length': bytes.length,
      ...(gzip === undefined ? {} : { 'content-encoding': 'gzip' }),
    });
    response.end(method === 'HEAD' ? undefined : bytes);
  }
  request.resume();
}

/** `gzip`, with any weight but 0. */
function takesGzip(accepted: string | string[] | undefined): boolean {
  const choices = String(accepted ?? '').split(',');
  return choices.some((choice) => {
    const [coding = '', weight = ''] = choice.split(';');
    return coding.trim() === 'gzip' && !/^\s*q=0(\.0*)?\s*$/.test(weight);
  });
}

// Headers of every answer of the admin listener (S12). Errors and JSON carry them, too: a person may open
// any address, and names and texts in an answer must not run there either.

/** Word for word that of S12, and no sink of text that runs (Trusted Types). */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export const pageSafety: { readonly [name: string]: string } = {
  'content-security-policy': contentSecurityPolicy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};
