/** `tls:` and `admin_tls:`: what is read, and what is said of files that cannot serve (S9). */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { loadSettings } from '../../../src/config/load.ts';
import { needRestart, packSettings, type Settings } from '../../../src/config/settings.ts';
import { type Certificates, makeCertificates, noOpenssl } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { findProgram } from '../../support/server-process.ts';

const hasOpenssl = findProgram(['openssl']) !== undefined;

describe('TLS in gateway.yaml', { skip: hasOpenssl ? false : noOpenssl }, () => {
  let made: Certificates;
  let directory: string;
  before(async () => {
    const certificates = await makeCertificates('someone');
    assert.ok(certificates !== undefined);
    made = certificates;
    directory = temporaryFolder('tls');
    const { server, ca, client } = made;
    const copies = { 'a.crt': server.cert, 'a.key': server.key, 'b.key': client.key, 'ca.crt': ca };
    for (const [name, from] of Object.entries(copies)) copyFileSync(from, join(directory, name));
  });

  function load(yaml: string, secrets: 'required' | 'optional' = 'required'): Promise<Settings> {
    writeFileSync(join(directory, 'gateway.yaml'), yaml, { mode: 0o600 });
    return loadSettings({ flags: {}, env: {}, cwd: directory, knownProviders: new Map(), secrets });
  }

  test('both listeners have their own, with their files and what check shows', async () => {
    const settings = await load(
      'tls: { cert: a.crt, key: a.key }\nadmin_tls: { cert: a.crt, key: a.key, client_ca: ca.crt }\n',
    );
    assert.equal(settings.tls?.cert, readFileSync(join(directory, 'a.crt'), 'utf8'));
    assert.equal(settings.tls?.clientCa, undefined);
    assert.deepEqual(settings.tls?.files, [join(directory, 'a.crt'), join(directory, 'a.key')]);
    assert.equal(settings.adminTls?.files.length, 3);
    const lines = settings.origins.filter(({ path }) => path.includes('tls'));
    assert.match(lines[0]?.value ?? '', /^a\.crt \(localhost; until 20\d\d-\d\d-\d\d\)$/);
    assert.equal(
      lines.map(({ path }) => path).join(),
      'tls.cert,tls.key,admin_tls.cert,admin_tls.key,admin_tls.client_ca',
    );
    assert.equal(lines[0]?.origin, 'gateway.yaml:1');
    // Two days are left of it.
    assert.equal(
      settings.warnings.filter((text) => /tls\.cert a\.crt expires on 20/.test(text)).length,
      2,
    );
    assert.doesNotMatch(JSON.stringify(settings), /PRIVATE KEY/);
    assert.match(packSettings(settings), /PRIVATE KEY/);
  });

  test('each file is named before it is read, so that a renewal during the reading is seen', async () => {
    writeFileSync(join(directory, 'gateway.yaml'), 'tls: { cert: late.crt, key: late.key }\n');
    const read: string[] = [];
    const reading = (file: string): void => {
      read.push(basename(file));
      copyFileSync(join(directory, file.endsWith('.crt') ? 'a.crt' : 'a.key'), file);
    };
    const known = { knownProviders: new Map() };
    const settings = await loadSettings({ flags: {}, env: {}, cwd: directory, ...known, reading });
    assert.deepEqual(read, ['late.crt', 'late.key']);
    assert.equal(settings.tls?.files.length, 2);
  });

  const wrong: readonly (readonly [string, string, string])[] = [
    ['without a key', 'tls: { cert: a.crt }', 'tls: needs key, the path of a PEM file'],
    [
      'a file that is not there',
      'tls: { cert: none.crt, key: a.key }',
      'tls.cert: the file of the certificate none.crt cannot be read (ENOENT)',
    ],
    [
      'a key of another certificate',
      'tls: { cert: a.crt, key: b.key }',
      'tls.key: the private key b.key does not belong to the certificate a.crt',
    ],
    [
      'files that are interchanged',
      'tls: { cert: a.key, key: a.crt }',
      'tls.cert: the certificate a.key is not a certificate (ERR_OSSL_PEM_NO_START_LINE)',
    ],
    [
      'what is no PEM',
      'admin_tls: { cert: gateway.yaml, key: a.key }',
      'admin_tls.cert: the certificate gateway.yaml is not a PEM file',
    ],
    [
      'a broken certificate',
      'tls: { cert: broken.crt, key: a.key }',
      'tls.cert: the certificate broken.crt is not a certificate',
    ],
    [
      'a key with a passphrase',
      'tls: { cert: a.crt, key: sealed.key }',
      'tls.key: the private key sealed.key has a passphrase; write it without one',
    ],
    [
      'a key that everybody can read',
      'tls: { cert: a.crt, key: open.key }',
      'tls.key: the file of the private key open.key is readable by every user of this machine; chmod 600 it',
    ],
    [
      'an authority that is not there',
      'tls: { cert: a.crt, key: a.key, client_ca: gone.crt }',
      'tls.client_ca: the file of the authority gone.crt cannot be read (ENOENT)',
    ],
    [
      'an unknown key',
      'tls: { cert: a.crt, kei: a.key }',
      'tls.kei: unknown key (did you mean "key"?)',
    ],
  ];

  for (const [name, yaml, told] of wrong) {
    test(`${name}: ${told}`, async () => {
      const file = (part: string): string => join(directory, part);
      chmodSync(directory, 0o755);
      writeFileSync(file('broken.crt'), readFileSync(file('a.crt'), 'utf8').slice(0, 300));
      copyFileSync(file('a.key'), file('open.key'));
      chmodSync(file('open.key'), 0o644);
      execFileSync('openssl', [
        'pkey',
        '-in',
        file('a.key'),
        '-aes256',
        '-passout',
        'pass:x',
        '-out',
        file('sealed.key'),
      ]);
      await assert.rejects(load(`${yaml}\n`), (error: Error) => {
        assert.ok(error.message.includes(`gateway.yaml:1: ${told}`), error.message);
        return true;
      });
    });
  }

  test('a command of a user who cannot read the key works without it', async () => {
    const settings = await load('tls: { cert: a.crt, key: none.key }\n', 'optional');
    assert.equal(settings.tls, undefined);
    assert.equal(settings.unresolved[0]?.path, 'tls.key');
  });

  test('TLS on or off, and a certificate of clients, need a restart; another certificate does not', async () => {
    const off = await load('{}\n');
    const on = await load('tls: { cert: a.crt, key: a.key }\n');
    const { client } = made;
    const other = await load(`tls: { cert: ${client.cert}, key: ${client.key} }\n`);
    const clients = await load('tls: { cert: a.crt, key: a.key, client_ca: ca.crt }\n');
    assert.deepEqual(needRestart(off, on), ['tls']);
    assert.deepEqual(needRestart(on, other), []);
    assert.deepEqual(needRestart(on, clients), ['tls']);
  });
});
