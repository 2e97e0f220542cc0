import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { test } from 'node:test';
import { inspect } from 'node:util';
import type { SharedStorage, StorageSettings } from '../../../src/config/settings.ts';
import { scene } from './scene.ts';

const canary = 'canary-77aa';

function shared(storage: StorageSettings): SharedStorage {
  assert.equal(storage.database, 'postgres');
  return storage;
}

test('without anything the database is SQLite; the file, the variable and the flag say otherwise', async () => {
  const { load } = scene('storage: memory\n');
  assert.deepEqual((await scene().load()).storage, { database: 'sqlite' });
  assert.deepEqual((await load()).storage, { database: 'memory' });
  const env = { MODEL_GATEWAY_STORAGE: 'sqlite' };
  assert.deepEqual((await load({ env })).storage, { database: 'sqlite' });
  const settings = await load({ env, flags: { storage: 'postgres://db/gateway' } });
  const origins = settings.origins.filter(({ path }) => path === 'storage');
  assert.deepEqual(origins, [
    { path: 'storage', value: 'postgres://db:5432/gateway', origin: 'flag --storage' },
  ]);
});

test('one text, two texts, a list and a mapping say the same', async () => {
  const database = 'postgres://gateway:hidden@localhost:5433/gw';
  const counters = 'redis://:hidden@127.0.0.1:6380/2';
  const forms = [
    `storage: ${database} ${counters}\n`,
    `storage: ["${database}", "${counters}"]\n`,
    `storage:\n  database: ${database}\n  counters: ${counters}\n`,
  ];
  for (const form of forms) {
    const settings = await scene(form).load();
    const { postgres, redis, tenant } = shared(settings.storage);
    assert.equal(postgres.host, 'localhost');
    assert.equal(postgres.port, 5433);
    assert.equal(postgres.user, 'gateway');
    assert.equal(postgres.password?.reveal(), 'hidden');
    assert.equal(postgres.database, 'gw');
    assert.equal(redis?.port, 6380);
    assert.equal(redis?.database, '2');
    assert.equal(redis?.user, undefined);
    assert.equal(redis?.password?.reveal(), 'hidden');
    assert.equal(tenant, 'default');
    assert.deepEqual(settings.warnings, []);
  }
  const settings = await scene(
    `storage:\n  database: ${database}\n  counters: ${counters}\n  tenant: blue\n  on_store_loss: open\n`,
  ).load();
  const lines = settings.origins.filter(({ path }) => path.startsWith('storage'));
  assert.deepEqual(
    lines.map(({ path, value, origin }) => `${path} ${value} ${origin}`),
    [
      'storage.database postgres://localhost:5433/gw gateway.yaml:2',
      'storage.counters redis://127.0.0.1:6380/2 gateway.yaml:3',
      'storage.tenant blue gateway.yaml:4',
      'storage.on_store_loss open gateway.yaml:5',
    ],
  );
});

test('user and password may hold anything once it is encoded; a Unix socket is a host', async () => {
  const text = 'postgresql://a%40b:p%2Fw%3A%23%25@[::1]/gw';
  const { postgres } = shared((await scene(`storage: ${text}\n`).load()).storage);
  assert.equal(postgres.host, '::1');
  assert.equal(postgres.port, 5432);
  assert.equal(postgres.user, 'a@b');
  assert.equal(postgres.password?.reveal(), 'p/w:#%');
  assert.equal(postgres.shown, 'postgres://[::1]:5432/gw');
  for (const socket of ['postgres:///gw?host=/run/pg', 'postgres://%2Frun%2Fpg/gw']) {
    const settings = await scene(`storage: ${socket}\n`).load();
    assert.equal(shared(settings.storage).postgres.host, '/run/pg');
    assert.deepEqual(settings.warnings, []);
  }
});

test('S19: TLS is asked for by the address, and always verified', async () => {
  const { load, write } = scene(`storage:
  database: postgres://db.internal/gw?sslmode=verify-ca&sslrootcert=ca.pem
  counters: rediss://cache.internal?ca=ca.pem&cert=client.pem&key=client.key
`);
  write('ca.pem', '-----BEGIN CERTIFICATE-----\nca\n');
  write('client.pem', '-----BEGIN CERTIFICATE-----\nclient\n');
  chmodSync(write('client.key', `-----BEGIN PRIVATE KEY-----\n${canary}\n`), 0o600);
  const settings = await load();
  const { postgres, redis } = shared(settings.storage);
  assert.equal(postgres.tls?.checkHost, false);
  assert.match(postgres.tls?.ca ?? '', /ca/);
  assert.equal(redis?.tls?.checkHost, true);
  assert.match(redis?.tls?.key?.reveal() ?? '', new RegExp(canary));
  assert.deepEqual(settings.warnings, []);
  assert.ok(!inspect(settings, { depth: 20 }).includes(canary));
  const required = await scene('storage: postgres://db.internal/gw?sslmode=require\n').load();
  assert.equal(shared(required.storage).postgres.tls?.checkHost, true);
});

