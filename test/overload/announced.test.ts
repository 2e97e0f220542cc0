/** Bodies that are announced and never come, by somebody with a good key (G5, G8). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { openRaw, rawHead, startOverloadRig, until, type OverloadRig } from './overload-rig.ts';

const mebibyte = 1024 ** 2;

let rig: OverloadRig;
before(async () => {
  // 64 MiB for bodies.
  rig = await startOverloadRig({ limits: { memory: '128MiB' } });
});
after(() => rig.stop());

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
  const refused = announced.filter(({ text }) => text().startsWith('HTTP/1.1 503 '));
  assert.equal(refused.length, 12);
  for (const { socket } of announced) socket.destroy();
});
