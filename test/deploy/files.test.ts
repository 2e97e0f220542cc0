/** The systemd unit and the compose file: what they set exists, and they allow the drain its time (G14, S25). */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { loadSettings } from '../../src/config/load.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { knownProviders } from '../../src/compose/providers.ts';
import { temporaryFolder } from '../support/folders.ts';
import { listAt, objectAt, textAt } from '../support/reading.ts';
import { findProgram } from '../support/server-process.ts';
import { findCollector, noCollector } from './collector.ts';

const deploy = join(import.meta.dirname, '../../deploy');
const unit = readFileSync(join(deploy, 'systemd/model-gateway.service'), 'utf8');
const analyze = findProgram(['systemd-analyze']);
const missing =
  analyze === undefined
    ? 'systemd-analyze is not on this machine (apt-get install systemd)'
    : false;

function analyzed(...args: readonly string[]): {
  readonly status: number | null;
  readonly text: string;
} {
  const folder = temporaryFolder('systemd');
  const file = join(folder, 'model-gateway.service');
  // The program and its page are not installed here.
  const here = unit
    .replace('/usr/bin/model-gateway', process.execPath)
    .replace(/^Documentation.*$/m, '');
  writeFileSync(file, here);
  const { status, stdout, stderr } = spawnSync(analyze ?? '', [...args, file], {
    encoding: 'utf8',
  });
  return { status, text: stdout + stderr };
}

function valueOf(key: string): string {
  return new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
}

test('the page of the unit makes each file without which the unit does not start', () => {
  const page = readFileSync(join(deploy, '../docs/operator/deploy.md'), 'utf8');
  const recipe = /^## systemd\n\n```sh\n(.*?)^```/ms.exec(page)?.[1] ?? '';
  const credentials = [...unit.matchAll(/^LoadCredential=\S+?:(\S+)$/gm)].map(
    ([, file = '']) => file,
  );
  const config = / --config (\S+)/.exec(valueOf('ExecStart'))?.[1] ?? '';
  assert.equal(credentials.length, 2);
  for (const file of [...credentials, config]) assert.ok(recipe.includes(`> ${file}`), file);
});

test('the unit is valid', { skip: missing }, () => {
  const { status, text } = analyzed('verify');
  assert.equal(status, 0, text);
  // Unknown names are warnings only.
  assert.doesNotMatch(text, /model-gateway\.service:\d+/);
});

test('S25 the unit exposes little: at most 2.0 of 10', { skip: missing }, () => {
  const { text } = analyzed('security', '--offline=true', '--no-pager');
  const level = /Overall exposure level for model-gateway\.service: ([\d.]+)/.exec(text)?.[1];
  assert.ok(Number(level) <= 2, text.slice(-200));
});

test('the unit stops by a drain, and the program has what it names', () => {
  assert.equal(valueOf('KillMode'), 'mixed');
  assert.ok(!/^KillSignal=/m.test(unit), 'SIGTERM, the default');
  assert.ok(Number.parseInt(valueOf('TimeoutStopSec'), 10) >= 130);
  for (const [, name = ''] of unit.matchAll(/^Environment=(\w+)=/gm)) {
    assert.match(name, /^MODEL_GATEWAY_(DATA_DIR|ADMIN_TOKEN_FILE)$/);
  }
  assert.doesNotMatch(unit, /^MemoryDenyWriteExecute=yes/m);
});

function entries(value: unknown): readonly (readonly [string, JsonObject])[] {
  assert.ok(isObject(value));
  return Object.entries(value).map(([name, each]) => [name, isObject(each) ? each : {}]);
}

function addressOf(services: unknown, name: string): string {
  assert.ok(isObject(services) && isObject(services[name]));
  const { networks } = services[name];
  assert.ok(isObject(networks) && isObject(networks['default']), name);
  return String(networks['default']['ipv4_address']);
}

