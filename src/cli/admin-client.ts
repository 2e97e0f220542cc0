/** How commands reach the admin API of the gateway that runs on this machine. */
import { X509Certificate } from 'node:crypto';
import { request as sendEncrypted, type RequestOptions } from 'node:https';
import { nodeHttp } from '../core/node-http.ts';
import { tryParse } from '../json/parse.ts';
import type { Secret } from '../core/secret.ts';
import type { AdminClient } from './command.ts';

export interface HttpAdminOptions {
  /** `http://HOST:PORT` or `https://HOST:PORT` of the admin plane. */
  readonly address: string;
  /** Absent: only requests that need no token are sent. */
  readonly token?: Secret;
  /** PEM of the certificate that the admin plane must show; absent = one that Node trusts, for the host. */
  readonly certificate?: string | undefined;
  /** PEM texts of a certificate of this client, where the admin plane requests one. */
  readonly own?: { readonly cert: string; readonly key: Secret } | undefined;
  readonly timeoutMs?: number;
}

/** Longer than the store may wait for another process (5 s). */
const defaultTimeoutMs = 30_000;

/** A copy of a large store takes minutes. */
const withoutLimit: ReadonlySet<string> = new Set(['/api/backup']);

/** A client for the address and the control token of run.json. */
export function httpAdminClient(options: HttpAdminOptions): AdminClient {
  const { address, token, timeoutMs = defaultTimeoutMs } = options;
  const isEncrypted = address.startsWith('https:');
  const tls = isEncrypted ? tlsOptions(options) : {};
  const send = isEncrypted ? sendEncrypted : nodeHttp.request;
  return {
    request: (method, path, body) =>
      new Promise((resolve, reject) => {
        const payload = body === undefined ? '' : JSON.stringify(body);
        const outgoing = send(new URL(path, address), {
          ...tls,
          method,
          // One request a command: a keep-alive connection would only keep the command from ending.
          agent: false,
          timeout: withoutLimit.has(path) ? 0 : timeoutMs,
          headers: {
            ...(token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` }),
            ...(payload === '' ? {} : { 'content-type': 'application/json' }),
            'content-length': Buffer.byteLength(payload),
          },
        });
        const fail = (why: string): void => {
          reject(new Error(`The gateway's admin API at ${address} ${why}.`));
        };
        outgoing.on('timeout', () => outgoing.destroy(new Error('did not answer in time')));
        outgoing.on('error', (error) => fail(`cannot be used: ${error.message}${hint(error)}`));
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

/** The very certificate is trusted, whatever names it is for: the gateway's own files say that it is the gateway's. */
function tlsOptions({ certificate, own }: HttpAdminOptions): RequestOptions {
  return {
    ...(certificate === undefined ? {} : pinnedTo(certificate)),
    ...(own === undefined ? {} : { cert: own.cert, key: own.key.reveal() }),
  };
}

/** The file may have the certificates between it and its authority, too. What else these signed is another server's. */
function pinnedTo(certificate: string): RequestOptions {
  return {
    ca: certificate,
    allowPartialTrustChain: true,
    checkServerIdentity: (_host, { raw }) =>
      new X509Certificate(certificate).raw.equals(raw)
        ? undefined
        : new Error('it shows another certificate than the files of the gateway have'),
  };
}

function hint(error: NodeJS.ErrnoException): string {
  return error.code === 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'
    ? '. Set MODEL_GATEWAY_CLIENT_CERT and MODEL_GATEWAY_CLIENT_KEY to PEM files that admin_tls.client_ca accepts'
    : '';
}
