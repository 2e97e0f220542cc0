/** wrong admin tokens cost time, and the right one never waits. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { it, type TestContext } from 'node:test';
import { adminRig, adminToken, type Rig } from './admin-rig.ts';

/** Answers that wait, until they are let go. */
class Waiting {
  readonly #go: (() => void)[] = [];
  open = false;

  readonly wait = (): Promise<void> =>
    this.open ? Promise.resolve() : new Promise((resolve) => void this.#go.push(resolve));

  get count(): number {
    return this.#go.length;
  }

  letGo(): void {
    for (const go of this.#go.splice(0)) go();
  }
}

async function guessed(t: TestContext): Promise<{ readonly rig: Rig; readonly waiting: Waiting }> {
  const waiting = new Waiting();
  const rig = await adminRig(t, {}, waiting.wait);
  for (let i = 0; i < 5; i++) {
    assert.equal((await rig.ask('/api/status', { token: `guess ${i}` })).status, 401);
  }
  return { rig, waiting };
}

/** Guesses on one connection, one after the other, as long as it stands. */
class Guesser {
  readonly #socket: Socket;
  answers = 0;
  closed = false;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#socket = connect(Number(port), hostname);
    this.#socket.on('data', (bytes: Buffer) => {
      this.answers += bytes.toString('latin1').split('HTTP/1.1 ').length - 1;
      this.#guess();
    });
    this.#socket.on('connect', () => this.#guess());
    this.#socket.on('error', () => undefined).on('close', () => (this.closed = true));
  }

  #guess(): void {
    if (!this.#socket.writable) return;
    const token = `guess-${this.answers}-more`;
    this.#socket.write(
      `GET /api/status HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
  }

  end(): void {
    this.#socket.destroy();
  }

  async ended(): Promise<void> {
    if (!this.closed) await once(this.#socket, 'close');
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2));
}

it('X-9 a guess too many waits, the right token and the control token do not', async (t) => {
  const { rig, waiting } = await guessed(t);
  const held = rig.ask('/api/status', { token: 'guess 6' });
  await until(() => waiting.count === 1);
  const control = rig.control.reveal();
  assert.equal((await rig.ask('/api/status')).status, 200);
  assert.equal((await rig.ask('/api/status', { token: control })).status, 200);
  assert.equal(waiting.count, 1);
  waiting.letGo();
  assert.equal((await held).status, 429);
});

it('X-9 of an address eight wait; each further guess ends its connection, and nobody is locked out', async (t) => {
  const { rig, waiting } = await guessed(t);
  const guessers = Array.from({ length: 40 }, () => new Guesser(rig.url));
  await until(() => guessers.filter(({ closed }) => closed).length === 32);
  assert.equal(waiting.count, 8);
  // Not one of them guessed twice.
  assert.deepEqual(
    guessers.map(({ answers }) => answers).toSorted((a, b) => a - b),
    [...Array.from({ length: 8 }, () => 0), ...Array.from({ length: 32 }, () => 1)],
  );
  for (let i = 0; i < 20; i++) assert.equal((await rig.ask('/api/status')).status, 200);
  const headers = { 'x-model-gateway-csrf': '1', origin: rig.url };
  const signIn = { method: 'POST', token: undefined, headers };
  const right = await rig.ask('/api/session', { ...signIn, body: { token: adminToken } });
  assert.equal(right.status, 200);
  const wrong = await rig.ask('/api/session', { ...signIn, body: { token: 'guess' } });
  assert.deepEqual([wrong.status, wrong.headers['connection']], [429, 'close']);
  for (const guesser of guessers) guesser.end();
  waiting.open = true;
  waiting.letGo();
  await Promise.all(guessers.map((guesser) => guesser.ended()));
  assert.equal((await rig.ask('/api/status', { token: 'guess 9' })).headers['connection'], 'close');
});

it('X-9 many addresses together do not guess faster', async (t) => {
  const { rig, waiting } = await guessed(t);
  waiting.open = true;
  for (let i = 0; i < 60; i++) await rig.ask('/api/status', { token: `more ${i}` });
  waiting.open = false;
  // The address may guess again by now, all of them together may not.
  rig.clock.time += 500;
  const { port } = new URL(rig.url);
  const other = connect({ port: Number(port), host: '127.0.0.1', localAddress: '127.0.0.2' });
  t.after(() => other.destroy());
  other.write(
    'GET /api/status HTTP/1.1\r\nhost: x\r\nauthorization: Bearer new-address-guess\r\n\r\n',
  );
  await until(() => waiting.count === 1);
  waiting.letGo();
  const [bytes]: unknown[] = await once(other, 'data');
  assert.match(String(bytes), /^HTTP\/1\.1 401 /);
});

it('a client that has the admin port in its base address is told so; a token there is a guess as well', async (t) => {
  const rig = await adminRig(t, {});
  const paths = ['/v1/chat/completions', '/v1/models?limit=1', '/v1', '/chat/completions', '/v1/x'];
  for (const path of paths) {
    for (const token of ['gw_key', undefined]) {
      rig.clock.time += 60_000;
      const answer = await rig.ask(path, { token, method: 'POST', body: { model: 'm' } });
      assert.equal(answer.status, 401, path);
      assert.match(JSON.stringify(answer.body), /admin plane.*data plane, by default port 8686/);
    }
  }
  for (let i = 0; i < 5; i += 1) await rig.ask('/v1/models', { token: 'a guess' });
  assert.equal((await rig.ask('/v1/models', { token: 'a guess' })).status, 429);
  assert.equal((await rig.ask('/v1/models')).status, 404, 'the admin token opens no call');
});
