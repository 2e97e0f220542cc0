/** Clients' connections as clients use them: left in the middle of a body (F70), with requests behind each other (F77). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { talkRaw } from '../inputs/raw-client.ts';
import { openRaw, startOverloadRig, until, type OverloadRig } from '../overload/overload-rig.ts';
import { clientKey } from '../support/keys.ts';
import { clientDialects } from '../support/dialects.ts';
import { numberAt, objectAt, readDocument, type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { answerIn } from '../upstream/reply.ts';

let rig: OverloadRig;
before(async () => {
  rig = await startOverloadRig();
});
after(() => rig.stop());

const rowName = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
} as const;

function rawCall(dialect: AnyDialect, model: string): string {
  const body = JSON.stringify(requestBody(dialect, { model, stream: false }));
  return [
    `POST ${endpointOf[dialect]} HTTP/1.1`,
    'Host: gateway',
    `Authorization: Bearer ${clientKey}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
}

for (const dialect of clientDialects) {
  test(`F70 a client leaves in the middle of its body: no upstream, nothing held, no charge, ${dialect}`, async () => {
    const { model, script } = rig.play(dialect, answerIn(dialect, { text: 'Never.' }, false));
    const held = async (): Promise<unknown> => (await rig.status())['calls_held'];
    const { socket } = await openRaw(rig.gateway.url, rawCall(dialect, model).slice(0, -5));
    await until('its place is taken', async () => (await held()) === 1);
    socket.destroy();
    await until('its place is free', async () => (await held()) === 0);
    assert.equal((await rig.status())['body_memory'], 0);
    // Its model was never read.
    const rows = await rig.gateway.callRows('', 1);
    const row = rows.find(({ endpoint }) => endpoint === rowName[dialect]);
    assert.equal(row?.['outcome'], 'canceled');
    assert.equal(row?.['attempts'], 0);
    assert.equal(numberAt(objectAt(row ?? {}, 'charged'), 'output_tokens'), 0);
    assert.equal(script.requests.length, 0);
  });

  test(`F71 a client leaves while its model is looked for: no upstream, nothing held, ${dialect}`, async (t) => {
    // A provider that takes its time to say what it has; it is the only one that has this model.
    const asked = Promise.withResolvers<ServerResponse>();
    const calls: string[] = [];
    const server = createServer((request, response) => {
      calls.push(`${request.method} ${request.url}`);
      asked.resolve(response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const slow = { dialect: 'openai-chat', base_url: `http://127.0.0.1:${port}/v1`, api_key: 'k' };
    const other = await startOverloadRig({ providers: { slow } });
    t.after(() => other.stop());
    const { socket } = await openRaw(other.gateway.url, rawCall(dialect, 'only-there'));
    const list = await asked.promise;
    socket.destroy();
    await once(socket, 'close');
    // What comes on another connection afterwards is read behind its end.
    await other.status();
    list.setHeader('content-type', 'application/json');
    list.end(JSON.stringify({ object: 'list', data: [{ id: 'only-there', object: 'model' }] }));
    await until('its place is free', async () => (await other.status())['calls_held'] === 0);
    const [row] = await other.gateway.callRows('only-there', 1);
    assert.equal(row?.['outcome'], 'canceled');
    assert.equal(row?.['attempts'], 0);
    assert.deepEqual(
      calls.filter((call) => call.startsWith('POST')),
      [],
    );
  });

  test(`F77 requests behind each other have their answers in order and a row each, ${dialect}`, async () => {
    const slow = Promise.withResolvers<void>();
    const [first, second, third] = ['first', 'second', 'third'].map((text, at) => {
      const answer = answerIn(dialect, { text }, false);
      const body = typeof answer.body === 'string' ? answer.body : '';
      const headers = { 'content-type': 'application/json' };
      const late = { ...answer, headers, body: [slow.promise, body] };
      return rig.play(dialect, at === 0 ? late : answer);
    });
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const sent = [first, second, third].map(({ model }) => rawCall(dialect, model)).join('');
    const talk = talkRaw(rig.gateway.url, sent, 3);
    // The others are not asked before they have their turn (F-10).
    await first.script.request(0);
    assert.equal(second.script.requests.length + third.script.requests.length, 0);
    slow.resolve();
    const { answers, usable } = await talk;
    assert.ok(usable);
    const texts = answers.map(({ body }) => readDocument(dialect, tryParseObject(body) ?? {}).text);
    assert.deepEqual(texts, ['first', 'second', 'third']);
    const ids = new Set(answers.map(({ headers }) => headers.get('x-request-id')));
    assert.equal(ids.size, 3);
    for (const { model } of [first, second, third]) {
      const [row] = await rig.gateway.callRows(model, 1);
      assert.equal(row?.['outcome'], 'ok');
      assert.ok(ids.has(String(row?.['id'])));
    }
  });
}
