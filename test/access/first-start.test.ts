/** A gateway that is started with nothing: what listens, who gets in, what lies on the disk (S9, S10, S25, G16). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject } from '../../src/json/value.ts';
import { baseOptions } from '../../src/config/base.ts';
import { readAddress } from '../../src/config/errors.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { whenLoaded } from '../support/loaded.ts';
import { listAt } from '../support/reading.ts';
import { ProgramRun } from '../support/program-run.ts';
import { requestBody } from '../support/requests.ts';

class Start extends ProgramRun {
  constructor(folder: string) {
    // A port of its own, and everything else as it is without flags, variables and a file.
    super(['start', '--listen', ':0', '--admin-listen', ':0'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '' },
    });
  }

  /** The banner, with what is shown once, is written behind the addresses. */
  listening(): Promise<void> {
    return this.said(/^More clients: .*\n/m);
  }
}

/** Inodes of the sockets of a process and of all its children. */
function socketsOf(pid: number): ReadonlySet<string> {
  const found = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode !== undefined) found.add(inode);
    } catch {
      // It was closed meanwhile.
    }
  }
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const children = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim();
    for (const child of children === '' ? [] : children.split(' ')) {
      for (const inode of socketsOf(Number(child))) found.add(inode);
    }
  }
  return found;
}

