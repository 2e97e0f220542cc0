/** The scripted upstream itself: a test that trusts it must be able to. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { send } from '../support/http.ts';
import { everyBytes, randomSplit, ScriptedUpstream, type Answer } from './scripted.ts';

let upstream: ScriptedUpstream;
before(async () => {
  upstream = await ScriptedUpstream.start();
});
after(() => upstream.close());

let count = 0;
async function ask(answer: Answer): ReturnType<typeof send> {
  count += 1;
  upstream.script(`m${count}`, answer);
  return send(`http://127.0.0.1:${upstream.port}/v1/x?y=1`, { model: `m${count}` });
}

test('bodies of a length, in chunks, and up to the end of the connection arrive whole', async () => {
  for (const framing of ['length', 'chunked', 'close'] as const) {
    const reply = await ask({ body: ['Hel', 'lo'], framing });
    assert.equal(reply.text, 'Hello', framing);
    assert.ok(reply.complete, framing);
  }
});

test('each part of a split is one read of the client', async () => {
  const reads: string[] = [];
  upstream.script('split', { body: 'abcdef', framing: 'chunked', split: everyBytes(2) });
  await send(
    `http://127.0.0.1:${upstream.port}/`,
    { model: 'split' },
    { onData: (chunk) => void reads.push(chunk.toString()) },
  );
  assert.equal(reads.join(''), 'abcdef');
  const bytes = Buffer.from('abcdefghij');
  const parts = randomSplit(7, 4)(bytes);
  assert.ok(Buffer.concat(parts).equals(bytes));
  assert.deepEqual(randomSplit(7, 4)(bytes), parts);
});

test('a reset and a missing end are seen as such', async () => {
  const cut = await ask({ body: ['Hel'], framing: 'chunked', ending: 'fin' });
  assert.equal(cut.complete, false);
  const short = await ask({ headers: { 'content-length': '10' }, body: 'Hel', ending: 'fin' });
  assert.equal(short.complete, false);
  await assert.rejects(ask({ body: '', mute: true, ending: 'reset' }));
  await assert.rejects(ask({ body: '', mute: true, ending: 'fin' }));
});

test('a request is kept as it came, and who closed its connection', async () => {
  const script = upstream.script('kept', { body: 'x', framing: 'chunked', ending: 'hang' });
  const abort = new AbortController();
  const reply = send(`http://127.0.0.1:${upstream.port}/v1/x?y=1`, '{ "model" : "kept" }', {
    headers: { 'X-Odd': 'Value' },
    signal: abort.signal,
  }).catch(() => undefined);
  const request = await script.request(0);
  assert.equal(request.method, 'POST');
  assert.equal(request.path, '/v1/x?y=1');
  assert.equal(request.body.toString(), '{ "model" : "kept" }');
  assert.ok(request.headerLines.some(([name, value]) => name === 'X-Odd' && value === 'Value'));
  abort.abort();
  await reply;
  assert.equal(await request.closed, 'gateway');
});

test('answers are played in turn, the last one for ever; a wait holds the next bytes back', async () => {
  const gate = Promise.withResolvers<void>();
  const script = upstream.script('turns', { body: ['a', gate.promise, 'b'] }, { body: 'second' });
  const url = `http://127.0.0.1:${upstream.port}/`;
  const texts: string[] = [];
  const onData = (chunk: Buffer): void => {
    texts.push(chunk.toString());
    gate.resolve();
  };
  assert.equal((await send(url, { model: 'turns' }, { onData })).text, 'ab');
  assert.deepEqual(texts, ['a', 'b']);
  assert.equal((await send(url, { model: 'turns' })).text, 'second');
  assert.equal((await send(url, { model: 'turns' })).text, 'second');
  assert.equal(script.requests.length, 3);
  assert.equal((await send(url, { model: 'nobody' })).status, 599);
  assert.equal(upstream.unexpected.length, 1);
});
