import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { findGateway } from '../../../src/compose/commands/find-gateway.ts';
import { readGatewayFlags } from '../../../src/cli/gateway-flags.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { ProgramRun } from '../../support/program-run.ts';

test('the flags that say where a gateway lies are taken out of the others', () => {
  assert.deepEqual(readGatewayFlags(['list', '--data-dir', '/d', '--json', '--config=/c.yaml']), {
    args: ['list', '--json'],
    env: { MODEL_GATEWAY_DATA_DIR: '/d', MODEL_GATEWAY_CONFIG: '/c.yaml' },
  });
  assert.deepEqual(readGatewayFlags(['show', 'ID']), { args: ['show', 'ID'], env: {} });
  for (const args of [['--data-dir'], ['--data-dir', '--json'], ['--config=']]) {
    assert.throws(() => readGatewayFlags(args), /needs a value/);
  }
});

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const adminToken = 'Zk3pQ9tR7uV5wX1yB8nM2c';

function stage(t: TestContext) {
  const folder = temporaryFolder('place');
  mkdirSync(join(folder, 'there'));
  mkdirSync(join(folder, 'elsewhere'));
  const env = { PATH: process.env['PATH'] ?? '' };
  const run = async (
    place: string,
    args: readonly string[],
    more: NodeJS.ProcessEnv = {},
  ): Promise<Ran> => {
    const child = new ProgramRun(args, { cwd: join(folder, place), env: { ...env, ...more } });
    await once(child.child, 'close');
    return { code: child.child.exitCode, out: child.stdout, err: child.stderr };
  };
  const start = async (more: NodeJS.ProcessEnv): Promise<ProgramRun> => {
    const args = ['start', '--listen', ':0', '--admin-listen', ':0'];
    const gateway = new ProgramRun(args, { cwd: join(folder, 'there'), env: { ...env, ...more } });
    t.after(() => gateway.kill());
    await gateway.said(/^More clients/m);
    return gateway;
  };
  return { folder, run, start };
}

const create = ['keys', 'create', '--name', 'ci', '--models', '*'];

test('commands find the gateway of the folder without the secrets of its vendors, and say which it is', async (t) => {
  const { folder, run, start } = stage(t);
  const config = `providers: { openai: {}, mine: { dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: "\${MINE_KEY}" } }
models: { fast: openai/gpt-5-mini, slow: mine/large }
`;
  writeFileSync(join(folder, 'there', 'gateway.yaml'), config);
  const gateway = await start({ OPENAI_API_KEY: 'sk-1', MINE_KEY: 'k' });
  const data = join(folder, 'there', '.model-gateway');
  const made = await run('there', create);
  assert.equal(made.code, 0, made.err);
  assert.equal(made.err.split('\n')[0], `Gateway ${gateway.adminUrl}, data in ${data}`);
  // The gateway goes on with what it has read, and a command must still reach it.
  writeFileSync(join(folder, 'there', 'gateway.yaml'), `${config}wrong: 1\n`);
  for (const args of [['keys', 'list'], ['usage'], ['audit', 'list'], ['models']]) {
    const { code, err } = await run('there', args);
    assert.equal(code, 0, `${args.join(' ')}: ${err}`);
  }
  writeFileSync(join(folder, 'there', 'gateway.yaml'), config);
  await gateway.stop();
  const listed = await run('there', ['keys', 'list']);
  assert.match(listed.out, / ci /);
  assert.equal(listed.err, `No gateway runs; data in ${data}\n`);
  const models = await run('there', ['models']);
  assert.equal(models.code, 0, models.err);
  assert.match(models.err, /providers\.openai: has no key: set OPENAI_API_KEY/);
  assert.match(
    models.err,
    /providers\.mine\.api_key: the environment variable MINE_KEY is not set/,
  );
  const json = await run('there', ['keys', 'list', '--json']);
  assert.equal(json.err, '');
});

test('a command without a store asks the address of its token once', async (t) => {
  const folder = temporaryFolder('probe');
  const asked: string[] = [];
  const other = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.end('another program');
  }).listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const env = {
    MODEL_GATEWAY_ADMIN_LISTEN: `127.0.0.1:${port}`,
    MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
  };
  const { client } = await findGateway(env, folder);
  await assert.rejects(client.request('GET', '/api/keys'), /No gateway answers at 127\.0\.0\.1/);
  assert.deepEqual(asked, ['GET /api/session']);
});