test('compose.yaml: files, volumes and secrets are there, and gateways have the time of their drain', () => {
  const compose: unknown = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8'), {
    merge: true,
  });
  assert.ok(isObject(compose));
  const services = entries(compose['services']);
  const names = services.map(([name]) => name);
  const declared = {
    volumes: entries(compose['volumes']).map(([name]) => name),
    secrets: entries(compose['secrets']).map(([name]) => name),
  };
  for (const [name, service] of services) {
    const { volumes = [], secrets = [], depends_on: needs = [] } = service;
    assert.ok(Array.isArray(volumes) && Array.isArray(secrets), name);
    for (const volume of volumes.map(String)) {
      const [from = ''] = volume.split(':');
      if (from.startsWith('.')) assert.ok(existsSync(join(deploy, from)), `${name}: ${from}`);
      else assert.ok(declared.volumes.includes(from), `${name}: ${from}`);
    }
    for (const secret of secrets) assert.ok(declared.secrets.includes(String(secret)), name);
    const needed = Array.isArray(needs) ? needs.map(String) : Object.keys(needs ?? {});
    for (const each of needed) assert.ok(names.includes(each), `${name}: ${each}`);
    if (!name.startsWith('gateway-')) continue;
    assert.ok(Number.parseInt(String(service['stop_grace_period']), 10) >= 130);
    assert.equal(service['read_only'], true);
    // A file that is mounted alone does not change in the container when an editor replaces it.
    assert.ok(volumes.map(String).some((each) => each.endsWith(':/etc/model-gateway:ro')));
  }
  const config = readFileSync(join(deploy, 'compose/gateway.yaml'), 'utf8');
  const proxy = addressOf(compose['services'], 'nginx');
  assert.ok(config.includes(`trusted_proxies: [${proxy}] `), proxy);
  // nginx looks names up once: a gateway that is replaced keeps its address.
  const addresses = ['gateway-1', 'gateway-2'].map((name) => addressOf(compose['services'], name));
  assert.ok(addresses.every((each) => each.startsWith('172.30.86.')));
  assert.equal(new Set([proxy, ...addresses]).size, 3);
  assert.equal(names.filter((name) => name.startsWith('gateway-')).length, 2);
});

test('compose/gateway.yaml passes the checks of a start', async () => {
  const directory = temporaryFolder('compose');
  const secret = join(directory, 'password');
  writeFileSync(secret, 'a-password-of-postgres', { mode: 0o600 });
  const text = readFileSync(join(deploy, 'compose/gateway.yaml'), 'utf8');
  const file = join(directory, 'gateway.yaml');
  writeFileSync(file, text.replace('/run/secrets/postgres_password', secret));
  const env = { OPENAI_API_KEY: 'a-key' };
  const settings = await loadSettings({
    flags: { config: file },
    env,
    cwd: dirname(file),
    knownProviders,
  });
  assert.equal(settings.storage.database, 'postgres');
  assert.equal(settings.drain.waitMs, 5000);
});

function fileOf(name: string): JsonObject {
  const value: unknown = parse(readFileSync(join(deploy, name), 'utf8'));
  assert.ok(isObject(value), name);
  return value;
}

/** Where a file of the repository is mounted in a service. */
function mountOf(service: string, file: string): string {
  const { volumes } = objectAt(objectAt(fileOf('compose.yaml'), 'services'), service);
  assert.ok(Array.isArray(volumes), service);
  const mount = volumes.map(String).find((each) => each.startsWith(`${file}:`));
  assert.match(mount ?? '', /:ro$/, file);
  return (mount ?? '').slice(file.length + 1, -':ro'.length);
}

/** Members that Grafana's readers of provisioning files know (grafana/grafana, pkg/services/provisioning, v12.1). */
const provisioned = {
  datasource:
    'name type access url uid user database basicAuth basicAuthUser withCredentials isDefault jsonData secureJsonData editable version orgId'.split(
      ' ',
    ),
  provider:
    'name type orgId folder folderUid editable options disableDeletion updateIntervalSeconds allowUiUpdates'.split(
      ' ',
    ),
};

test('compose: Grafana is given the Prometheus beside it and the dashboard, by members that it knows', () => {
  const sources = listAt(fileOf('compose/grafana.yml'), 'datasources');
  const providers = listAt(fileOf('compose/dashboards.yml'), 'providers');
  for (const name of ['compose/grafana.yml', 'compose/dashboards.yml']) {
    assert.equal(fileOf(name)['apiVersion'], 1, `${name}: without it the old form is read`);
  }
  const [source] = sources;
  const [provider] = providers;
  assert.deepEqual([sources.length, providers.length], [1, 1]);
  assert.ok(source !== undefined && provider !== undefined);
  for (const name of Object.keys(source)) assert.ok(provisioned.datasource.includes(name), name);
  for (const name of Object.keys(provider)) assert.ok(provisioned.provider.includes(name), name);
  assert.equal(source['type'], 'prometheus');
  assert.equal(source['url'], 'http://prometheus:9090');
  // The dashboard asks for a data source of this type, and takes the default one.
  assert.equal(source['isDefault'], true);
  const dashboard = mountOf('grafana', './grafana/dashboard.json');
  assert.equal(dirname(dashboard), objectAt(provider, 'options')['path']);
  const provisioning = '/etc/grafana/provisioning';
  assert.equal(dirname(mountOf('grafana', './compose/grafana.yml')), `${provisioning}/datasources`);
  assert.equal(
    dirname(mountOf('grafana', './compose/dashboards.yml')),
    `${provisioning}/dashboards`,
  );
  const variables = listAt(objectAt(fileOf('grafana/dashboard.json'), 'templating'), 'list');
  assert.deepEqual(
    variables.filter(({ type }) => type === 'datasource').map(({ query }) => query),
    ['prometheus'],
  );
});

