/** issue 8 point 2: the dashboard and the alert rules of deploy/grafana ask for what a gateway really emits. */
import assert from 'node:assert/strict';
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parse as parseYaml } from 'yaml';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { temporaryFolder } from '../support/folders.ts';
import { adminToken } from '../support/keys.ts';
import { listAt, objectAt } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask } from '../support/rig.ts';
import { scrape, scrapeUntil } from '../support/scrape.ts';
import { findProgram, freePort, notRoot, ServerProcess } from '../support/server-process.ts';
import { errorIn, replying } from '../upstream/reply.ts';
import { startLimitedRig, type LimitedRig } from '../limits/limited-rig.ts';

const folder = join(import.meta.dirname, '../../deploy/grafana');
const usage = { fresh: 30, cacheRead: 60, cacheWrite: 10, output: 50, reasoning: 20 };

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
}

const rules: readonly Rule[] = rulesOf(readFileSync(join(folder, 'rules.yml'), 'utf8'));
const queries: readonly string[] = queriesOf(readFileSync(join(folder, 'dashboard.json'), 'utf8'));

function rulesOf(text: string): readonly Rule[] {
  const file: unknown = parseYaml(text);
  assert.ok(isObject(file));
  return listAt(file, 'groups')
    .flatMap((group) => listAt(group, 'rules'))
    .map(({ record, alert, expr }) => ({
      expr: String(expr),
      ...(record === undefined ? {} : { record: String(record) }),
      ...(alert === undefined ? {} : { alert: String(alert) }),
    }));
}

function queriesOf(text: string): readonly string[] {
  const dashboard = tryParseObject(text);
  assert.ok(dashboard !== undefined);
  return listAt(dashboard, 'panels')
    .filter(({ type }) => type !== 'row')
    .flatMap((panel) => listAt(panel, 'targets'))
    .map(({ expr }) => String(expr));
}

/** The metric and label of each variable that asks Prometheus for its values. */
const variables: readonly (readonly [string, string])[] = variablesOf(
  readFileSync(join(folder, 'dashboard.json'), 'utf8'),
);

function variablesOf(text: string): readonly (readonly [string, string])[] {
  const dashboard = tryParseObject(text);
  assert.ok(dashboard !== undefined);
  return listAt(objectAt(dashboard, 'templating'), 'list').flatMap(({ query }) => {
    if (!isObject(query)) return [];
    const [, metric = '', label = ''] =
      /^label_values\((\w+), (\w+)\)$/.exec(String(query['query'])) ?? [];
    return [[metric, label] as const];
  });
}

/** As Grafana fills it in. */
function filled(query: string): string {
  return query.replaceAll('$__rate_interval', '1m').replaceAll(/\$(instance|model)\b/g, '.*');
}

const namesIn = (expr: string): readonly string[] =>
  expr.match(/\b(?:gen_ai_(?:client|server)|model_gateway|process|nodejs)_\w+/g) ?? [];

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig({
    models: { rescued: { targets: ['up-chat/broken', 'up-messages/good'] } },
    // Spans are counted where there are some; nobody need take them.
    traces: { endpoint: 'http://127.0.0.1:9' },
  });
  rig.upstreams.chat.script('broken', errorIn('chat', 500, 'broken'));
  rig.upstreams.chat.script('fine', replying('chat', { text: 'Hi.', usage }));
  rig.upstreams.messages.script('good', replying('messages', { text: 'Hi.', usage }));
  const body = (model: string, stream: boolean): JsonObject =>
    requestBody('chat', { model, stream });
  const key = await rig.key({ budgets: [{ usd: '1', per: 'day' }] });
  await rig.call(key, 'chat', body('up-chat/fine', false));
  for (let i = 0; i < 6; i += 1) await ask(rig, 'chat', body('rescued', true));
  await scrapeUntil(
    rig.gateway.adminUrl,
    (scraped) => scraped.sum('model_gateway_calls_total') === 7,
  );
});
after(() => rig.stop());

