/** issue 8 point 2: who may scrape, in which format, and what clients can put into it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { startGateway } from '../../src/main.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { scrape, Scrape, scrapeUntil } from '../support/scrape.ts';
import { findProgram } from '../support/server-process.ts';
import { errorIn, replying } from '../upstream/reply.ts';

const usage = { fresh: 3, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 };
const scraperToken = 'only-for-metrics-0123456789';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

function asked(headers: { readonly [name: string]: string }, method = 'GET'): Promise<Response> {
  return fetch(`${rig.gateway.adminUrl}/metrics`, { method, headers });
}

const bearer = { authorization: `Bearer ${adminToken}` };

async function call(model: string, upstream: 'chat' | 'messages' = 'chat'): Promise<number> {
  const body = requestBody(upstream, { model, stream: false });
  return (await ask(rig, upstream, body)).status;
}

test('issue 8 S9 without the token there is no scrape, and no key of the data plane opens it', async () => {
  assert.equal((await asked({})).status, 401);
  assert.equal((await asked({ authorization: `Bearer ${clientKey}` })).status, 401);
  assert.equal((await asked({ authorization: 'Bearer wrong' })).status, 401);
  assert.equal((await asked(bearer)).status, 200);
  const data = await send(`${rig.gateway.url}/metrics`, undefined, { anonymous: true });
  assert.equal(data.status, 404, 'not on the data plane');
  assert.equal((await asked(bearer, 'POST')).status, 405);
  const head = await asked(bearer, 'HEAD');
  assert.equal(head.status, 200);
  assert.equal(await head.text(), '');
});

test('issue 8 a token for metrics opens metrics and nothing else', async () => {
  const directory = temporaryFolder('metrics');
  const start = (token: string): ReturnType<typeof startGateway> =>
    startGateway({
      flags: {
        listen: '127.0.0.1:0',
        'admin-listen': '127.0.0.1:0',
        'data-dir': directory,
        'log-level': 'silent',
      },
      env: {
        MODEL_GATEWAY_KEY: clientKey,
        MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
        MODEL_GATEWAY_METRICS_TOKEN: token,
      },
      cwd: directory,
      load: () => () => undefined,
    });
  await assert.rejects(start('short'), /MODEL_GATEWAY_METRICS_TOKEN/);
  await assert.rejects(start(clientKey), /MODEL_GATEWAY_METRICS_TOKEN must not be a key/);
  await assert.rejects(start(adminToken), /MODEL_GATEWAY_METRICS_TOKEN must not be the admin/);
  const running = await start(scraperToken);
  try {
    const scraped = await scrape(running.adminUrl, scraperToken);
    assert.equal(scraped.one('model_gateway_ready'), 1);
    assert.ok((await scrape(running.adminUrl)).names.has('model_gateway_ready'));
    const headers = { authorization: `Bearer ${scraperToken}` };
    for (const path of ['/api/keys', '/api/status', '/api/metrics', '/metrics/', '/metricsx']) {
      const reply = await send(running.adminUrl + path, undefined, { headers });
      assert.ok(reply.status === 401 || reply.status === 429, `${path}: ${reply.status}`);
    }
    const made = await send(`${running.adminUrl}/api/keys`, { name: 'x' }, { headers });
    assert.ok(made.status === 401 || made.status === 429);
    const models = await send(`${running.url}/v1/models`, undefined, { headers });
    assert.equal(models.status, 401, 'it is no key');
    // Wrong tokens from here were many: the right one opens all the while.
    await scrape(running.adminUrl, scraperToken);
    assert.doesNotMatch(scraped.text, /0123456789/);
  } finally {
    await running.stop();
  }
});

test('issue 8 the format goes by accept: OpenMetrics with units and exemplars, else plain text', async () => {
  const { model } = rig.play('chat', replying('chat', { text: 'Hi.', usage }));
  const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: true }));
  const prometheus =
    'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
  const plainOnes = [
    'text/plain',
    '*/*',
    '',
    'application/openmetrics-text;q=0.1,text/plain;q=0.9',
  ];
  for (const accept of plainOnes) {
    const plain = await asked({ ...bearer, accept });
    assert.equal(plain.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    const text = await plain.text();
    assert.doesNotMatch(text, /# (UNIT|EOF)| # \{/);
    assert.ok(new Scrape(text).samples.length > 100);
  }
  await rig.gateway.callRow(String(reply.headers['x-request-id']));
  const open = await asked({ ...bearer, accept: prometheus });
  assert.equal(
    open.headers.get('content-type'),
    'application/openmetrics-text; version=1.0.0; charset=utf-8',
  );
  const text = await open.text();
  assert.ok(text.endsWith('\n# EOF\n'));
  assert.match(text, /^# UNIT gen_ai_server_request_duration_seconds seconds$/m);
  assert.match(text, /^# TYPE model_gateway_calls counter$/m);
  assert.match(text, /^gen_ai_client_token_usage_bucket\{.*le="1.0"\} /m);
  const id = String(reply.headers['x-request-id']);
  const exemplar = new RegExp(
    `^gen_ai_server_request_duration_seconds_bucket\\{.*\\} \\d+ # \\{call_id="${id}"\\} [\\d.e-]+ \\d{10}\\.\\d{3}$`,
    'm',
  );
  assert.match(text, exemplar);
  const gzipped = await send(`${rig.gateway.adminUrl}/metrics`, undefined, {
    headers: { ...bearer, 'accept-encoding': 'gzip' },
  });
  assert.equal(gzipped.headers['content-encoding'], 'gzip');
  const whole = await send(`${rig.gateway.adminUrl}/metrics`, undefined, {
    headers: { ...bearer, 'accept-encoding': 'gzip;q=0, identity' },
  });
  assert.equal(whole.headers['content-encoding'], undefined);
});

test('issue 8 B49 B65 no name of a client makes a line, a series without end, or a terminal obey', async () => {
  const evil = 'a"} 1 up{x="\\\u001b[2J\u202e\u200b é';
  rig.upstreams.chat.script(evil, replying('chat', { text: 'Hi.', usage }));
  const before = (await scrape(rig.gateway.adminUrl)).samples.length;
  await call(`up-chat/${evil}`);
  for (const unseen of ['\u200b', '\u200c', '\u202e']) {
    rig.upstreams.chat.script(`twin${unseen}`, replying('chat', { text: 'Hi.', usage }));
    assert.equal(await call(`up-chat/twin${unseen}`), 200);
  }
  for (const name of ['out\u200b', 'out\u200c', 'out\u202e', `out-${'o'.repeat(200)}`]) {
    rig.upstreams.chat.script(name, errorIn('chat', 500, 'broken'));
    for (let i = 0; i < 3; i += 1) assert.equal(await call(`up-chat/${name}`), 502);
  }
  for (let i = 0; i < 50; i += 1) {
    rig.upstreams.chat.script(`junk-${i}`, errorIn('chat', 404, 'no such model'));
    assert.equal(await call(`up-chat/junk-${i}`), 404);
  }
  const failed = { gen_ai_request_model: 'other', error_type: 'model_not_found' };
  const durations = 'gen_ai_server_request_duration_seconds_count';
  const refused = await scrapeUntil(
    rig.gateway.adminUrl,
    (scraped) => scraped.sum(durations, failed) >= 50,
  );
  assert.doesNotMatch(refused.text, /junk-/, 'only what answers gets a name');
  assert.doesNotMatch(refused.text.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  assert.equal(refused.sum('up'), 0);
  const lines = refused.text.split('\n').map((line) => line.slice(0, line.lastIndexOf(' ')));
  const series = lines.filter((line) => line !== '' && !line.startsWith('#'));
  assert.equal(
    new Set(series).size,
    series.length,
    'names that look the same make no series twice',
  );
  assert.equal(refused.one(durations, failed), 50);
  assert.doesNotMatch(refused.text, /o{180}/);
  assert.ok(refused.one('model_gateway_target_state', { target: 'other' }) > 0);
  for (let i = 0; i < 400; i += 1) {
    rig.upstreams.chat.script(`real-${i}`, replying('chat', { text: 'Hi.', usage }));
    assert.equal(await call(`up-chat/real-${i}`), 200);
  }
  const full = await scrape(rig.gateway.adminUrl);
  assert.equal(full.sum(durations, { gen_ai_provider_name: 'up-chat' }) >= 450, true);
  const named = new Set(full.samples.map(({ labels }) => labels['gen_ai_request_model']));
  assert.ok(named.size <= 153 && named.size > 140, `${named.size} names`);
  // Less than a hundred lines each.
  assert.ok(full.samples.length < before + 100 * 153 + 25 * 200, String(full.samples.length));
  const long = 'l'.repeat(2000);
  rig.upstreams.chat.script(long, replying('chat', { text: 'Hi.', usage }));
  await call(`up-chat/${long}`);
  assert.doesNotMatch((await scrape(rig.gateway.adminUrl)).text, /l{200}/);
});

const promtool = findProgram(['promtool']);
if (promtool === undefined) {
  process.stderr.write('promtool is not installed (Debian: prometheus): its checks are left out\n');
} else {
  test("issue 8 Prometheus' own linter has nothing to say", async () => {
    const { text } = await scrape(rig.gateway.adminUrl);
    const { status, stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], { input: text });
    assert.equal(status, 0, stdout.toString() + stderr.toString());
    assert.equal(stdout.toString() + stderr.toString(), '');
  });
}
