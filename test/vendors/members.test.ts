/**
 * D13: each top-level member reaches each vendor in a form that it takes, or not at all. What is taken keeps its bytes,
 * a note names each change, and `strict` refuses the request instead.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { hasNoEffect } from '../../src/dialects/openai-chat/relay/edits.ts';
import { isInSample, runsNow } from '../support/depth.ts';
import { send, type Reply } from '../support/http.ts';
import { readDocument, readStream } from '../support/reading.ts';
import { unnamedChanges } from './changes.ts';
import { memberShapes, promiseShapes } from './members.ts';
import { unreadOf, type VendorRules } from './rules.ts';
import type { Shape } from './shapes.ts';
import { startStrictVendors, strictName, type StrictVendors } from './strict.ts';
import { vendors } from './tables.ts';

let strict: StrictVendors;
before(async () => {
  strict = await startStrictVendors();
});
after(() => strict.stop());

async function ask(body: JsonObject): Promise<Reply> {
  return await send(`${strict.gateway.url}/v1/chat/completions`, pretty(body));
}

/** With white space that a rewritten body would lose. */
function pretty(body: JsonObject): Buffer {
  return Buffer.from(JSON.stringify(body, null, 2));
}

async function reaches(rules: VendorRules, { body: asked }: Shape): Promise<void> {
  const script = strict.script(rules);
  const body: JsonObject = { model: `${rules.provider}/${rules.model}`, ...asked };
  const refusedBefore = strict.refusals(rules).length;
  const first = script.requests.length;
  const reply = await ask(body);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(strict.refusals(rules).slice(refusedBefore), [], 'nothing was refused');
  assert.equal(script.requests.length, first + 1, 'asked once');
  const received = script.requests[first];
  assert.ok(received !== undefined);
  const unread = unreadOf(rules, received.json).filter((name) => received.json[name] !== null);
  assert.deepEqual(unread, [], 'what the vendor skips is not sent');
  const streams = body['stream'] === true;
  const seen = streams ? readStream('chat', reply.text) : readDocument('chat', reply.json);
  assert.equal(seen.text, 'ok');
  const notes = String(reply.headers['x-gateway-notes'] ?? '');
  const missing = unnamedChanges(body, received.json, notes).filter(
    (name) => !hasNoEffect(name, body[name]) && !(name === 'messages' && isInstructed(notes)),
  );
  assert.deepEqual(missing, [], notes);
  const again = await ask({ ...body, model: strictName(rules.model) });
  if (notes === '') {
    assert.equal(again.status, 200, again.text);
    if (isSame(body, received.json)) {
      const own = pretty({ ...body, model: rules.model }).toString();
      assert.equal(received.body.toString(), own, 'the bytes are as they were');
    }
    return;
  }
  assert.equal(again.status, 400, again.text);
  assert.match(again.text, /unsupported_parameter/);
  assert.equal(script.requests.length, first + 1, 'strict: nothing was sent');
}

/** The note of the format tells of the instruction as well. */
function isInstructed(notes: string): boolean {
  return notes.includes('response_format: changed, asked for in the prompt');
}

function isSame(sent: JsonObject, received: JsonObject): boolean {
  const { model: _model, ...own } = sent;
  const { model: _other, ...got } = received;
  return JSON.stringify(own) === JSON.stringify(got);
}

for (const [i, rules] of vendors.entries()) {
  describe(`${rules.provider}/${rules.model}`, () => {
    const sample = memberShapes.filter((_, j) => isInSample(i + j, 13));
    for (const shape of sample) test(`D13 ${shape.name}`, () => reaches(rules, shape));

    for (const shape of runsNow(true) ? promiseShapes : []) {
      test(`D13 kept or refused: ${shape.name}`, async () => {
        const before = strict.refusals(rules).length;
        const reply = await ask({ model: `${rules.provider}/${rules.model}`, ...shape.body });
        assert.deepEqual(strict.refusals(rules).slice(before), [], 'nothing was refused');
        if (reply.status !== 200) assert.match(reply.text, /unsupported_parameter/);
        else assert.equal(reply.headers['x-gateway-notes'], undefined);
      });
    }
  });
}

for (const rules of runsNow(true) ? vendors : []) {
  const model = `${rules.provider}/${rules.model}`;
  const instructions = [
    {
      role: 'system',
      content: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
    },
    { role: 'user', content: 'What time is it?' },
  ];

  test(`D13 ${model}: an instruction for the format undoes no other edit of the instructions`, async () => {
    const before = strict.refusals(rules).length;
    const json_schema = { name: 'time', schema: { type: 'object', properties: {} } };
    const response_format = { type: 'json_schema', json_schema };
    const reply = await ask({ model, messages: instructions, response_format });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(strict.refusals(rules).slice(before), [], 'nothing was refused');
  });

  test(`D13 ${model}: log probabilities are told or noted where the gateway cuts the answer`, async () => {
    const script = strict.script(rules);
    const first = script.requests.length;
    const stop = Array.from({ length: 17 }, (_, i) => `END${i}`);
    const messages = instructions.slice(1);
    const reply = await ask({ model, messages, stop, logprobs: true, top_logprobs: 2 });
    assert.equal(reply.status, 200, reply.text);
    const { json } = await script.request(first);
    const told = reply.headers['x-gateway-mode'] === 'relay' && json['logprobs'] === true;
    const notes = String(reply.headers['x-gateway-notes']);
    assert.equal(notes.includes('top_logprobs: dropped'), !told, notes);
    assert.equal(json['top_logprobs'], told ? 2 : undefined);
  });

  test(`D13 ${model}: spoken answers are not asked for where the gateway would cut the text alone`, async () => {
    const stop = Array.from({ length: 17 }, (_, i) => `END${i}`);
    const spoken = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } };
    const messages = instructions.slice(1);
    const reply = await ask({ model, messages, stop, ...spoken });
    if (reply.status === 200) assert.equal(reply.headers['x-gateway-mode'], 'relay');
    else assert.match(reply.text, /unsupported_parameter/);
  });
}
