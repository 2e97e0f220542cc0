/** D13: what is changed of a request does not depend on its length, nor on how much of it is read for that. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { isInSample } from '../support/depth.ts';
import { send } from '../support/http.ts';
import { listAt } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';
import type { VendorRules } from './rules.ts';
import { shapes } from './shapes.ts';
import { startStrictVendors, type StrictVendors } from './strict.ts';
import { vendors } from './tables.ts';

let strict: StrictVendors;
before(async () => {
  strict = await startStrictVendors();
});
after(() => strict.stop());

/** Read as a skeleton, and in the worker thread. */
const lengths = [20_000, 1_200_000];
const short = 'Hello.';

interface Sent {
  readonly messages: string;
  readonly notes: string;
}

async function sent(rules: VendorRules, body: JsonObject, said: string): Promise<Sent> {
  const script = strict.script(rules);
  const before = script.requests.length;
  const messages = [{ role: 'user', content: said }, ...listAt(body, 'messages')];
  const model = `${rules.provider}/${rules.model}`;
  const reply = await send(strict.gateway.url + endpointOf.chat, { ...body, model, messages });
  assert.equal(reply.status, 200, reply.text);
  const { json } = await script.request(before);
  return {
    messages: JSON.stringify(json['messages']).replaceAll(said, short),
    notes: String(reply.headers['x-gateway-notes'] ?? ''),
  };
}

const asked = shapes.filter(({ dialect, image }) => dialect === 'chat' && image === undefined);

const chosen = vendors.filter(({ model }) => /^(mistral|gpt-4o|llama-3.3-70b-v|Qwen)/.test(model));
for (const [i, rules] of chosen.entries()) {
  describe(`${rules.provider}/${rules.model}`, () => {
    for (const [j, { name, body }] of asked.entries()) {
      // `npm test` plays one in five, with the other length at the next shape and the next vendor.
      const now = lengths.filter((_, k) => isInSample(i + j + k, 2 * lengths.length + 1));
      if (now.length === 0) continue;
      test(`D13 as long as it may be: ${name}`, async () => {
        const plain = await sent(rules, body, short);
        for (const length of now) {
          const long = await sent(rules, body, 'Say it again. '.repeat(length / 14));
          assert.deepEqual(long, plain);
        }
      });
    }
  });
}

test('D13 all bytes stay that no edit names', async () => {
  const mistral = vendors.find(({ provider }) => provider === 'mistral');
  assert.ok(mistral !== undefined);
  const script = strict.script(mistral);
  const before = script.requests.length;
  const model = (name: string): string => `{ "model" : "${name}", "messages" : [ `;
  const said = String.raw`{"content":"\u0041 b", "role":"user"`;
  const answered = String.raw`, {"role":"assistant", "content":"\u00e9"`;
  const text = `${model(`mistral/${mistral.model}`)}${said}, "name" : "ann"} ${answered}} ] }`;
  const reply = await send(strict.gateway.url + endpointOf.chat, text);
  assert.equal(reply.status, 200, reply.text);
  const { body } = await script.request(before);
  const expected = `${model(mistral.model)}${said}} ${answered},"prefix":true} ] }`;
  assert.equal(body.toString(), expected);
});
