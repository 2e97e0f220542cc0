/** R3, R6: a count of tokens is no call, and asks no target that takes none. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { send, type Reply } from '../support/http.ts';
import { numberAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { answerIn, errorIn } from '../upstream/reply.ts';
import type { Received } from '../upstream/scripted.ts';

let rig: Rig;
before(async () => {
  rig = await startRig(
    ({ messages }) => {
      const base = `http://127.0.0.1:${messages.port}`;
      const dialect = 'anthropic-messages';
      return {
        providers: {
          'dead-key': { dialect, base_url: base, api_key: 'key-dead' },
          'other-key': { dialect, base_url: base, api_key: 'key-alive' },
        },
        models: {
          two: { targets: ['dead-key/counted', 'other-key/counted'] },
          one: { targets: ['dead-key/counted'] },
        },
      };
    },
    { random: () => 0 },
  );
});
after(() => rig.stop());

const isCount = (request: Received): boolean => request.path.endsWith('/count_tokens');

function count(model: string): Promise<Reply> {
  const body = requestBody('messages', { model, stream: false });
  return send(`${rig.gateway.url}/v1/messages/count_tokens`, body);
}

test('R3 R6 count_tokens goes to a key that is not out, and to none when all are', async () => {
  const script = rig.upstreams.messages.script('counted', (request) => {
    if (request.header('x-api-key') === 'key-dead') return errorIn('messages', 401, 'no');
    if (isCount(request)) return { body: JSON.stringify({ input_tokens: 4711 }) };
    return answerIn('messages', { text: 'Here.' }, false);
  });
  const body = requestBody('messages', { model: 'two', stream: false });
  const reply = await ask(rig, 'messages', body);
  assert.equal(reply.status, 200, reply.text);
  const before = script.requests.length;

  const counted = await count('two');
  assert.equal(counted.status, 200, counted.text);
  assert.equal(numberAt(counted.json, 'input_tokens'), 4711);
  assert.equal(counted.headers['x-gateway-usage'], 'reported');
  const asked = script.requests.slice(before);
  assert.deepEqual(
    asked.map((request) => request.header('x-api-key')),
    ['key-alive'],
  );

  const guessed = await count('one');
  assert.equal(guessed.status, 200, guessed.text);
  assert.equal(guessed.headers['x-gateway-usage'], 'estimated');
  assert.equal(script.requests.length, before + 1);
});
