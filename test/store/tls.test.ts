/** TLS to PostgreSQL and Redis, with an authority of one's own, as docs/operator/storage.md says it is set up. */
import assert from 'node:assert/strict';
import { after, describe, it, test } from 'node:test';
import { readRedis } from '../../src/config/storage.ts';
import { openRedis } from '../../src/store/counters/redis-client.ts';
import { makeCertificates, noOpenssl, type Certificates } from '../support/certificates.ts';
import { openTestStore, until } from '../support/postgres-store.ts';
import { noPostgres, postgresPassword, startPostgres } from '../support/postgres.ts';
import { freePort } from '../support/server-process.ts';
import { noRedis, redisPassword, startRedis } from '../support/redis.ts';
import { keyRecord } from '../unit/store/call-rows.ts';

const certificates = await makeCertificates('gateway');
if (certificates === undefined) test(noOpenssl, () => {});
else {
  await postgresTls(certificates);
  await redisTls(certificates);
}

async function postgresTls({ ca, stranger, server, client }: Certificates): Promise<void> {
  const files = [`ssl_cert_file=${server.cert}`, `ssl_key_file=${server.key}`, `ssl_ca_file=${ca}`];
  const postgres = await startPostgres(['ssl=on', ...files]);
  if (postgres === undefined) {
    test(noPostgres, () => {});
    return;
  }
  after(() => postgres.close());
  const url = (database: string, host: string, options: Record<string, string>): string => {
    const query = new URLSearchParams(options).toString();
    return `postgres://gateway:${postgresPassword}@${host}:${postgres.port}/${database}?${query}`;
  };
  const name = new URL(await postgres.makeDatabase()).pathname.slice(1);

  describe('PostgreSQL over TLS', () => {
    const open: readonly (readonly [string, string, Record<string, string>])[] = [
      ['verify-full by name', 'localhost', { sslmode: 'verify-full', sslrootcert: ca }],
      ['verify-ca by address', '127.0.0.1', { sslmode: 'verify-ca', sslrootcert: ca }],
      [
        'with a certificate of its own',
        'localhost',
        { sslmode: 'require', sslrootcert: ca, sslcert: client.cert, sslkey: client.key },
      ],
    ];
    for (const [how, host, options] of open) {
      it(`is used: ${how}`, async () => {
        const opened = await openTestStore(url(name, host, options));
        try {
          assert.equal(opened.store.server.up, true, opened.log.join('\n'));
          await opened.store.keys.add(keyRecord(`key ${how}`));
          const rows = await postgres.query(`SELECT DISTINCT s.ssl, s.client_dn FROM pg_stat_ssl s
            JOIN pg_stat_activity a USING (pid) WHERE a.application_name LIKE 'model-gateway%'`);
          const dn = options['sslcert'] === undefined ? null : '/CN=gateway';
          assert.deepEqual(rows, [{ ssl: true, client_dn: dn }]);
        } finally {
          await opened.close();
        }
      });
    }

    const shut: readonly (readonly [string, string, Record<string, string>])[] = [
      ['another authority', 'localhost', { sslmode: 'verify-full', sslrootcert: stranger }],
      ['no authority', 'localhost', { sslmode: 'verify-full' }],
      ['another name', '127.0.0.1', { sslmode: 'verify-full', sslrootcert: ca }],
    ];
    for (const [how, host, options] of shut) {
      it(`is refused, and says why: ${how}`, async () => {
        const opened = await openTestStore(url(name, host, options)).catch(String);
        if (typeof opened === 'string') {
          assert.match(opened, /certificate|altnames/i);
          assert.ok(!opened.includes(postgresPassword));
          return;
        }
        try {
          assert.equal(opened.store.server.up, false);
          assert.match(String(opened.store.server.failure), /certificate|altnames/i);
        } finally {
          await opened.close();
        }
      });
    }
  });
}

async function redisTls({ ca, stranger, server, client }: Certificates): Promise<void> {
  const tlsPort = await freePort();
  const files = ['--tls-cert-file', server.cert, '--tls-key-file', server.key];
  const asked = ['--tls-ca-cert-file', ca, '--tls-auth-clients', 'yes'];
  const redis = await startRedis(['--tls-port', String(tlsPort), ...files, ...asked]).catch(String);
  if (redis === undefined || typeof redis === 'string') {
    const why = redis === undefined ? noRedis : 'this Redis was built without TLS: it is left out';
    test(why, () => {});
    return;
  }
  after(() => redis.close());
  const connect = async (host: string, options: Record<string, string>): Promise<string> => {
    const query = new URLSearchParams(options).toString();
    const text = `rediss://:${redisPassword}@${host}:${tlsPort}/0?${query}`;
    const complain = (message: string): void => assert.fail(message);
    const address = readRedis(text, { directory: '/', complain });
    assert.ok(address !== undefined);
    const redisClient = await openRedis(address, Math.random);
    let failure = '';
    redisClient.on('error', (error: Error) => (failure = error.message));
    try {
      await until(() => redisClient.status === 'ready' || failure !== '', 'it answers');
      return redisClient.status === 'ready' ? await redisClient.ping() : failure;
    } finally {
      redisClient.disconnect();
    }
  };
  const own = { cert: client.cert, key: client.key };

  describe('Redis over TLS', () => {
    it('is used with both certificates', async () => {
      assert.equal(await connect('localhost', { ca, ...own }), 'PONG');
    });
    it('is refused with another authority, another name, or without the certificate it asks for', async () => {
      assert.match(await connect('localhost', { ca: stranger, ...own }), /certificate/i);
      assert.match(await connect('127.0.0.1', { ca, ...own }), /altnames|certificate/i);
      assert.notEqual(await connect('localhost', { ca }), 'PONG');
    });
  });
}
