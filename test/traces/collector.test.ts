/** issue 8.3, F95: collectors that are away, hang, crash and come back; what a stop still sends; OTEL_… variables. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { endlessAnswer } from '../limits/endless.ts';
import { startLimitedRig } from '../limits/limited-rig.ts';
import { makeCertificates, noOpenssl } from '../support/certificates.ts';
import { Collector } from '../support/otlp.ts';
import { requestBody } from '../support/requests.ts';
import { ask, startRig, type Rig, type RigConfig } from '../support/rig.ts';
import { scrape, scrapeUntil, type Scrape } from '../support/scrape.ts';
import { freePort } from '../support/server-process.ts';
import { answerIn } from '../upstream/reply.ts';

const soon = { OTEL_BSP_SCHEDULE_DELAY: '10' };

/** So many calls, which must all be answered; the id of the last one. */
async function calls(rig: Rig, count: number): Promise<string> {
  let id = '';
  for (let i = 0; i < count; i++) {
    const { model } = rig.play('chat', answerIn('chat', { text: 'Hello.' }, false));
    const reply = await ask(rig, 'chat', requestBody('chat', { model, stream: false }));
    assert.equal(reply.status, 200);
    id = String(reply.headers['x-request-id']);
  }
  return id;
}

async function withRig(
  config: RigConfig,
  env: { readonly [name: string]: string },
  body: (rig: Rig) => Promise<void>,
): Promise<void> {
  const rig = await startRig(config, { env });
  try {
    await body(rig);
  } finally {
    await rig.stop();
  }
}

test('F95 with a collector that is away every call is answered, and the gateway stops', async () => {
  const nobody = new Collector();
  const endpoint = await nobody.listen();
  nobody.close();
  await withRig({ traces: { endpoint } }, soon, async (rig) => void (await calls(rig, 20)));
});

test('F95 with a collector that hangs every call is answered, and the gateway stops', async () => {
  const collector = new Collector();
  collector.manner = 'hangs';
  const endpoint = await collector.listen();
  await withRig({ traces: { endpoint } }, soon, async (rig) => void (await calls(rig, 20)));
  assert.equal(collector.spans.length, 0);
  collector.close();
});

