/** Content logging by key (docs/user/content.md): what is kept of a call, and what never is (S4, S13, S14). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { startLimitedRig, type LimitedKey, type LimitedRig } from '../limits/limited-rig.ts';
import { send, type Reply } from '../support/http.ts';
import { allDialects, objectAt } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { chatChunk, chatDone, chatFrame } from '../upstream/chat.ts';
import { errorIn, replying } from '../upstream/reply.ts';

let rig: LimitedRig;
let logged: LimitedKey;
before(async () => {
  rig = await startLimitedRig({ content: { body: '4KiB' } });
  logged = await rig.key({ log_content: true });
});
after(() => rig.stop());

async function contentOf(reply: Reply): Promise<JsonObject> {
  return rig.admin('GET', `/api/calls/${String(reply.headers['x-request-id'])}/content`);
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Header by name; undefined when it is not there. */
function header(of: JsonObject, name: string): unknown {
  return listOf(of['headers']).find((each) => each['name'] === name)?.['value'];
}

for (const dialect of allDialects) {
  for (const upstream of allDialects) {
    for (const stream of [false, true]) {
      const what = `${dialect}, ${upstream} upstream, ${stream ? 'stream' : 'document'}`;
      test(`what was asked and answered is kept: ${what}`, async () => {
        const { model } = rig.play(upstream, replying(upstream, { text: 'Well, hello there' }));
        const body = requestBody(dialect, { model, stream });
        const reply = await rig.call(logged, dialect, body);
        const content = await contentOf(reply);
        assert.equal(content['state'], 'kept');
        assert.equal(content['logged_now'], true);
        const request = objectAt(content, 'request');
        assert.deepEqual([request['method'], request['path']], ['POST', endpointOf[dialect]]);
        assert.deepEqual(objectAt(request, 'body')['content'], body);
        assert.equal(objectAt(request, 'body')['cut'], false);
        assert.equal(header(request, 'content-type'), 'application/json');
        assert.equal(header(request, 'authorization'), null);
        const answer = objectAt(content, 'answer');
        assert.deepEqual([answer['status'], answer['whole']], [200, true]);
        assert.equal(header(answer, 'x-request-id'), reply.headers['x-request-id']);
        const kept = objectAt(answer, 'body');
        assert.equal(kept['bytes'], reply.bytes.length);
        if (stream) {
          assert.equal(kept['form'], 'events');
          assert.match(JSON.stringify(kept['content']), /"Well, hello there"/);
        } else assert.deepEqual(kept['content'], reply.json);
      });
    }
  }
}

describe('who is not asked to be logged', () => {
  test('a key is off by default: nothing of its calls is kept, and that is reported', async () => {
    const quiet = await rig.key();
    const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const reply = await rig.call(quiet, 'chat', requestBody('chat', { model, stream: false }));
    const content = await contentOf(reply);
    assert.deepEqual(
      { ...content, id: '' },
      { id: '', state: 'absent', logged_now: false, request: null, answer: null, attempts: [] },
    );
  });

  test('it can be switched on and off; the audit log says so', async () => {
    const key = await rig.key();
    const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const states: unknown[] = [];
    for (const on of [true, false]) {
      await rig.admin('PATCH', `/api/keys/${key.id}`, { log_content: on });
      const reply = await rig.call(key, 'chat', requestBody('chat', { model, stream: false }));
      states.push((await contentOf(reply))['state']);
    }
    assert.deepEqual(states, ['kept', 'absent']);
    const { entries } = await rig.admin('GET', `/api/audit?subject=key:${key.id}`);
    const switched = listOf(entries).map((each) => objectAt(each, 'after')['log_content']);
    assert.deepEqual(switched, [false, true, false]);
  });

  test('a call that is not there has none', async () => {
    await assert.rejects(rig.admin('GET', '/api/calls/req_nobody/content'), /404/);
  });
});

