import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HttpClient } from '../../../src/wire/http-client.ts';
import { requestWhole, type WholeAnswerLimits } from '../../../src/wire/exchange.ts';
import { ScriptedUpstream } from '../../upstream/scripted.ts';

const client = new HttpClient();
let upstream: ScriptedUpstream;
before(async () => {
  upstream = await ScriptedUpstream.start();
});
after(async () => {
  await client.close();
  await upstream.close();
});

function asked(path: string, limits: Partial<WholeAnswerLimits> = {}): Promise<unknown> {
  const endpoint = { origin: `http://127.0.0.1:${upstream.port}`, path, headers: [] };
  const request = { endpoint, method: 'GET', headers: [], connectMs: 2000 } as const;
  return requestWhole(client, request, { timeoutMs: 10_000, maxBytes: 100, ...limits });
}

test('E10 for a client that left before the question no counter is called', async () => {
  const script = upstream.script('/left', { body: '{}' });
  await assert.rejects(asked('/left', { signal: AbortSignal.abort() }), { code: 'canceled' });
  upstream.script('/next', { body: '{}' });
  await asked('/next');
  assert.equal(script.requests.length, 0);
});

test('E3 an answer beyond the limit is none', async () => {
  upstream.script('/large', { body: 'x'.repeat(101) });
  await assert.rejects(asked('/large'), { code: 'upstream_invalid' });
});

test('R7 silence ends at the time limit, and its connection with it', async () => {
  const script = upstream.script('/silent', { body: '', mute: true, ending: 'hang' });
  await assert.rejects(asked('/silent', { timeoutMs: 50 }), { code: 'timeout' });
  assert.equal(await (await script.request(0)).closed, 'gateway');
});
