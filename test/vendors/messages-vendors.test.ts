/**
 * D13: every shape of request of all dialects reaches every server of the messages dialect and is answered:
 * Claude of each generation and the messages addresses of other vendors refuse what the real ones refuse,
 * nothing that they skip is sent to them, and a note names each change of a relayed request.
 */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { isInSample } from '../support/depth.ts';
import { send, type Reply } from '../support/http.ts';
import { readDocument, readStream } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { ScriptedUpstream, type Script } from '../upstream/scripted.ts';
import { messagesFaults, messagesVendors, type MessagesRules } from './messages-rules.ts';
import { messagesShapes, type MessagesShape } from './messages-shapes.ts';

let gateway: TestGateway;
let upstream: ScriptedUpstream;
const scripts = new Map<MessagesRules, Script>();
before(async () => {
  upstream = await ScriptedUpstream.start();
  const base_url = `http://127.0.0.1:${upstream.port}`;
  for (const rules of messagesVendors) {
    const taken = replying('messages', { text: 'ok' });
    scripts.set(
      rules,
      upstream.script(rules.model, (request) => {
        const [message] = messagesFaults(rules, request.json);
        if (message === undefined) return typeof taken === 'function' ? taken(request) : taken;
        const error = { type: 'invalid_request_error', message };
        return { status: 400, body: JSON.stringify({ type: 'error', error }) };
      }),
    );
  }
  const declared = messagesVendors.map((rules): readonly [string, JsonObject] => [
    providerOf(rules),
    { base_url, api_key: 'k', ...rules.config },
  ]);
  gateway = await startTestGateway({
    providers: Object.fromEntries(declared),
    models: Object.fromEntries(
      messagesVendors.map((rules) => [
        `strict-${rules.model}`,
        { targets: [`${providerOf(rules)}/${rules.model}`], strict: true },
      ]),
    ),
  });
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

function providerOf({ name, config }: MessagesRules): string {
  return config === undefined ? 'anthropic' : `at-${name.toLowerCase().replace(/\W/g, '-')}`;
}

/** Whether the server can be shown what the shape holds. */
function isShowable({ images }: MessagesRules, { image }: MessagesShape): boolean {
  return image === undefined || images === 'url' || images === image;
}

/** Top-level members that a relayed request has otherwise than it was sent, and no note names. */
function unnamed(sent: JsonObject, arrived: JsonObject, notes: string): readonly string[] {
  const named = notes.split('; ').map((note) => note.slice(0, note.search(/[.:]/)));
  const changed = (key: string): boolean => !isDeepStrictEqual(sent[key], arrived[key]);
  const own = new Set(['model', ...named]);
  // A switch of thinking stands for the choice that a note names, and instructions for a format.
  if (named.includes('tool_choice')) own.add('thinking').add('tools');
  if (named.some((name) => name.startsWith('output_'))) own.add('system').add('output_config');
  if (named.includes('thinking')) own.add('output_config');
  return [...new Set([...Object.keys(sent), ...Object.keys(arrived)])].filter(
    (key) => changed(key) && !own.has(key),
  );
}

async function ask(model: string, shape: MessagesShape): Promise<Reply> {
  return send(gateway.url + endpointOf[shape.dialect], { model, ...shape.body });
}

async function reaches(rules: MessagesRules, shape: MessagesShape): Promise<void> {
  const script = scripts.get(rules);
  assert.ok(script !== undefined);
  const before = script.requests.length;
  const reply = await ask(`${providerOf(rules)}/${rules.model}`, shape);
  if (!isShowable(rules, shape)) {
    assert.equal(reply.status, 400, reply.text);
    assert.equal(script.requests.length, before, 'nothing was sent');
    assert.match(reply.text, /image/);
    return;
  }
  const sent = script.requests[before]?.json ?? {};
  assert.deepEqual(messagesFaults(rules, sent), [], JSON.stringify(sent));
  assert.equal(reply.status, 200, reply.text);
  assert.equal(script.requests.length, before + 1, 'asked once');
  const streamed = shape.body['stream'] === true;
  const seen = streamed
    ? readStream(shape.dialect, reply.text)
    : readDocument(shape.dialect, reply.json);
  assert.equal(seen.text, 'ok');
  const notes = String(reply.headers['x-gateway-notes'] ?? '');
  if (shape.dialect === 'messages') {
    assert.equal(reply.headers['x-gateway-mode'], 'relay');
    const wanted = { model: '', ...shape.body };
    assert.deepEqual(unnamed(wanted, sent, notes), [], `${notes} ${JSON.stringify(sent)}`);
  }
  const strict = await ask(`strict-${rules.model}`, shape);
  assert.equal(strict.status, notes === '' ? 200 : 400, strict.text);
  assert.equal(script.requests.length, before + (notes === '' ? 2 : 1));
}

for (const [i, rules] of messagesVendors.entries()) {
  describe(rules.name, () => {
    for (const shape of messagesShapes.filter((_, j) => isInSample(i + j, 13))) {
      test(`D13 ${shape.dialect}: ${shape.name}`, () => reaches(rules, shape));
    }
  });
}
