/**
 * One small request to a token server or to the metadata service of a machine: directly, never through a proxy, no
 * redirect followed, bounded in time and size. Not by the gateway's HTTP client: that one refuses link-local addresses,
 * and only a config that names the identity of the machine may ask one.
 */
import type { IncomingHttpHeaders, RequestOptions } from 'node:http';
import { request as requestSecure } from 'node:https';
import { nodeHttp } from '../../core/node-http.ts';
import { tryParseObject } from '../../json/parse.ts';
import type { JsonObject } from '../../json/value.ts';

export interface TokenRequest {
  readonly url: URL;
  readonly headers?: { readonly [name: string]: string };
  /** Sent as a form by POST. */
  readonly form?: { readonly [name: string]: string };
  /** Sent by POST as it is, of the type that `headers` say; absent, and without `form` = GET. */
  readonly text?: string;
  /** Absent = POST where something is sent, else GET. */
  readonly method?: 'PUT';
  /** Default 10 s. */
  readonly timeoutMs?: number;
}

export interface TokenAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** `{}` for what is no JSON object. */
  readonly body: JsonObject;
}

const usualTimeoutMs = 10_000;
const maxBytes = 64 * 1024;

/** @throws Error that says why no answer came; the caller knows what was requested. */
export function askForToken({
  url,
  headers,
  form,
  text,
  method,
  timeoutMs = usualTimeoutMs,
}: TokenRequest): Promise<TokenAnswer> {
  const body = form === undefined ? text : new URLSearchParams(form).toString();
  const options: RequestOptions = {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    // A connection of its own: Node's shared ones may go through a proxy of the environment.
    agent: false,
    headers: {
      accept: 'application/json',
      ...(body === undefined
        ? {}
        : {
            ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
            'content-length': String(Buffer.byteLength(body)),
          }),
      ...headers,
    },
  };
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestSecure : nodeHttp.request;
    const outgoing = send(url, options, (incoming) => {
      const pieces: Buffer[] = [];
      let length = 0;
      incoming.on('data', (piece: Buffer) => {
        length += piece.length;
        if (length > maxBytes) fail(new Error('the answer is longer than 64 KiB'));
        else pieces.push(piece);
      });
      incoming.on('error', fail);
      incoming.on('end', () => {
        clearTimeout(timer);
        const { statusCode: status = 0, headers: received } = incoming;
        const answer = Buffer.concat(pieces).toString('utf8');
        resolve({ status, headers: received, text: answer, body: tryParseObject(answer) ?? {} });
      });
    });
    const fail = (error: unknown): void => {
      clearTimeout(timer);
      reject(inWords(error));
      outgoing.destroy();
    };
    // Until the last byte: a service that sends a byte at a time is slow, too.
    const timer = setTimeout(
      () => fail(new Error(`no answer within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    outgoing.on('error', fail);
    outgoing.end(body);
  });
}

function inWords(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const code = 'code' in error ? String(error.code) : '';
  if (code === '') return error;
  return new Error(`the connection failed (${code})`, { cause: error });
}

/** Plain HTTP is for this machine only: tests, and sidecars that hand out tokens. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
