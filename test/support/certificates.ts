/** Certificates for servers of tests, made by openssl: an authority, a server by name and address, a client. */
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, notRoot, runToEnd, serverFolder } from './server-process.ts';

export const noOpenssl =
  'openssl is not on this machine (apt-get install openssl): TLS is left out';

export interface Certificates {
  /** PEM files, readable by the servers. */
  readonly ca: string;
  readonly server: { readonly cert: string; readonly key: string };
  readonly client: { readonly cert: string; readonly key: string };
  /** Of another authority. */
  readonly stranger: string;
}

/**
 * Undefined where there is no openssl.
 * @param client the name that its certificate is for
 */
export async function makeCertificates(client: string): Promise<Certificates | undefined> {
  const openssl = findProgram(['openssl']);
  if (openssl === undefined) return undefined;
  const folder = serverFolder('tls');
  const maker = new Maker(openssl, folder);
  const ca = await maker.authority('ca');
  const stranger = await maker.authority('stranger');
  const server = await maker.signed('server', ['/CN=localhost', 'subjectAltName=DNS:localhost']);
  const own = await maker.signed('client', [`/CN=${client}`, 'subjectAltName=DNS:client']);
  return { ca, stranger, server, client: own };
}

class Maker {
  readonly #openssl: string;
  readonly #folder: string;

  constructor(openssl: string, folder: string) {
    this.#openssl = openssl;
    this.#folder = folder;
  }

  async authority(name: string): Promise<string> {
    const { cert, key } = this.#files(name);
    const form = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    await this.#run([
      'req',
      ...form,
      '-keyout',
      key,
      '-out',
      cert,
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
    ]);
    return cert;
  }

  /** By the authority `ca`. */
  async signed(
    name: string,
    [subject, names]: readonly [string, string],
  ): Promise<{ readonly cert: string; readonly key: string }> {
    const { cert, key, request, extensions } = this.#files(name);
    const ca = this.#files('ca');
    const form = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    await this.#run(['req', ...form, '-keyout', key, '-out', request, '-subj', subject]);
    writeFileSync(extensions, `${names}\n`, { mode: 0o644 });
    const by = ['-CA', ca.cert, '-CAkey', ca.key, '-CAcreateserial', '-days', '2'];
    await this.#run(['x509', '-req', '-in', request, '-out', cert, ...by, '-extfile', extensions]);
    chmodSync(key, 0o600);
    const owner = notRoot();
    if (owner !== undefined) chownSync(key, owner.uid, owner.gid);
    return { cert, key };
  }

  #files(name: string) {
    const path = (ending: string): string => join(this.#folder, `${name}.${ending}`);
    return { cert: path('pem'), key: path('key'), request: path('csr'), extensions: path('ext') };
  }

  #run(args: readonly string[]): Promise<void> {
    return runToEnd(this.#openssl, args);
  }
}