test('in a folder without data a command says so and makes none', async (t) => {
  const { folder, run, start } = stage(t);
  const missing = new RegExp(
    `There is no gateway data in ${join(folder, 'elsewhere', '.model-gateway')}\\.`,
  );
  const gateway = await start({ MODEL_GATEWAY_ADMIN_TOKEN: adminToken });
  const admin = { MODEL_GATEWAY_ADMIN_LISTEN: new URL(gateway.adminUrl).host };
  for (const args of [create, ['keys', 'list'], ['usage'], ['audit', 'list']]) {
    const alone = await run('elsewhere', args, { MODEL_GATEWAY_ADMIN_LISTEN: '127.0.0.1:9' });
    assert.equal(alone.code, 1, alone.out);
    assert.match(alone.err, missing);
    assert.match(alone.err, /Start a gateway there .*--data-dir DIR/);
    const beside = await run('elsewhere', args, admin);
    assert.match(beside.err, missing);
    assert.match(beside.err, /The gateway at 127\.0\.0\.1:\d+ has other data/);
  }
  assert.equal((await run('elsewhere', ['models'])).code, 0);
  const beside = await run('elsewhere', ['models'], admin);
  assert.match(beside.err, /No running gateway was found in .*; the one at \S+ has other data/);
  const silent = await run('elsewhere', create, {
    MODEL_GATEWAY_ADMIN_LISTEN: '127.0.0.1:9',
    MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
  });
  assert.equal(silent.code, 1);
  assert.match(silent.err, /No gateway answers at 127\.0\.0\.1:9, .* Check --admin-listen/);
  const wrong = await run('elsewhere', create, {
    ...admin,
    MODEL_GATEWAY_ADMIN_TOKEN: `${adminToken}x`,
  });
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /refuses the token in MODEL_GATEWAY_ADMIN_TOKEN\. Set it to /);
  writeFileSync(join(folder, 'file'), '');
  const file = await run('elsewhere', ['keys', 'list', '--data-dir', '../file']);
  assert.equal(file.code, 1);
  assert.match(file.err, /\/file is not a directory\. Name the data directory of a gateway/);
  const far = await run('elsewhere', create, { ...admin, MODEL_GATEWAY_ADMIN_TOKEN: adminToken });
  assert.equal(far.code, 0, far.err);
  assert.match(far.err, /^Gateway http:\/\/127\.0\.0\.1:\d+, by MODEL_GATEWAY_ADMIN_TOKEN$/m);
  assert.match((await run('there', ['keys', 'list'])).out, / ci /);
  assert.match(
    (await run('elsewhere', ['keys', 'list', '--data-dir=../there/.model-gateway'])).out,
    / ci /,
  );
  assert.deepEqual(readdirSync(join(folder, 'elsewhere')), []);
});

test('a gateway of another machine is named with its scheme, and goes before the data of this folder', async (t) => {
  const { run, start } = stage(t);
  const gateway = await start({ MODEL_GATEWAY_ADMIN_TOKEN: adminToken });
  const status = (address: string, token = adminToken): Promise<Ran> =>
    run('elsewhere', ['status', '--admin-listen', address], { MODEL_GATEWAY_ADMIN_TOKEN: token });
  const found = await status(`${gateway.adminUrl}/`);
  assert.equal(found.code, 0, found.err);
  assert.equal(
    found.err.split('\n')[0],
    `Gateway ${gateway.adminUrl}, by MODEL_GATEWAY_ADMIN_TOKEN`,
  );
  // The folder has a gateway of its own, which is not meant.
  const silent = await run('there', ['status', '--admin-listen', 'http://127.0.0.1:9'], {
    MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
  });
  assert.match(silent.err, /admin API at http:\/\/127\.0\.0\.1:9 cannot be used: .*ECONNREFUSED/);

  const plain = await status('gateway.invalid:8687');
  assert.match(plain.err, /another machine: write https:\/\/gateway\.invalid:8687, or http:/);
  const data = await status(gateway.url);
  assert.match(data.err, /is the data plane of a gateway\. Commands need its admin plane/);
  const pasted = await status(gateway.adminUrl, `${adminToken}\n`);
  assert.match(pasted.err, /^model-gateway: MODEL_GATEWAY_ADMIN_TOKEN has a space, a line break/m);
  const none = await status(gateway.adminUrl, '');
  assert.match(none.err, /Set MODEL_GATEWAY_ADMIN_TOKEN to the admin token/);
  for (const { code } of [silent, plain, data, pasted, none]) assert.equal(code, 1);
});