/** Local addresses, as the kernel writes them, at which the process and its children listen. */
function listeners(pid: number): readonly string[] {
  const own = socketsOf(pid);
  return ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((family) =>
    readFileSync(`/proc/net/${family}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((cells) => own.has(cells[9] ?? '') && (family.startsWith('udp') || cells[3] === '0A'))
      .map((cells) => `${family} ${cells[1] ?? ''}`),
  );
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

async function accepts(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

describe('a first start with an empty environment', { timeout: 500_000 }, () => {
  const folder = temporaryFolder('first');
  let gateway: Start;
  before(async () => {
    gateway = new Start(folder);
    await gateway.listening();
  });
  after(() => gateway.kill());

  test('S9 it listens at two ports of loopback and nowhere else, its engine included', async () => {
    for (const text of [baseOptions.listen.default, baseOptions.adminListen.default]) {
      assert.equal(readAddress(text)?.host, '127.0.0.1');
    }
    const hex = (url: string): string =>
      `tcp 0100007F:${portOf(url).toString(16).toUpperCase().padStart(4, '0')}`;
    const expected = [hex(gateway.url), hex(gateway.adminUrl)].sort();
    // Linux spreads new connections over several sockets of one port (http/listeners.ts).
    const ports = [...new Set(listeners(gateway.child.pid ?? 0))].sort();
    assert.deepEqual(ports, expected);
    const others = Object.values(networkInterfaces())
      .flatMap((each) => each ?? [])
      .filter(({ internal, scopeid }) => !internal && (scopeid ?? 0) === 0);
    for (const { address } of others) {
      for (const url of [gateway.url, gateway.adminUrl]) {
        assert.equal(await accepts(address, portOf(url)), false, address);
      }
    }
  });

  test('S10 everything but probes is 401 without a secret, with an empty one and with the wrong plane’s', async () => {
    const key = /\bgw_\S+/.exec(gateway.out)?.[0] ?? '';
    const token = /\bgwadmin_\S+/.exec(gateway.out)?.[0] ?? '';
    assert.ok(key !== '' && token !== '', 'both are printed once');
    const bearer = (text: string): { headers: { authorization: string } } => ({
      headers: { authorization: `Bearer ${text}` },
    });
    const described = await send(`${gateway.adminUrl}/api/openapi.json`, undefined, bearer(token));
    const { paths } = described.json;
    assert.ok(isObject(paths));
    const admin = Object.entries(paths).flatMap(([path, methods]) =>
      isObject(methods)
        ? Object.keys(methods).map((method) => [method.toUpperCase(), path] as const)
        : [],
    );
    assert.ok(admin.length > 20, `${admin.length} routes`);
    const wrong = [{ anonymous: true } as const, bearer(''), bearer(key), bearer('x'.repeat(40))];
    const open = ['GET /healthz', 'GET /api/session', 'POST /api/session'];
    const closed = admin
      .filter((route) => !open.includes(route.join(' ')))
      .flatMap((route) => wrong.map((sending) => ({ route, sending })));
    // Some at once: a client that continues with wrong tokens waits for its 429.
    for (let at = 0; at < closed.length; at += 16) {
      const replies = closed.slice(at, at + 16).map(async ({ route: [method, path], sending }) => {
        const url = gateway.adminUrl + path.replace('{id}', 'any');
        const { status } = await send(url, undefined, { ...sending, method });
        assert.match(String(status), /^(401|429)$/, `${method} ${path}`);
      });
      await Promise.all(replies);
    }
    const body = requestBody('chat', { model: 'local/tiny', stream: false });
    for (const [method, path] of [
      ['POST', '/v1/chat/completions'],
      ['POST', '/v1/messages'],
      ['POST', '/v1/messages/count_tokens'],
      ['GET', '/v1/models'],
      ['GET', '/v1/models/local%2Ftiny'],
    ] as const) {
      for (const sending of [{ anonymous: true } as const, bearer(''), bearer(token)]) {
        const sent = method === 'POST' ? body : undefined;
        const { status, headers } = await send(gateway.url + path, sent, { ...sending, method });
        assert.equal(status, 401, `${method} ${path}`);
        assert.match(String(headers['x-request-id']), /^req_/);
      }
    }
    for (const path of ['/', '/healthz', '/readyz']) {
      const { status, text } = await send(gateway.url + path, undefined, { anonymous: true });
      assert.equal(status, 200);
      assert.doesNotMatch(text, /gw_|gwadmin_|127\.0\.0\.1/);
    }
  });

  test('`/` is a page without a script for a browser, and JSON for programs', async () => {
    const get = async (accept: string): Promise<Response> =>
      fetch(`${gateway.url}/`, { headers: { accept } });
    const browsers = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const page = await get(browsers);
    assert.equal(page.status, 200);
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; /);
    const html = await page.text();
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses', 'port 8687']) {
      assert.ok(html.includes(path), path);
    }
    assert.doesNotMatch(html, /<script|style=|gw_|gwadmin_|127\.0\.0\.1/);
    for (const accept of ['*/*', 'application/json', 'application/json, text/plain, */*']) {
      const answer = await get(accept);
      assert.equal(answer.headers.get('content-type'), 'application/json', accept);
      assert.partialDeepStrictEqual(await answer.json(), { name: 'model-gateway' });
    }
    const probe = await fetch(`${gateway.url}/healthz`, { headers: { accept: browsers } });
    assert.equal(probe.headers.get('content-type'), 'application/json');
  });

  test('S23 the first key has limits, and its calls tell of them', async () => {
    const key = /\bgw_\S+/.exec(gateway.out)?.[0] ?? '';
    const token = /\bgwadmin_\S+/.exec(gateway.out)?.[0] ?? '';
    const headers = { authorization: `Bearer ${token}` };
    const listed = await send(`${gateway.adminUrl}/api/keys`, undefined, { headers });
    const [first, ...others] = listAt(listed.json, 'keys');
    assert.equal(others.length, 0);
    assert.deepEqual(
      ['rpm', 'concurrent', 'budget'].map((name) => first?.[name] ?? null),
      [60_000, 3000, null],
    );
    const body = requestBody('chat', { model: 'local/tiny', stream: false });
    const headersOfKey = { authorization: `Bearer ${key}` };
    const reply = await whenLoaded(() =>
      send(`${gateway.url}/v1/chat/completions`, body, { headers: headersOfKey }),
    );
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.headers['x-ratelimit-limit-requests'], '60000');
  });

  test('every answer has an id, in JSON and without words about the program', async () => {
    for (const [method, path] of [
      ['GET', '/'],
      ['HEAD', '/'],
      ['GET', '/healthz'],
      ['GET', '/readyz'],
      ['GET', '/nothing'],
      ['GET', '/v1/chat/completions'],
      ['POST', '/v1/chat/completions'],
      ['OPTIONS', '/v1/messages'],
      ['DELETE', '/v1/models'],
    ] as const) {
      const reply = await send(gateway.url + path, undefined, { anonymous: true, method });
      assert.match(String(reply.headers['x-request-id']), /^req_\w{20,}$/, `${method} ${path}`);
      assert.equal(reply.headers['request-id'], reply.headers['x-request-id']);
      assert.equal(reply.headers.server, undefined);
      assert.equal(reply.headers['x-powered-by'], undefined);
      if (reply.text !== '')
        assert.match(String(reply.headers['content-type']), /application\/json/);
    }
  });

  test('S25 its directory is 0700 and each file 0600, also those that come while it runs', async () => {
    const key = /\bgw_\S+/.exec(gateway.out)?.[0] ?? '';
    const body = requestBody('chat', { model: 'local/tiny', stream: false });
    await send(`${gateway.url}/v1/chat/completions`, body, {
      headers: { authorization: `Bearer ${key}` },
    });
    const directory = join(folder, '.model-gateway');
    const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
    assert.ok(names.includes('gateway.db') && names.includes('run.json'), names.join(' '));
    // Compiled code of the program, by Node itself; nobody else comes through the directory above it.
    const own = names.filter((name) => name.split('/')[0] !== 'cache');
    for (const name of ['', ...own]) {
      const stat = statSync(join(directory, name));
      assert.equal(stat.mode & 0o077, 0, `${name} ${(stat.mode & 0o777).toString(8)}`);
    }
  });

  test('S4 S10 what it printed stands in no file', () => {
    const secrets = [...gateway.out.matchAll(/\bgw(?:admin)?_[A-Za-z0-9_]{20,}/g)].map(
      ([text]) => text,
    );
    assert.ok(secrets.length >= 2);
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      const path = join(folder, name);
      if (!statSync(path).isFile()) continue;
      const text = readFileSync(path, 'latin1');
      for (const secret of secrets) assert.ok(!text.includes(secret), name);
    }
  });
});

test(
  'G16 S10 a start that is killed again and again is closed whenever it answers',
  { timeout: 500_000 },
  async () => {
    const folder = temporaryFolder('loop');
    for (let round = 0; round < 8; round += 1) {
      const gateway = new Start(folder);
      // From before the directory is there to after the listeners are.
      await sleep(150 + round * 120);
      if (gateway.adminUrl !== '') await assertClosed(gateway);
      await gateway.kill();
    }
    const gateway = new Start(folder);
    await gateway.listening();
    await assertClosed(gateway);
    await gateway.kill();
  },
);

async function assertClosed({ url, adminUrl }: Start): Promise<void> {
  const models = await send(`${url}/v1/models`, undefined, { anonymous: true });
  assert.equal(models.status, 401);
  const keys = await send(`${adminUrl}/api/keys`, undefined, { anonymous: true });
  assert.equal(keys.status, 401);
}
