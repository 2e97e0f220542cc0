/** G15: edits of the config under running streams; what is wrong is refused and the old config stays. */
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { start } from '../../src/compose/start.ts';
import { Instance } from '../cluster/instance.ts';
import { makeCertificates, noOpenssl } from '../support/certificates.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/postgres-store.ts';
import { findProgram } from '../support/server-process.ts';
import { ProgramRun } from '../support/program-run.ts';
import { type ClientDialect, clientDialects } from '../support/dialects.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { brokenness, pacedOutcome, scriptPaced, scriptSlow, stream } from './streams.ts';

let upstream: ScriptedUpstream;
let instance: Instance;
before(async () => {
  upstream = await ScriptedUpstream.start();
  instance = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    config: { timeouts: { idle: '1h' } },
  });
});
after(async () => {
  await instance.stop();
  await upstream.close();
});

const streams = Number(process.env['RELOAD_STREAMS'] ?? '60');

/** As a whole: what was emptied to be written is a config as well. */
function write(text: string): void {
  const file = join(instance.directory, 'gateway.yaml');
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** A config in which the route `current` leads to a model of this number, by a provider of its own. */
function edition(number: number): string {
  const up = { dialect: 'openai-chat', base_url: `http://127.0.0.1:${upstream.port}/v1` };
  return JSON.stringify({
    storage: 'sqlite',
    drain: { wait: '0s' },
    providers: { up: { ...up, api_key: `key-${number}` }, [`extra-${number}`]: up },
    models: { current: `up/edition-${number}` },
    timeouts: { idle: `${50 + number}s` },
  });
}

const wrong = [
  'providers: [',
  'providers:\n  up:\n    dialect: openai-chat\n',
  'limits: { streams: many }\n',
  'nonsense: true\n',
];

test(`G15 ${streams} streams live through 12 editions and 4 wrong ones, and each call finds the edition that holds`, async (t) => {
  const { key } = await instance.makeKey();
  let isOver = false;
  scriptPaced(upstream, 'slow', () => isOver);
  let begun = 0;
  let arrived = 0;
  const running = Array.from({ length: streams }, async (_, i) => {
    const dialect: ClientDialect = clientDialects[i % clientDialects.length] ?? 'chat';
    let first = true;
    const onData = (): void => {
      arrived += 1;
      if (first) begun += 1;
      first = false;
    };
    return { dialect, reply: await stream({ instance, key, dialect, model: 'up/slow', onData }) };
  });
  await until(() => begun === streams, 'all have begun');
  const allBegun = performance.now();

  for (let number = 1; number <= 12; number += 1) {
    const model = `edition-${number}`;
    scriptSlow(upstream, model, () => Promise.resolve());
    write(edition(number));
    // The three ways in which an edit is found: by itself, by a signal, by the admin API.
    if (number % 3 === 1) instance.signal('SIGHUP');
    if (number % 3 === 2) assert.equal((await instance.admin('POST', '/api/reload')).status, 200);
    // Half a second of events in each stream: each edition comes into the middle of them.
    const enough = arrived + 10 * streams;
    const text = wrong[number % wrong.length] ?? '';
    await until(async () => {
      const reply = await stream({ instance, key, dialect: 'chat', model: 'current' });
      return reply.headers['x-gateway-target'] === `up/${model}`;
    }, `edition ${number} holds`);
    await until(() => arrived >= enough, 'the streams go on');
    if (number % 3 !== 0) continue;
    write(text);
    const refused = await instance.admin('POST', '/api/reload');
    assert.equal(refused.status, 422, refused.text);
    const still = await stream({ instance, key, dialect: 'messages', model: 'current' });
    assert.equal(brokenness('messages', still), undefined);
    assert.equal(still.headers['x-gateway-target'], `up/${model}`);
  }
  isOver = true;
  const seconds = (performance.now() - allBegun) / 1000;
  let least = Number.POSITIVE_INFINITY;
  for (const each of running) {
    const { dialect, reply } = await each;
    const { broken, events } = pacedOutcome(dialect, reply);
    assert.equal(broken, undefined);
    least = Math.min(least, events);
  }
  t.diagnostic(
    `${least} events or more in each stream, ${seconds.toFixed(1)} s behind the last start`,
  );
});

test('F-4 a config file that is emptied and then written fails no call', async () => {
  const { key } = await instance.makeKey();
  scriptSlow(upstream, 'edition-20', () => Promise.resolve());
  write(edition(20));
  const ask = (): ReturnType<typeof stream> =>
    stream({ instance, key, dialect: 'chat', model: 'current' });
  await until(
    async () => (await ask()).headers['x-gateway-target'] === 'up/edition-20',
    'it holds',
  );
  for (const text of ['', '# written soon\n']) {
    write(text);
    const { status, json } = await instance.admin('POST', '/api/reload');
    assert.equal(status, 422, JSON.stringify(json));
    assert.match(JSON.stringify(json), /is empty, which is taken for an unfinished write/);
    assert.equal((await ask()).headers['x-gateway-target'], 'up/edition-20');
  }
  write(edition(21));
  scriptSlow(upstream, 'edition-21', () => Promise.resolve());
  await until(
    async () => (await ask()).headers['x-gateway-target'] === 'up/edition-21',
    'it holds',
  );
});

test('a gateway that was started without a config file takes the one that appears in its folder', async (t) => {
  const cwd = temporaryFolder('reload');
  const run = new ProgramRun(['start', '--listen', ':0', '--admin-listen', ':0'], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '' },
  });
  t.after(() => run.stop());
  await run.said(/"event":"gateway_started"/);
  const file = join(cwd, 'gateway.yaml');
  writeFileSync(`${file}.new`, 'models: { mine: local/tiny }\n', { mode: 0o600 });
  renameSync(`${file}.new`, file);
  await run.said(/"event":"config_applied"/);
  rmSync(file);
  run.child.kill('SIGHUP');
  await run.said(
    /"event":"config_rejected","reason":"[^"]*gateway\.yaml is gone, or its directory cannot be read/,
  );
});

