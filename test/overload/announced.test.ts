/** Bodies that are announced and never arrive, from a client with a valid key (G5, G8). */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { send } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import {
  openRaw,
  rawHead,
  startOverloadRig,
  until,
  type OverloadRig,
  type RawConnection,
} from './overload-rig.ts';

const mebibyte = 1024 ** 2;

let rig: OverloadRig;
before(async () => {
  // 64 MiB for bodies.
  rig = await startOverloadRig({ limits: { memory: '128MiB' } });
});
// A look at the process: what bodies cost before is in what it uses.
beforeEach(() => rig.press({}));
after(() => rig.stop());

test('G6 G10 of bodies that are refused by the hundred some have a row, and all are counted', async () => {
  // There is room for sixteen of them.
  const announced = await Promise.all(
    Array.from({ length: 100 }, () => openRaw(rig.gateway.url, rawHead(mebibyte))),
  );
  await until('the others are refused', async () => {
    return announced.filter(({ text }) => text().startsWith('HTTP/1.1 503 ')).length === 84;
  });
  for (const { socket } of announced) socket.destroy();
  await until('nothing is held', async () => (await rig.status())['body_memory'] === 0);
  // Those whose clients left have theirs behind those of the refused.
  const rows = await rig.gateway.callRows('', 17);
  assert.ok(rows.length < 16 + 84, `${rows.length} rows`);
  assert.equal((await rig.status())['calls_shed'], 84);
});

test('G5 stored responses that a request names count against the memory for bodies: no room, no look-up', async () => {
  const { model } = rig.play(
    'chat',
    replying('chat', { text: 'One.' }),
    replying('chat', { text: 'Two.' }),
  );
  const input = 'x'.repeat(1.5 * mebibyte);
  const first = await rig.call('responses', { model, input });
  assert.equal(first.status, 200, first.text);
  const id = String(first.json['id']);
  const headers = { authorization: `Bearer ${clientKey}` };
  const get = (rest: string) =>
    send(`${rig.gateway.url}/v1/responses/${id}${rest}`, undefined, { headers, method: 'GET' });
  const ways = [
    () => get(''),
    () => get('/input_items'),
    () => rig.call('responses', { model, input: 'And?', previous_response_id: id, store: false }),
  ];
  const announced = await Promise.all(
    Array.from({ length: 15 }, () => openRaw(rig.gateway.url, rawHead(mebibyte))),
  );
  await until('little memory is left', async () => {
    return (await rig.status())['body_memory'] === 60 * mebibyte;
  });
  for (const way of ways) {
    const { status, text } = await way();
    assert.equal(status, 503, text);
    assert.match(text, /no memory left/);
  }
  for (const { socket } of announced) socket.destroy();
  await until('nothing is held', async () => (await rig.status())['body_memory'] === 0);
  for (const way of ways) assert.equal((await way()).status, 200);
  await until('nothing is held again', async () => (await rig.status())['body_memory'] === 0);
});

test('G5 a stored response takes memory until its client has read it', async () => {
  const answers = ['One.', 'Two.'].map((text) => replying('chat', { text }));
  const { model } = rig.play('chat', ...answers);
  const input = 'x'.repeat(3.8 * mebibyte);
  let previous: string | null = null;
  // The kernel takes less than the items of two.
  for (const _ of answers) {
    const call = await rig.call('responses', { model, input, previous_response_id: previous });
    assert.equal(call.status, 200, call.text);
    previous = String(call.json['id']);
  }
  const path = `/v1/responses/${String(previous)}/input_items`;
  const head = [`GET ${path} HTTP/1.1`, 'host: gateway', `authorization: Bearer ${clientKey}`];
  const ends = {
    read: ({ socket }: RawConnection) => socket.resume(),
    left: ({ socket }: RawConnection) => socket.destroy(),
  };
  for (const [what, end] of Object.entries(ends)) {
    // A look at the process, as before each test.
    rig.press({});
    const slow = await openRaw(rig.gateway.url, '');
    slow.socket.pause();
    slow.socket.write([...head, '\r\n'].join('\r\n'));
    await until('it is answered, and in memory', async () => {
      const { calls_held: held, body_memory: memory } = await rig.status();
      return held === 0 && Number(memory) > 2 * mebibyte;
    });
    end(slow);
    await until(`nothing is held once it is ${what}`, async () => {
      return (await rig.status())['body_memory'] === 0;
    });
    slow.socket.destroy();
  }
});

test('G5 G8 a key that announces bodies without sending them leaves room for the others', async () => {
  const other = await rig.key();
  const { model } = rig.play('chat', replying('chat', { text: 'Hi' }));
  const body = requestBody('chat', { model, stream: false });
  assert.equal((await rig.call('chat', body, { key: other })).status, 200);
  const announced = await Promise.all(
    Array.from({ length: 20 }, () => openRaw(rig.gateway.url, rawHead(mebibyte))),
  );
  await until('half of the memory is taken', async () => {
    return (await rig.status())['body_memory'] === 32 * mebibyte;
  });
  const large = 'x'.repeat(4 * mebibyte);
  const more = { messages: [{ role: 'user', content: large }] };
  const reply = await rig.call('chat', requestBody('chat', { model, stream: false, more }), {
    key: other,
  });
  assert.equal(reply.status, 200, reply.text);
  const refused = (): number =>
    announced.filter(({ text }) => text().startsWith('HTTP/1.1 503 ')).length;
  await until('the others are refused', () => refused() >= 12);
  assert.equal(refused(), 12);
  for (const { socket } of announced) socket.destroy();
});
