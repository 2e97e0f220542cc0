/** §2.1: `max_tokens: 0` warms a prompt cache; where there is none the gateway answers by itself. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { framesOf, objectAt, readStream } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

for (const stream of [false, true]) {
  test(`§2.1 max_tokens 0 on a chat upstream, stream: ${stream}`, async () => {
    const { model, script } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const body = requestBody('messages', { model, stream, more: { max_tokens: 0 } });
    const reply = await ask(rig, 'messages', body);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(script.requests.length, 0, 'nobody was asked');
    assert.match(String(reply.headers['x-gateway-notes']), /^max_tokens: dropped/);
    assert.equal(reply.headers['x-gateway-attempts'], '0');
    if (stream) {
      const seen = readStream('messages', reply.text);
      assert.deepEqual([seen.text, seen.finish, seen.usage?.output], ['', 'stop', 0]);
      assert.ok(!framesOf(reply.text).some(({ event }) => event === 'content_block_start'));
    } else {
      assert.deepEqual(reply.json['content'], []);
      assert.equal(reply.json['stop_reason'], 'end_turn');
      assert.equal(objectAt(reply.json, 'usage')['output_tokens'], 0);
    }
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(row?.['outcome'], 'ok');
    assert.equal(row['attempts'], 0);
    assert.deepEqual(
      Object.values(objectAt(row, 'charged')).filter((count) => typeof count === 'number'),
      [],
      'nothing was used',
    );
  });
}

test('§2.1 max_tokens 0 goes to a messages upstream as it is', async () => {
  const { model, script } = rig.play('messages', replying('messages', {}));
  const body = requestBody('messages', { model, stream: false, more: { max_tokens: 0 } });
  assert.equal((await ask(rig, 'messages', body)).status, 200);
  assert.equal((await script.request(0)).json['max_tokens'], 0);
});

test('§2.1 what could not be asked for is refused for max_tokens 0 as well', async () => {
  const { model } = rig.play('chat', replying('chat', {}));
  const more = { max_tokens: 0, container: 'container_1' };
  const reply = await ask(rig, 'messages', requestBody('messages', { model, stream: false, more }));
  assert.equal(reply.status, 400, reply.text);
  assert.match(reply.text, /container/);
});

test('§2.1 the wait ends at once: the whole stream is there', async () => {
  const { model } = rig.play('chat', { body: [], ending: 'hang' });
  const body = requestBody('messages', { model, stream: true, more: { max_tokens: 0 } });
  const reply = await ask(rig, 'messages', body);
  assert.deepEqual(
    framesOf(reply.text)
      .map(({ event }) => event)
      .filter((event) => event !== 'ping'),
    ['message_start', 'message_delta', 'message_stop'],
  );
});