test('a way that everybody on it can read is warned of', async () => {
  const settings = await scene('storage: postgres://db.internal/gw redis://cache\n').load();
  assert.deepEqual(settings.warnings, [
    'storage postgres://db.internal:5432/gw: the connection is not encrypted; add sslmode=verify-full to the address',
    'storage redis://cache:6379/0: the connection is not encrypted; use rediss://',
  ]);
});

test('S4: no form of printing the settings shows a password of the storage', async () => {
  const text = `postgres://me:${canary}@localhost/gw redis://:${canary}@localhost`;
  const settings = await scene('storage: ${STORAGE}\n').load({ env: { STORAGE: text } });
  assert.equal(shared(settings.storage).postgres.password?.reveal(), canary);
  const printed = [JSON.stringify(settings), inspect(settings, { depth: 20 })].join('\n');
  assert.ok(!printed.includes(canary));
});

const place = 'gateway.yaml:1: storage';
const example = 'postgres://USER:PASSWORD@HOST:5432/DATABASE';
const encoding = 'in names and passwords write : / ? # @ and % as %3A %2F %3F %23 %40 and %25';
const notPostgres = `is not the address of a PostgreSQL server: ${example}; ${encoding}`;
const options = 'has an unknown option after the ?; known options:';

const mistakes: readonly (readonly [name: string, yaml: string, message: string])[] = [
  [
    'another database',
    'storage: mysql://me@h/db',
    `${place}: expected sqlite, memory or ${example}`,
  ],
  [
    'Redis as the database',
    'storage: redis://h',
    `${place}: expected sqlite, memory or ${example} first: Redis keeps counters only`,
  ],
  ['no database', 'storage: postgres://me@h', `${place}: ${notPostgres}`],
  ['no host', 'storage: postgres:///db', `${place}: ${notPostgres}`],
  ['a sharp password', `storage: "postgres://me:p#${canary}@h/db"`, `${place}: ${notPostgres}`],
  ['a slash in it', `storage: "postgres://me:p/${canary}@h/db"`, `${place}: ${notPostgres}`],
  [
    'a question mark in it',
    `storage: "postgres://me:1?${canary}@h/db"`,
    `${place}: ${notPostgres}`,
  ],
  [
    'an unknown option',
    'storage: postgres://me@h/db?ssl=true',
    `${place}: ${options} host, sslmode, sslrootcert, sslcert, sslkey`,
  ],
  [
    'TLS that can be taken out',
    'storage: postgres://me@h/db?sslmode=prefer',
    `${place}: sslmode is one of disable, verify-ca, verify-full and require (verified too)`,
  ],
  [
    'a missing authority',
    'storage: postgres://me@h/db?sslmode=verify-full&sslrootcert=none.pem',
    `${place}: the file of the certificate of the authority cannot be read (ENOENT)`,
  ],
  [
    'counters of SQLite',
    'storage: { database: sqlite, counters: "redis://h" }',
    `${place}.counters: applies only to a postgres:// database`,
  ],
  [
    'what SQLite cannot lose',
    'storage: { database: sqlite, on_store_loss: open }',
    `${place}.on_store_loss: applies only to a postgres:// database`,
  ],
  [
    'counters elsewhere',
    'storage: { database: "postgres://localhost/db", counters: "memcached://h" }',
    `${place}.counters: expected redis://USER:PASSWORD@HOST:6379/0 (rediss:// with TLS)`,
  ],
  [
    'three addresses',
    'storage: postgres://localhost/db redis://localhost redis://localhost',
    `${place}: takes two addresses at most: the database and the counters`,
  ],
  [
    'a database of Redis that is not a number',
    'storage: ["postgres://localhost/db", "redis://localhost/db"]',
    `${place}[1]: is not the address of a Redis or Valkey server: redis://USER:PASSWORD@HOST:6379/0; ${encoding}`,
  ],
  [
    'TLS options without TLS',
    'storage: postgres://localhost/db redis://localhost?ca=a.pem',
    `${place}: has TLS options, which need rediss://`,
  ],
  [
    'half a client certificate',
    'storage: postgres://me@h/db?sslmode=require&sslcert=a.pem',
    `${place}: names only one of the client certificate and its key; both are needed`,
  ],
];

for (const [name, yaml, message] of mistakes) {
  test(`N3: storage: ${name}`, async () => {
    const lines = await scene(`${yaml}\n`).errors();
    assert.equal(lines.join('\n'), message);
  });
}

test('N3: a mistake in the flag or the variable names it', async () => {
  const { errors } = scene();
  assert.deepEqual(await errors({ flags: { storage: 'mongo' } }), [
    `--storage: expected sqlite, memory or ${example}`,
  ]);
  assert.deepEqual(await errors({ env: { MODEL_GATEWAY_STORAGE: `postgres://${canary}` } }), [
    `MODEL_GATEWAY_STORAGE: ${notPostgres}`,
  ]);
});
