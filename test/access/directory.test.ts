/** The program on a data directory: commands without a gateway, and starts with and without the pepper. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { tryParse, tryParseObject } from '../../src/json/parse.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { nodeEnvironment } from '../support/program.ts';

const program = join(import.meta.dirname, '..', '..', 'bin', 'model-gateway');
const pepper = 'a-pepper-0123456789-abcdef';

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

describe('a data directory', { timeout: 500_000 }, () => {
  const folder = temporaryFolder('directory');
  const started: ChildProcess[] = [];
  after(() => {
    for (const child of started) if (child.exitCode === null) child.kill('SIGKILL');
  });

  // The default ports may be those of another gateway, as one that a test of an image runs.
  const anyPorts = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];

  const launch = (args: readonly string[], env: object = {}): ChildProcess =>
    spawn(program, [...args], {
      env: { ...nodeEnvironment, PATH: process.env['PATH'] ?? '', HOME: folder, ...env },
      cwd: folder,
    });

  const run = async (args: readonly string[], env: object = {}): Promise<Ran> => {
    const child = launch(args, env);
    const texts = { out: '', err: '' };
    child.stdout?.on('data', (bytes: Buffer) => {
      texts.out += bytes.toString('utf8');
    });
    child.stderr?.on('data', (bytes: Buffer) => {
      texts.err += bytes.toString('utf8');
    });
    await once(child, 'close');
    return { code: child.exitCode, ...texts };
  };

  const start = async (env: object): Promise<{ readonly url: string; stop(): Promise<void> }> => {
    const child = launch(['start', ...anyPorts], env);
    started.push(child);
    const listening = Promise.withResolvers<string>();
    let out = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (bytes: Buffer) => {
        out += bytes.toString('utf8');
        const url = /^listening (\S+)\nadmin /m.exec(out)?.[1];
        if (url !== undefined) listening.resolve(url);
      });
    }
    child.on('exit', () => listening.reject(new Error(out)));
    const url = await listening.promise;
    return {
      url,
      stop: async () => {
        child.kill('SIGTERM');
        await once(child, 'exit');
      },
    };
  };

  const statusOf = async (url: string, key: string): Promise<number> => {
    const headers = { authorization: `Bearer ${key}` };
    return (await send(`${url}/v1/models`, undefined, { headers })).status;
  };
  const keyIn = (ran: Ran): { readonly id: string; readonly key: string } => {
    const made = tryParseObject(ran.out) ?? {};
    return { id: String(made['id']), key: String(made['key']) };
  };
  const create = ['keys', 'create', '--name', 'a', '--models', '*', '--json'];

  test('S2 S5 commands and gateway share it, before and after there is a pepper', async () => {
    // A store is made by a start.
    await (await start({})).stop();
    const first = keyIn(await run([...create, '--rpm', '100', '--budget', '1', '--per', 'day']));
    const updated = await run(['keys', 'update', first.id, '--team', 'red', '--json']);
    assert.equal(tryParseObject(updated.out)?.['rpm'], 100, updated.err);
    const rotated = keyIn(await run(['keys', 'rotate', first.id, '--json']));
    assert.equal(rotated.id, first.id);
    assert.equal((await run(['teams', 'set', 'red', '--rpm', '5'])).code, 0);

    const plain = await start({});
    for (const { key } of [first, rotated]) assert.equal(await statusOf(plain.url, key), 200);
    // The same commands go through the gateway now.
    const second = keyIn(await run(create));
    assert.equal(await statusOf(plain.url, second.key), 200);
    assert.equal((await run(['keys', 'revoke', second.id])).code, 0);
    assert.equal(await statusOf(plain.url, second.key), 401);
    await plain.stop();

    const peppered = await start({ MODEL_GATEWAY_PEPPER: pepper });
    for (const { key } of [first, rotated]) assert.equal(await statusOf(peppered.url, key), 200);
    const third = keyIn(await run(create));
    assert.equal(await statusOf(peppered.url, third.key), 200);
    await peppered.stop();

    const missing = await run(['start', ...anyPorts]);
    assert.equal(missing.code, 1);
    assert.match(missing.err, /hashed with a pepper: set MODEL_GATEWAY_PEPPER/);
    const wrong = await run(['start', ...anyPorts], { MODEL_GATEWAY_PEPPER: `${pepper}x` });
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /is not the pepper/);
    assert.ok(!`${wrong.out}${wrong.err}`.includes(pepper));

    const file = join(folder, 'pepper');
    writeFileSync(file, `${pepper}\n`, { mode: 0o600 });
    const fromFile = await start({ MODEL_GATEWAY_PEPPER_FILE: file });
    for (const { key } of [first, rotated, third]) {
      assert.equal(await statusOf(fromFile.url, key), 200);
    }
    await fromFile.stop();

    // Without the pepper keys can be looked at and revoked, but none can be made that would not work.
    const listed = tryParse((await run(['keys', 'list', '--json'])).out);
    assert.equal(Array.isArray(listed) ? listed.length : 0, 4);
    const unmade = await run(create);
    assert.equal(unmade.code, 1);
    assert.match(unmade.err, /MODEL_GATEWAY_PEPPER/);
    assert.equal((await run(['keys', 'revoke', third.id])).code, 0);
    const log = tryParse((await run(['audit', 'list', '--json'])).out);
    const actions = Array.isArray(log)
      ? log.map((entry) => tryParseObject(JSON.stringify(entry))?.['action'])
      : [];
    assert.deepEqual([...new Set(actions)].toSorted(), [
      'admin_token.create',
      'key.create',
      'key.revoke',
      'key.rotate',
      'key.update',
      'team.set',
    ]);
    assert.equal((await run(['audit', 'check'])).code, 0);
  });

  test('S25 a pepper file that everybody can read, is empty or is not there is refused', async () => {
    const file = join(folder, 'open');
    writeFileSync(file, pepper);
    chmodSync(folder, 0o755);
    chmodSync(file, 0o644);
    const env = { MODEL_GATEWAY_PEPPER_FILE: file };
    const open = await run(['start', ...anyPorts], env);
    assert.match(open.err, /MODEL_GATEWAY_PEPPER_FILE: every user of this machine can read/);
    writeFileSync(file, '');
    chmodSync(file, 0o600);
    assert.match((await run(['start', ...anyPorts], env)).err, /is empty/);
    rmSync(file);
    assert.match((await run(['start', ...anyPorts], env)).err, /cannot be read \(ENOENT\)/);
    const both = { ...env, MODEL_GATEWAY_PEPPER: pepper };
    assert.match((await run(['start', ...anyPorts], both)).err, /not both/);
    const short = await run(['start', ...anyPorts], { MODEL_GATEWAY_PEPPER: 'short' });
    assert.match(short.err, /MODEL_GATEWAY_PEPPER must have at least 16 characters/);
  });
});