test('F95 spans that are refused are lost, those behind them arrive', async () => {
  const collector = new Collector();
  const endpoint = await collector.listen();
  await withRig({ traces: { endpoint } }, soon, async (rig) => {
    collector.manner = 'refuses';
    const lost = await calls(rig, 1);
    while (collector.paths.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    collector.manner = 'takes';
    await collector.ofCall(await calls(rig, 1));
    const ids = collector.spans.map(({ attributes }) => attributes['gateway.call_id']);
    assert.ok(!ids.includes(lost));
    const name = 'model_gateway_spans_total';
    const { adminUrl } = rig.gateway;
    const scraped = await scrapeUntil(adminUrl, (all) => all.one(name, { outcome: 'sent' }) === 2);
    assert.equal(scraped.one(name, { outcome: 'failed' }), 2);
    assert.equal(scraped.one(name, { outcome: 'dropped' }), 0);
    assert.equal(scraped.one('model_gateway_spans_waiting'), 0);
  });
  collector.close();
});

test('F95 a collector that crashes and comes back gets spans again', async () => {
  const first = new Collector();
  const endpoint = await first.listen(await freePort());
  const second = new Collector();
  await withRig({ traces: { endpoint, timeout: '1s' } }, soon, async (rig) => {
    await first.ofCall(await calls(rig, 1));
    first.close();
    await calls(rig, 5);
    await second.listen(Number(new URL(endpoint).port));
    // What was lost meanwhile is lost, and a busy machine may lose a later one: a second is all that each has.
    const later = new Set<unknown>();
    const hasArrived = (): boolean =>
      second.spans.some(({ attributes }) => later.has(attributes['gateway.call_id']));
    while (!hasArrived()) {
      later.add(await calls(rig, 1));
      const isSent = (all: Scrape): boolean => all.one('model_gateway_spans_waiting') === 0;
      await scrapeUntil(rig.gateway.adminUrl, isSent);
    }
  });
  second.close();
});

test('issue 8.3 a stop sends what waits', async () => {
  const collector = new Collector();
  const endpoint = await collector.listen();
  let id = '';
  const never = { OTEL_BSP_SCHEDULE_DELAY: '600000' };
  await withRig({ traces: { endpoint } }, never, async (rig) => {
    id = await calls(rig, 1);
    assert.equal(collector.spans.length, 0);
  });
  const spans = await collector.ofCall(id);
  assert.equal(spans.length, 2);
  collector.close();
});

test("issue 8.3 OpenTelemetry's own variables are enough", async () => {
  const collector = new Collector();
  const env = {
    ...soon,
    OTEL_EXPORTER_OTLP_ENDPOINT: `${await collector.listen()}/under`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-token=a%20b,x-other=1',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-other=2',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_SERVICE_NAME: 'by-variable',
    OTEL_RESOURCE_ATTRIBUTES: 'service.namespace=shop,service.name=other',
  };
  await withRig({}, env, async (rig) => {
    const [call] = await collector.ofCall(await calls(rig, 1));
    assert.equal(call?.resource['service.name'], 'by-variable');
    assert.equal(call.resource['service.namespace'], 'shop');
    const [headers] = collector.headers;
    assert.deepEqual(
      [headers?.['x-token'], headers?.['x-other'], headers?.['content-encoding']],
      ['a b', '2', 'gzip'],
    );
    assert.equal(collector.paths[0], '/under/v1/traces');
  });
  collector.close();
});

const certificates = await makeCertificates('gateway');
if (certificates === undefined) test(noOpenssl, () => undefined);
else {
  const { ca, server, client, stranger } = certificates;
  const read = (path: string): string => readFileSync(path, 'utf8');
  const tls = { cert: read(server.cert), key: read(server.key) };

  test("issue 8.3 S19 a collector behind TLS with its own authority, by OpenTelemetry's variables", async () => {
    const collector = new Collector(tls);
    const env = {
      ...soon,
      OTEL_EXPORTER_OTLP_ENDPOINT: await collector.listen(),
      OTEL_EXPORTER_OTLP_CERTIFICATE: ca,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20t',
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
    };
    await withRig({}, env, async (rig) => void (await collector.ofCall(await calls(rig, 1))));
    const [headers] = collector.headers;
    assert.deepEqual(
      [headers?.['authorization'], headers?.['content-encoding']],
      ['Bearer t', 'gzip'],
    );
    collector.close();
  });

  test('issue 8.3 S19 a collector without a trusted certificate gets nothing; calls are answered', async () => {
    const collector = new Collector(tls);
    const endpoint = await collector.listen();
    for (const trusted of [{}, { OTEL_EXPORTER_OTLP_CERTIFICATE: stranger }]) {
      const env = { ...soon, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...trusted };
      await withRig({ traces: { timeout: '1s' } }, env, async (rig) => {
        await calls(rig, 1);
        const name = 'model_gateway_spans_total';
        const { adminUrl } = rig.gateway;
        await scrapeUntil(adminUrl, (all) => all.one(name, { outcome: 'failed' }) === 2);
      });
    }
    assert.equal(collector.paths.length, 0);
    collector.close();
  });

  test('issue 8.3 a collector that asks for a certificate of ours gets the one of the file', async () => {
    const collector = new Collector({
      ...tls,
      ca: read(ca),
      requestCert: true,
      rejectUnauthorized: true,
    });
    const endpoint = await collector.listen();
    const traces = { endpoint, ca, cert: client.cert, key: client.key };
    await withRig({ traces }, soon, async (rig) => {
      await collector.ofCall(await calls(rig, 1));
    });
    collector.close();
  });

  test('issue 8.3 a certificate without its key, or a file that is none, stops the start with its place', async () => {
    const endpoint = 'https://localhost:4318';
    for (const [more, said] of [
      [{ cert: client.cert }, /traces: names only one of the client certificate and its key/],
      [
        { ca: '/no/such/file.pem' },
        /traces\.ca: the file of the collector's authority cannot be read/,
      ],
    ] as const) {
      await assert.rejects(
        withRig({ traces: { endpoint, ...more } }, soon, () => Promise.resolve()),
        said,
      );
    }
  });
}

test('issue 8.3 OTEL_SDK_DISABLED and OTEL_TRACES_EXPORTER=none turn it off', async () => {
  const collector = new Collector();
  const endpoint = await collector.listen();
  for (const off of [{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }] as const) {
    const env = { ...soon, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...off };
    await withRig({}, env as { [name: string]: string }, async (rig) => {
      await calls(rig, 2);
      const { names } = await scrape(rig.gateway.adminUrl);
      assert.ok(!names.has('model_gateway_spans_total'), 'absent, not 0');
    });
  }
  assert.equal(collector.paths.length, 0);
  collector.close();
});

test('issue 8.3 a share of the traces is sent where no parent decides', async () => {
  const collector = new Collector();
  const endpoint = await collector.listen();
  await withRig({ traces: { endpoint, sample: 0, follow: false } }, soon, async (rig) => {
    const { model } = rig.play('chat', answerIn('chat', { text: 'Hello.' }, false));
    const headers = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
    const body = requestBody('chat', { model, stream: false });
    assert.equal((await ask(rig, 'chat', body, { headers })).status, 200);
  });
  assert.equal(
    collector.spans.length,
    0,
    'not even at the stop, and not for a stranger who asks for it',
  );
  collector.close();
});

test('F63 an answer that is cut at what was reserved says so', async () => {
  const collector = new Collector();
  const endpoint = await collector.listen();
  const rig = await startLimitedRig({
    traces: { endpoint },
    prices: { 'up-chat/*': { input: 0, output: 10 } },
  });
  const { model } = rig.play('chat', endlessAnswer('chat'));
  const key = await rig.key({ budget: 1, per: 'day' });
  const body = requestBody('chat', { model, stream: true, more: { max_tokens: 40 } });
  const reply = await rig.call(key, 'chat', body);
  await rig.stop();
  const [call, attempt] = await collector.ofCall(String(reply.headers['x-request-id']));
  assert.deepEqual(call?.attributes['gen_ai.response.finish_reasons'], ['length']);
  assert.deepEqual(call.events.at(-1)?.attributes, { 'gateway.cut.reason': 'limit' });
  assert.equal(call.attributes['gateway.usage_source'], 'estimated');
  assert.deepEqual([call.status, attempt?.status], [0, 0]);
  collector.close();
});