test('compose: the dashboard is one of the Grafana of the image', () => {
  const image = textAt(objectAt(objectAt(fileOf('compose.yaml'), 'services'), 'grafana'), 'image');
  const version = /:(\d+\.\d+)\.\d+$/.exec(image)?.[1] ?? '';
  const file = join(import.meta.dirname, `dashboard-${version}.json`);
  const schema: unknown = JSON.parse(readFileSync(file, 'utf8'));
  assert.ok(isObject(schema));
  const isDashboard = new Ajv({ strict: false }).compile(schema);
  const dashboard = fileOf('grafana/dashboard.json');
  assert.ok(isDashboard(dashboard), JSON.stringify(isDashboard.errors?.slice(0, 3)));
  // The schema is strict: it refuses an option that no panel has.
  const panels = listAt(dashboard, 'panels');
  const wrong = panels.map((panel) => ({ ...panel, options: { colourMode: 'value' } }));
  assert.ok(!isDashboard({ ...dashboard, panels: wrong }));
});

test('compose: the collector takes spans where the gateways send them, and each part of its pipeline is declared', () => {
  const collector = fileOf('compose/otel.yml');
  assert.deepEqual(Object.keys(collector).toSorted(), [
    'exporters',
    'processors',
    'receivers',
    'service',
  ]);
  for (const [name, pipeline] of entries(objectAt(collector, 'service')['pipelines'])) {
    for (const [kind, used] of Object.entries(pipeline)) {
      assert.ok(Array.isArray(used), `${name}.${kind}`);
      const declared = entries(collector[kind]).map(([part]) => part);
      assert.deepEqual(used.map(String).toSorted(), declared.toSorted(), `${name}.${kind}`);
    }
  }
  const http = ['receivers', 'otlp', 'protocols', 'http'].reduce<JsonObject>(
    (at, name) => objectAt(at, name),
    collector,
  );
  const endpoint = new URL(textAt(objectAt(fileOf('compose/gateway.yaml'), 'traces'), 'endpoint'));
  assert.equal(endpoint.hostname, 'otel-collector');
  assert.equal(http['endpoint'], `0.0.0.0:${endpoint.port}`);
  assert.equal(mountOf('otel-collector', './compose/otel.yml'), '/etc/otelcol/config.yaml');
});

const otelcol = findCollector();
test(
  'compose/otel.yml is valid for the collector itself',
  { skip: otelcol === undefined ? noCollector : false },
  () => {
    const config = `--config=${join(deploy, 'compose/otel.yml')}`;
    const { status, stdout, stderr } = spawnSync(otelcol ?? '', ['validate', config], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout + stderr);
  },
);

test('the collector that tests build is of the version of the image', () => {
  const services = objectAt(fileOf('compose.yaml'), 'services');
  const version = textAt(objectAt(services, 'otel-collector'), 'image').split(':')[1] ?? '';
  const manifest = parse(readFileSync(join(import.meta.dirname, 'collector.yaml'), 'utf8'));
  for (const kind of ['receivers', 'processors', 'exporters']) {
    for (const part of listAt(manifest, kind)) {
      assert.ok(textAt(part, 'gomod').endsWith(` v${version}`), kind);
    }
  }
  assert.ok(noCollector.includes(`builder@v${version} `));
});

const promtool = findProgram(['promtool']);
test(
  'compose/prometheus.yml is valid',
  {
    skip:
      promtool === undefined
        ? 'promtool is not on this machine (apt-get install prometheus)'
        : false,
  },
  () => {
    const directory = temporaryFolder('prometheus');
    const token = join(directory, 'token');
    writeFileSync(token, 'a-token');
    const file = join(directory, 'prometheus.yml');
    const text = readFileSync(join(deploy, 'compose/prometheus.yml'), 'utf8')
      .replace('/run/secrets/metrics_token', token)
      .replace('/etc/prometheus/model-gateway-rules.yml', join(deploy, 'grafana/rules.yml'));
    writeFileSync(file, text);
    const { status, stdout, stderr } = spawnSync(promtool ?? '', ['check', 'config', file], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout + stderr);
  },
);