test('issue 8 each metric of the dashboard and of the rules is one that the gateway emits', async () => {
  const { names } = await scrape(rig.gateway.adminUrl);
  assert.ok(queries.length > 50 && rules.length > 20);
  const wanted = [...queries, ...rules.map(({ expr }) => expr)].flatMap(namesIn);
  assert.deepEqual(
    [...new Set(wanted)].filter((name) => !names.has(name)),
    [],
  );
  // And what is emitted is told of in the documentation, and the other way round.
  const documented = readFileSync(join(folder, '../../docs/operator/metrics.md'), 'utf8');
  const told = new Set(namesIn(documented.replaceAll(/```[\s\S]*?```/g, '')));
  const families = [...names].map((name) => name.replace(/_(bucket|sum|count)$/, ''));
  assert.deepEqual([...new Set(families)].filter((name) => !told.has(name)).sort(), []);
  const known = new Set(families);
  assert.deepEqual(
    [...told].filter((name) => !known.has(name)),
    [],
  );
});

test('issue 8 recorded series are those that the alerts ask for', () => {
  const recorded = rules.flatMap(({ record }) => (record === undefined ? [] : [record]));
  const asked = rules.flatMap(({ expr }) => expr.match(/model_gateway:\w+:\w+/g) ?? []);
  assert.deepEqual(
    asked.filter((name) => !recorded.includes(name)),
    [],
  );
});

const promtool = findProgram(['promtool']);
const prometheus = findProgram(['prometheus']);
if (promtool === undefined || prometheus === undefined) {
  process.stderr.write(
    'prometheus is not installed (Debian: prometheus): its checks are left out\n',
  );
} else {
  test('issue 8 the alerts fire when they should, by promtool', () => {
    const checks: readonly (readonly string[])[] = [
      ['check', 'rules', 'rules.yml'],
      ['test', 'rules', 'rules.test.yml'],
    ];
    for (const args of checks) {
      const done: SpawnSyncReturns<string> = spawnSync(promtool, args, {
        cwd: folder,
        encoding: 'utf8',
      });
      assert.equal(done.status, 0, done.stdout + done.stderr);
    }
  });

  test('issue 8 a real Prometheus scrapes it, and every query of the dashboard has an answer', async () => {
    const directory = temporaryFolder('prometheus');
    const port = await freePort();
    writeFileSync(join(directory, 'token'), adminToken);
    const config = {
      global: { scrape_interval: '2s', scrape_timeout: '2s' },
      scrape_configs: [
        {
          job_name: 'model-gateway',
          authorization: { credentials_file: join(directory, 'token') },
          static_configs: [{ targets: [rig.gateway.adminUrl.slice('http://'.length)] }],
        },
      ],
    };
    const configFile = join(directory, 'prometheus.yml');
    writeFileSync(configFile, JSON.stringify(config));
    mkdirSync(join(directory, 'data'));
    const owner = notRoot();
    if (owner !== undefined) {
      for (const path of ['', 'token', 'prometheus.yml', 'data']) {
        chownSync(join(directory, path), owner.uid, owner.gid);
      }
    }
    const server = new ServerProcess(prometheus, [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--enable-feature=exemplar-storage',
    ]);
    const query = async (expr: string): Promise<readonly JsonObject[]> => {
      const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expr)}`;
      const answer = tryParseObject(await (await fetch(url)).text()) ?? {};
      assert.equal(answer['status'], 'success', `${expr}: ${JSON.stringify(answer)}`);
      const { data } = answer;
      return isObject(data) ? listAt(data, 'result') : [];
    };
    try {
      await server.untilReady(async () => {
        try {
          const found = await query('count_over_time(model_gateway_ready[1m]) >= 3');
          return found.length > 0;
        } catch {
          return false;
        }
      });
      assert.equal((await query('up{job="model-gateway"} == 1')).length, 1);
      assert.equal((await query('sum(model_gateway_calls_total) == 7')).length, 1);
      // What nothing happened for: no target cools down.
      const quiet = /model_gateway_target_cooling/;
      for (const expr of queries.map(filled)) {
        const found = await query(expr);
        assert.ok(found.length > 0 || quiet.test(expr), `nothing for ${expr}`);
      }
      for (const { expr } of rules) await query(expr);
      assert.equal(variables.length, 2);
      for (const [metric, label] of variables) {
        const found = await query(`count by (${label}) (${metric}{${label}!=""})`);
        assert.ok(found.length > 0, `no values of ${label} in ${metric}`);
      }
    } finally {
      await server.end('SIGTERM');
    }
  });
}