describe('failures', () => {
  test('S14 what an upstream said when it failed is kept without our credentials', async () => {
    const { model } = rig.play(
      'chat',
      (request) => errorIn('chat', 401, `no: ${request.header('authorization')}`),
      replying('chat', { text: 'Hello' }),
    );
    const reply = await rig.call(logged, 'chat', requestBody('chat', { model, stream: false }));
    const content = await contentOf(reply);
    const [failed] = listOf(content['attempts']);
    assert.ok(failed !== undefined);
    assert.deepEqual([failed['target'], failed['status']], [model, 401]);
    assert.match(JSON.stringify(failed), /\[redacted\]/);
    assert.doesNotMatch(JSON.stringify(content), /Bearer/);
  });

  test('a refused call is kept with its answer', async () => {
    const body = requestBody('messages', { model: 'nobody/has-it', stream: false });
    const reply = await rig.call(logged, 'messages', body);
    assert.equal(reply.status, 404);
    const content = await contentOf(reply);
    assert.deepEqual(objectAt(objectAt(content, 'answer'), 'body')['content'], reply.json);
    assert.deepEqual(objectAt(objectAt(content, 'request'), 'body')['content'], body);
  });

  test('a stream that broke is kept as far as it came, and said to be no whole', async () => {
    const piece = { choices: [{ index: 0, delta: { content: 'half of ' }, finish_reason: null }] };
    const { model } = rig.play('chat', {
      headers: { 'content-type': 'text/event-stream' },
      body: [`data: ${JSON.stringify(piece)}\n\n`],
      ending: 'reset',
    });
    const reply = await rig.call(logged, 'chat', requestBody('chat', { model, stream: true }));
    const answer = objectAt(await contentOf(reply), 'answer');
    assert.match(JSON.stringify(answer['body']), /half of /);
    assert.match(JSON.stringify(answer['body']), /"error"/);
  });

  test('what is no JSON is kept as text', async () => {
    const reply = await send(rig.gateway.url + endpointOf.chat, '{"model": nonsense', {
      headers: logged.headers,
    });
    assert.equal(reply.status, 400);
    const kept = objectAt(objectAt(await contentOf(reply), 'request'), 'body');
    assert.deepEqual([kept['form'], kept['content']], ['text', '{"model": nonsense']);
  });

  test('E17 an answer that is given again is no call, and has no content of its own', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Once' }));
    const body = requestBody('chat', { model, stream: false });
    const sent = { 'idempotency-key': 'once-and-again' };
    const first = await rig.call(logged, 'chat', body, sent);
    const again = await rig.call(logged, 'chat', body, sent);
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.equal((await contentOf(first))['state'], 'kept');
    await assert.rejects(contentOf(again), /404/);
  });
});

