/**
 * The dashboard on the admin listener: files that everybody may read, for they know nothing. What they
 * show comes from the admin API, which asks who is there (S12).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DashboardFile, DashboardFiles } from './dashboard-files.ts';
import { pageSafety } from './page-safety.ts';

/** Their names change with their content. */
const kept = 'public, max-age=31536000, immutable';
/** Asked for again each time; an unchanged one is answered in a line. */
const askedAgain = 'no-cache';

const notBuilt = Buffer.from(
  [
    '<!doctype html>',
    '<html lang="en">',
    '<title>Model Gateway: no dashboard</title>',
    '<h1>The dashboard is not built</h1>',
    '<p>The gateway runs, its admin API too. In the folder of the project run',
    '<code>npm run build:dashboard</code>, then reload this page.</p>',
    '</html>',
    '',
  ].join('\n'),
);

/** Addresses of programs: no page is behind them, whatever they accept. */
const notPages = /^\/(api|metrics|healthz|v1|assets)(\/|$)/;

/** Answers when the address is one of the dashboard's; otherwise false, and nothing is sent. */
export function sendDashboard(
  files: DashboardFiles,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const { method, url = '/' } = request;
  if (method !== 'GET' && method !== 'HEAD') return false;
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const isPage = path === '/' || isPageOf(path, request);
  // Before the files are looked at: most requests are the API's.
  if (!isPage && /^\/(api|metrics|healthz)(\/|$)/.test(path)) return false;
  const file = isPage ? files.index() : files.file(path);
  if (file !== undefined)
    sendFile(file, path.startsWith('/assets/') ? kept : askedAgain, { request, response });
  else if (isPage) sendNotBuilt(request, response);
  else return false;
  return true;
}

/** Any other address that a person opens: which page it is, the page itself knows. */
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
  if (headers['if-none-match']?.split(/,\s*/).includes(etag) === true) {
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

function sendNotBuilt(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(404, {
    ...pageSafety,
    'content-type': 'text/html; charset=utf-8',
    'content-length': notBuilt.length,
    'cache-control': 'no-store',
  });
  response.end(request.method === 'HEAD' ? undefined : notBuilt);
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
