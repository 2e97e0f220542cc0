/** How commands reach the admin API of the gateway that runs on this machine. */
import { request as send } from 'node:http';
import { tryParse } from '../json/parse.ts';
import type { Secret } from '../core/secret.ts';
import type { AdminClient } from './command.ts';

export interface HttpAdminOptions {
  /** `http://HOST:PORT` of the admin plane. */
  readonly address: string;
  readonly token: Secret;
}

/** Longer than the store may wait for another process (5 s). */
const timeoutMs = 30_000;

/** A copy of a large store takes minutes. */
const withoutLimit: ReadonlySet<string> = new Set(['/api/backup']);

/** A client for the address and the control token of run.json. */
export function httpAdminClient(options: HttpAdminOptions): AdminClient {
  return {
    request: (method, path, body) =>
      new Promise((resolve, reject) => {
        const payload = body === undefined ? '' : JSON.stringify(body);
        const outgoing = send(new URL(path, options.address), {
          method,
          // One request a command: a kept connection would only keep the command from ending.
          agent: false,
          timeout: withoutLimit.has(path) ? 0 : timeoutMs,
          headers: {
            authorization: `Bearer ${options.token.reveal()}`,
            ...(payload === '' ? {} : { 'content-type': 'application/json' }),
            'content-length': Buffer.byteLength(payload),
          },
        });
        const fail = (why: string): void => {
          reject(new Error(`The gateway's admin API at ${options.address} ${why}.`));
        };
        outgoing.on('timeout', () => outgoing.destroy(new Error('did not answer in time')));
        outgoing.on('error', (error) => fail(`cannot be used: ${error.message}`));
        outgoing.on('response', (response) => {
          const pieces: Buffer[] = [];
          response.on('data', (piece: Buffer) => pieces.push(piece));
          response.on('error', (error) => fail(`broke off its answer: ${error.message}`));
          response.on('end', () => {
            const text = Buffer.concat(pieces).toString('utf8');
            resolve({ status: response.statusCode ?? 0, body: tryParse(text) });
          });
        });
        outgoing.end(payload);
      }),
  };
}