describe('what is taken out', () => {
  test('S4 keys in prompts and answers, and the key of the call itself', async () => {
    const secret = `sk-proj-${'aB3'.repeat(12)}`;
    const { model } = rig.play('chat', replying('chat', { text: `Your key is ${secret}, yes` }));
    const body = requestBody('chat', {
      model,
      stream: false,
      more: { messages: [{ role: 'user', content: `mine: ${secret}, and ${logged.key}` }] },
    });
    const content = JSON.stringify(await contentOf(await rig.call(logged, 'chat', body)));
    assert.ok(!content.includes(secret) && !content.includes(logged.key));
    assert.match(content, /Your key is \[redacted\], yes/);
  });

  test('S4 a key that a stream contains in pieces', async () => {
    const secret = `sk-proj-${'aB3'.repeat(12)}`;
    const frames = [...`it is ${secret} here`].map((content) => {
      const choices = [{ index: 0, delta: { content }, finish_reason: null }];
      return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices })}\n\n`;
    });
    const finish = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`;
    for (const dialect of allDialects) {
      const { model } = rig.play('chat', {
        headers: { 'content-type': 'text/event-stream' },
        body: [...frames, finish, 'data: [DONE]\n\n'],
      });
      const reply = await rig.call(logged, dialect, requestBody(dialect, { model, stream: true }));
      const content = JSON.stringify(await contentOf(reply));
      assert.match(content, /it is \[redacted\] here/, dialect);
      assert.doesNotMatch(content, /aB3/, dialect);
    }
  });

  test('bytes of media: their type and size stand there instead', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'A picture' }));
    const image = Buffer.alloc(3000, 'picture').toString('base64');
    const url = `data:image/png;base64,${image}`;
    const parts = [
      { type: 'text', text: 'What is it?' },
      { type: 'image_url', image_url: { url } },
    ];
    const body = requestBody('chat', {
      model,
      stream: false,
      more: { messages: [{ role: 'user', content: parts }] },
    });
    const content = JSON.stringify(await contentOf(await rig.call(logged, 'chat', body)));
    assert.match(content, /\[image\/png, 3000 bytes left out\]/);
    assert.match(content, /What is it\?/);
  });

  test('headers that are not known to be harmless: their names stay', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
    const reply = await rig.call(logged, 'chat', requestBody('chat', { model, stream: false }), {
      'x-internal-token': 'something secret',
      'user-agent': 'a client/1.0',
      cookie: 'a=b',
    });
    const content = await contentOf(reply);
    const request = objectAt(content, 'request');
    assert.equal(header(request, 'x-internal-token'), null);
    assert.equal(header(request, 'cookie'), null);
    assert.equal(header(request, 'user-agent'), 'a client/1.0');
    assert.doesNotMatch(JSON.stringify(content), /something secret/);
  });

  test('the middle of what is too long; that it is cut is reported', async () => {
    const { model } = rig.play('chat', replying('chat', { text: 'Long' }));
    const long = `beginning ${'word '.repeat(4000)} end`;
    const body = requestBody('chat', {
      model,
      stream: false,
      more: { messages: [{ role: 'user', content: long }] },
    });
    const request = objectAt(await contentOf(await rig.call(logged, 'chat', body)), 'request');
    const kept = objectAt(request, 'body');
    const text = String(kept['content']);
    assert.deepEqual([kept['cut'], kept['form']], [true, 'text']);
    assert.equal(kept['bytes'], Buffer.byteLength(JSON.stringify(body)));
    assert.ok(text.length < 4096 + 100);
    assert.match(text, /beginning[^]*characters left out[^]* end"/);
  });
});

test('S4 a call that ran while its key was forgotten brings nothing back, and the next one is kept', async () => {
  const go = Promise.withResolvers<void>();
  const said = chatFrame(chatChunk({ role: 'assistant', content: 'Hello' }, 'stop'));
  const { model, script } = rig.play(
    'chat',
    { body: [go.promise, said, chatDone] },
    replying('chat', { text: 'Hello' }),
  );
  const body = requestBody('chat', { model, stream: true });
  const key = await rig.key({ log_content: true });
  const running = rig.call(key, 'chat', body);
  await script.request(0);
  assert.deepEqual(await rig.admin('DELETE', `/api/keys/${key.id}/content`), { removed: 0 });
  go.resolve();
  const [ran, next] = [await running, await rig.call(key, 'chat', body)];
  assert.deepEqual([ran.status, next.status], [200, 200]);
  assert.equal((await contentOf(ran))['state'], 'absent');
  assert.equal((await contentOf(next))['state'], 'kept');
});

test('what was kept of a key is removed when that is wished, and of no other key', async () => {
  const { model } = rig.play('chat', replying('chat', { text: 'Hello' }));
  const body = requestBody('chat', { model, stream: false });
  const key = await rig.key({ log_content: true });
  const [ours, theirs] = [await rig.call(key, 'chat', body), await rig.call(logged, 'chat', body)];
  assert.deepEqual(await rig.admin('DELETE', `/api/keys/${key.id}/content`), { removed: 1 });
  assert.equal((await contentOf(ours))['state'], 'absent');
  assert.equal((await contentOf(theirs))['state'], 'kept');
  const { entries } = await rig.admin('GET', `/api/audit?subject=key:${key.id}`);
  assert.equal(listOf(entries)[0]?.['action'], 'key.content.delete');
  await assert.rejects(rig.admin('DELETE', '/api/keys/nobody/content'), /404/);
});
