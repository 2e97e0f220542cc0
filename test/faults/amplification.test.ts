/** G12: an upstream that fails is not asked much more often than clients ask, however many keys it has. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { errorIn } from '../upstream/reply.ts';

const calls = 40;
let rig: Rig;
before(async () => {
  rig = await startRig(
    ({ chat }) => ({
      providers: {
        'two-keys': {
          dialect: 'openai-chat',
          base_url: `http://127.0.0.1:${chat.port}/v1`,
          api_key: ['upstream-key-one', 'upstream-key-two'],
        },
      },
    }),
    { random: () => 0 },
  );
});
after(() => rig.stop());

for (const provider of ['up-chat', 'two-keys']) {
  let asked = 0;
  let received = 0;
  for (const status of [429, 500, 503, 529, 403]) {
    test(`G12 ${status} from ${provider}: at most a fifth more, and three in any case`, async () => {
      const model = `${provider}-${status}`;
      const { requests } = rig.upstreams.chat.script(model, errorIn('chat', status, 'broken'));
      for (let i = 0; i < calls; i += 1) {
        const body = requestBody('chat', { model: `${provider}/${model}`, stream: false });
        const reply = await ask(rig, 'chat', body);
        assert.ok(status === 403 ? reply.status === 400 : reply.status >= 429, reply.text);
        assert.ok(Number(reply.headers['x-gateway-attempts']) <= 3);
      }
      // What one status did not use up is left for the next: the share is the provider's.
      asked += calls;
      received += requests.length;
      assert.ok(requests.length >= calls, String(requests.length));
      assert.ok(received <= 1.2 * asked + 3, `${received} for ${asked}`);
    });
  }
}
