/** A start that fails says why and ends: nothing it opened keeps the process alive. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/folders.ts';

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const dataDir = new URL('../../../src/store/data-dir.ts', import.meta.url).href;

function run(
  args: readonly string[],
  {
    key = 'Zk3pQ9tR7uV5wX1yB',
    env = {},
  }: { readonly key?: string; readonly env?: NodeJS.ProcessEnv },
) {
  const folder = temporaryFolder('failed-start');
  const ran = spawnSync(process.execPath, [main, ...args], {
    cwd: folder,
    env: { MODEL_GATEWAY_KEY: key, MODEL_GATEWAY_ADMIN_LISTEN: '127.0.0.1:0', ...env },
    encoding: 'utf8',
    timeout: 500_000,
  });
  return { ...ran, folder };
}

for (const name of ['KEY', 'PEPPER', 'CONTENT_KEY', 'ADMIN_TOKEN', 'METRICS_TOKEN']) {
  test(`start with MODEL_GATEWAY_${name} too short leaves nothing behind`, () => {
    const env = { [`MODEL_GATEWAY_${name}`]: 'short' };
    const { status, stderr, folder } = run(['start', '--listen', '127.0.0.1:0'], { env });
    assert.equal(status, 1, stderr);
    assert.match(stderr, new RegExp(`MODEL_GATEWAY_${name} must have at least 16 characters`));
    assert.deepEqual(readdirSync(folder), []);
  });
}

test('wrong flags exit with 2 and name the help; wrong values are told one a line', () => {
  const flag = run(['start', '--port', '9101'], {});
  assert.deepEqual(
    [flag.status, flag.stderr],
    [
      2,
      '--port is not a flag of this command. Did you mean --listen?\nSee "model-gateway start --help".\n',
    ],
  );
  const values = run(['start', '--listen', 'abc', '--workers', '0'], {});
  assert.deepEqual(
    [values.status, values.stderr],
    [
      1,
      'model-gateway: --workers: expected a whole number from 1 to 64\nmodel-gateway: --listen: is not an address. Use HOST:PORT, PORT (loopback) or [::1]:PORT\n',
    ],
  );
});

test('a failed start keeps a data directory that was there before', () => {
  const folder = temporaryFolder('failed-start');
  const args = ['start', '--listen', '127.0.0.1:0', '--data-dir', folder];
  const { status, stderr } = run(args, { env: { MODEL_GATEWAY_PEPPER: 'short' } });
  assert.equal(status, 1, stderr);
  assert.ok(readdirSync(folder).includes('gateway.lock'));
});

test('X-9 start with a key that is tried first', () => {
  const { status, stderr } = run(['start', '--listen', '127.0.0.1:0'], {
    key: 'changemechangeme',
  });
  assert.equal(status, 1, stderr);
  assert.match(stderr, /MODEL_GATEWAY_KEY is easy to guess: .*openssl rand -base64 32/);
});

test('start on a port that is taken', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  const address = taken.address();
  assert.ok(address !== null && typeof address === 'object');
  const port = address.port;
  const args = ['start', '--listen', `127.0.0.1:${port}`, '--workers', '1', '--log-level', 'warn'];
  const { status, stderr, folder } = run(args, {});
  assert.equal(status, 1, stderr);
  assert.match(
    stderr,
    new RegExp(
      `127\\.0\\.0\\.1:${port} \\(data plane\\) is in use by node \\(pid ${process.pid}\\)\\. Stop that program, or choose .* start --listen 127\\.0\\.0\\.1:\\d+ --workers 1 --log-level warn\\n$`,
    ),
  );
  assert.deepEqual(readdirSync(folder), [], 'no data directory is left behind');
});

const findGatewayModule = join(
  import.meta.dirname,
  '../../../src/compose/commands/find-gateway.ts',
);
const adminOfDirectory = join(
  import.meta.dirname,
  '../../../src/compose/commands/admin-of-directory.ts',
);
const yamlText = join(import.meta.dirname, '../../../src/config/yaml-text.ts');
const configFile = join(import.meta.dirname, '../../../src/config/config-file.ts');
const referred = join(import.meta.dirname, '../../../src/config/referred.ts');
const init = join(import.meta.dirname, '../../../src/cli/commands/init.ts');
const adminApi = join(import.meta.dirname, '../../../src/admin/handler.ts');

const nobody = 65_534;
const asOther =
  process.getuid?.() === 0 ? false : 'left out: only root can run the program as another user';

test('start on a directory of another user says whose it is', { skip: asOther }, () => {
  const folder = temporaryFolder('failed-start');
  chmodSync(folder, 0o755);
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  // The checkout may be closed to other users: the program is loaded before it becomes one.
  const program = `
    const { lockDataDir } = await import(${JSON.stringify(dataDir)});
    process.setgid(${nobody});
    process.setuid(${nobody});
    lockDataDir(${JSON.stringify(data)});
  `;
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
    { encoding: 'utf8', timeout: 500_000 },
  );
  assert.equal(status, 1, stderr);
  assert.match(
    stderr,
    /The data directory \S+ cannot be used \(EACCES\): it belongs to user 0, and this program runs as user 65534\. Choose a directory of your own with --data-dir DIR\./,
  );
});

test('a command of another user claims nothing of what it cannot see', { skip: asOther }, () => {
  const folder = temporaryFolder('failed-start');
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, '.model-gateway'), { mode: 0o700 });
  writeFileSync(join(folder, 'closed.yaml'), '{}', { mode: 0o600 });
  // A gateway answers at the customary address: it may be the one of the closed directory.
  const program = `
    const { createServer } = await import('node:http');
    const { findGateway } = await import(${JSON.stringify(findGatewayModule)});
    await import(${JSON.stringify(adminOfDirectory)});
    await import(${JSON.stringify(yamlText)});
    await import(${JSON.stringify(adminApi)});
    const server = createServer((_, answer) => answer.end('{"signed_in":false}'));
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const address = '127.0.0.1:' + server.address().port;
    process.setgid(${nobody});
    process.setuid(${nobody});
    const cwd = ${JSON.stringify(folder)};
    const { from } = await findGateway({ MODEL_GATEWAY_ADMIN_LISTEN: address }, cwd);
    console.log(from);
    await findGateway({ MODEL_GATEWAY_CONFIG: 'closed.yaml' }, cwd).catch((error) => console.log(error.message));
    process.exit();
  `;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
    { encoding: 'utf8', timeout: 500_000 },
  );
  assert.equal(stderr, '');
  assert.equal(
    stdout,
    `${join(folder, '.model-gateway')} cannot be read\nclosed.yaml: cannot be read (EACCES): it belongs to user 0, and this program runs as user 65534\n`,
  );
});

test(
  'a folder that is closed to this user has no config, and a file that is named there is an error',
  { skip: asOther },
  () => {
    const folder = temporaryFolder('failed-start');
    writeFileSync(join(folder, 'gateway.yaml'), '{}');
    const program = `
    const { findConfig, readConfig } = await import(${JSON.stringify(configFile)});
    const { Referred } = await import(${JSON.stringify(referred)});
    const { initCommand } = await import(${JSON.stringify(init)});
    process.setgid(${nobody});
    process.setuid(${nobody});
    const cwd = ${JSON.stringify(folder)};
    console.log(findConfig(undefined, cwd));
    const named = await readConfig(findConfig('gateway.yaml', cwd), { env: {}, referred: new Referred() });
    console.log(named.issues.map(({ message }) => message).join());
    const command = initCommand({ known: [], schema: '/schema.json', cwd, program: 'model-gateway', ask: undefined });
    await command.run(['--yes'], { env: {}, stdout: console.log, stderr: console.log })
      .catch((error) => console.log(error.message));
  `;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
      { encoding: 'utf8', timeout: 500_000 },
    );
    assert.equal(stderr, '');
    assert.deepEqual(stdout.trimEnd().split('\n'), [
      'undefined',
      'cannot be read (EACCES)',
      'gateway.yaml cannot be written (EACCES). Choose another place with --file.',
    ]);
  },
);

test('start at an address that this machine does not have, in a directory that is a file', () => {
  // TEST-NET-1: no machine has it.
  const elsewhere = run(['start', '--listen', '192.0.2.1:18080'], {});
  assert.equal(elsewhere.status, 1);
  assert.match(
    elsewhere.stderr,
    /192\.0\.2\.1:18080 \(data plane\): this machine has no such address/,
  );
  const file = run(['start', '--listen', '127.0.0.1:0', '--data-dir', main], {});
  assert.equal(file.status, 1);
  assert.match(file.stderr, /main\.ts is not a directory\. Choose .* --data-dir DIR\.\n$/);
});

for (const args of [
  ['start', '--listen', '127.0.0.1:0'],
  ['pull', 'https://127.0.0.1:9/model.gguf'],
]) {
  test(`S19 ${args[0]} where certificates would not be verified`, () => {
    const { status, stderr } = run(args, { env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /NODE_TLS_REJECT_UNAUTHORIZED: .* unset it and name your authority/);
  });
}

test('a start that fails after the store is open ends', () => {
  // As if a package of traces were missing, which load after the store has opened.
  const hook = `import { registerHooks } from 'node:module';
registerHooks({
  resolve(name, context, next) {
    if (name.startsWith('@opentelemetry/')) throw new Error('No package ' + name);
    return next(name, context);
  },
});`;
  const options = `--import=data:text/javascript,${encodeURIComponent(hook)}`;
  const config = join(temporaryFolder('failed-start'), 'gateway.yaml');
  writeFileSync(config, 'traces: { endpoint: "http://127.0.0.1:9" }\n');
  const { status, signal, stderr } = run(
    ['start', '--listen', '127.0.0.1:0', '--config', config, '--log-level', 'debug'],
    { env: { NODE_OPTIONS: options } },
  );
  assert.match(stderr, /store_opened/);
  assert.match(stderr, /model-gateway: No package @opentelemetry\//);
  assert.deepEqual([status, signal], [1, null], stderr);
});