test('a config file that is written while the gateway starts is taken', async (t) => {
  const cwd = temporaryFolder('reload');
  const gateway = await start({
    flags: { listen: ':0', 'admin-listen': ':0', 'log-level': 'silent' },
    env: {},
    cwd,
    // It is asked for between the reading of the config and its watch.
    get random() {
      writeFileSync(join(cwd, 'gateway.yaml'), 'models: { mine: local/tiny }\n', { mode: 0o600 });
      return Math.random;
    },
  });
  t.after(() => gateway.stop());
  await until(() => gateway.settings.routes.length === 1, 'the file is applied');
});

const openssl = { skip: findProgram(['openssl']) === undefined ? noOpenssl : false };

test('a certificate that is renewed while the gateway starts is taken', openssl, async (t) => {
  const made = await makeCertificates('someone');
  assert.ok(made !== undefined);
  const cwd = temporaryFolder('reload');
  const put = ({ cert, key }: { readonly cert: string; readonly key: string }): void => {
    copyFileSync(cert, join(cwd, 'a.crt'));
    copyFileSync(key, join(cwd, 'a.key'));
  };
  put(made.server);
  writeFileSync(join(cwd, 'gateway.yaml'), 'tls: { cert: a.crt, key: a.key }\n', { mode: 0o600 });
  const gateway = await start({
    flags: { listen: ':0', 'admin-listen': ':0', 'log-level': 'silent' },
    env: {},
    cwd,
    // It is asked for between the reading of the files and their watch.
    get random() {
      put(made.client);
      return Math.random;
    },
  });
  t.after(() => gateway.stop());
  const renewed = readFileSync(made.client.cert, 'utf8');
  await until(() => gateway.settings.tls?.cert === renewed, 'the certificate is applied');
});
