/** `GET /metrics` of the admin listener: in the format and the encoding that the scraper asks for. */
import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { contentTypes, formatFor, type Format } from '../observe/metrics/exposition.ts';
import { errorAnswer, type AdminAnswer } from './admin-route.ts';

export const metricsPath = '/metrics';

export interface MetricsSource {
  /** Whether this token, which is not the admin's, may read metrics. */
  opens(token: string): boolean;
  text(format: Format): Promise<string>;
}

const compress = promisify(gzip);
/** Smaller ones are sent as they are. */
const compressedFrom = 1024;

export async function metricsAnswer(
  source: MetricsSource,
  method: string,
  headers: IncomingHttpHeaders,
): Promise<AdminAnswer> {
  if (method !== 'GET' && method !== 'HEAD') {
    return { ...errorAnswer(405, 'This address takes GET only.'), allow: 'GET, HEAD' };
  }
  const format = formatFor(headers.accept);
  const plain = Buffer.from(await source.text(format));
  const gzipped = plain.length >= compressedFrom && takesGzip(headers['accept-encoding']);
  return {
    status: 200,
    body: {},
    bytes: {
      type: contentTypes[format],
      content: gzipped ? await compress(plain, { level: 1 }) : plain,
      ...(gzipped ? { encoding: 'gzip' } : {}),
    },
  };
}

function takesGzip(accepted: string | string[] | undefined): boolean {
  return String(accepted ?? '')
    .split(',')
    .map((each) => each.trim().toLowerCase().replaceAll(' ', ''))
    .some((each) => each === 'gzip' || (each.startsWith('gzip;q=') && Number(each.slice(7)) > 0));
}
