/**
 * The Helm chart: what it renders are objects that Kubernetes takes, that lose no call and hold no secret (G14, S25).
 * The rendered files are written by the real helm. Without helm they are checked as they are, and that they belong to
 * the chart as it is.
 * `node --test --test-update-snapshots test/deploy/chart.test.ts` writes them.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse, parseAllDocuments } from 'yaml';
import { knownProviders } from '../../src/compose/providers.ts';
import { loadSettings } from '../../src/config/load.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { makeCertificates } from '../support/certificates.ts';
import { temporaryFolder } from '../support/folders.ts';
import { findProgram } from '../support/server-process.ts';

const chart = join(import.meta.dirname, '../../deploy/helm/model-gateway');
const about = readFileSync(join(chart, 'Chart.yaml'), 'utf8');
/** A release changes the versions, and nothing of what is rendered besides. */
const unversioned = about.replaceAll(/^(version|appVersion): .*$/gm, '$1: 0.0.0');
const fixtures = join(import.meta.dirname, 'helm');
const names = ['cluster', 'single', 'whole'];
const helm = findProgram(['helm'], [join(homedir(), 'go/bin')]);
const missing =
  helm === undefined
    ? 'helm is not on this machine (go install helm.sh/helm/v3/cmd/helm@v3.18.6)'
    : false;

function run(...args: readonly string[]): {
  readonly status: number | null;
  readonly text: string;
} {
  const { status, stdout, stderr } = spawnSync(helm ?? '', args, { encoding: 'utf8' });
  return { status, text: stdout + stderr };
}

const valuesOf = (name: string): string => join(fixtures, `${name}.yaml`);
const renderedOf = (name: string): string => join(fixtures, `${name}.rendered.yaml`);

function template(values: string): ReturnType<typeof run> {
  const folder = temporaryFolder('helm');
  cpSync(chart, folder, { recursive: true });
  writeFileSync(join(folder, 'Chart.yaml'), unversioned);
  const options = ['--namespace', 'ai', '--kube-version', '1.37.0', '--values', values];
  return run('template', 'gw', folder, ...options);
}

/** Says whether a rendered file is of this chart and of these values. */
function digestOf(name: string): string {
  const hash = createHash('sha256');
  for (const file of globSync('**/*.*', { cwd: chart }).toSorted()) {
    hash.update(`${file}\n`);
    hash.update(file === 'Chart.yaml' ? unversioned : readFileSync(join(chart, file)));
  }
  return hash.update(readFileSync(valuesOf(name))).digest('hex');
}

/** Objects of a rendered file. YAML 1.1, as Kubernetes reads it: 0440 is octal. */
function objectsOf(name: string): readonly JsonObject[] {
  const documents = parseAllDocuments(readFileSync(renderedOf(name), 'utf8'), { version: '1.1' });
  return documents.map((document) => {
    assert.deepEqual(document.errors, []);
    const value: unknown = document.toJS();
    assert.ok(isObject(value));
    return value;
  });
}

/** The member at a path such as `spec.template.spec`. */
function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((from, key) => {
    if (Array.isArray(from)) return from[Number(key)];
    return isObject(from) ? from[key] : undefined;
  }, value);
}

function listAt(value: unknown, path: string): readonly unknown[] {
  const found = at(value, path) ?? [];
  assert.ok(Array.isArray(found), path);
  return found;
}

function only(name: string, kinds: readonly string[]): JsonObject {
  const found = objectsOf(name).filter(({ kind }) => kinds.includes(String(kind)));
  assert.equal(found.length, 1, `${name}: ${kinds.join(' ')}`);
  return found[0] ?? {};
}
const workloadOf = (name: string): JsonObject => only(name, ['Deployment', 'StatefulSet']);

const schema: unknown = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'));
assert.ok(isObject(schema));
const isValid = new Ajv({ strict: false }).compile(schema);

test('the values that the chart ships, and those of the tests, are as its schema says', () => {
  for (const file of [join(chart, 'values.yaml'), ...names.map(valuesOf)]) {
    assert.ok(isValid(parse(readFileSync(file, 'utf8'))), JSON.stringify(isValid.errors));
  }
  const defaults: unknown = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'));
  const { global: _helms, ...known } = at(schema, 'properties') as JsonObject;
  assert.ok(isObject(defaults));
  assert.deepEqual(Object.keys(defaults).sort(), Object.keys(known).sort());
});

test('values that are misspelt, that the chart sets itself, or that hold a secret are refused', () => {
  for (const values of [
    { replica: 2 },
    { config: { listen: '0.0.0.0:1' } },
    { config: { drain: { wait: '0s' } } },
    { secrets: { adminToken: 'a-token-in-plain-text' } },
    { secrets: { adminToken: { secret: 'gateway', key: '' } } },
    { secretEnv: { OPENAI_API_KEY: 'sk-in-plain-text' } },
    { env: { MODEL_GATEWAY_ADMIN_TOKEN: 'a-token-in-plain-text' } },
    { networkPolicy: { egressPorts: ['443'] } },
  ]) {
    assert.ok(!isValid(values), JSON.stringify(values));
  }
});

test('the chart has the version of the package', () => {
  const file = join(import.meta.dirname, '../../package.json');
  const version: unknown = at(JSON.parse(readFileSync(file, 'utf8')), 'version');
  const { version: own, appVersion } = parse(about) as JsonObject;
  assert.deepEqual([own, appVersion], [version, version]);
});

test('the rendered files are of this chart', () => {
  for (const name of names) {
    const [first = ''] = readFileSync(renderedOf(name), 'utf8').split('\n');
    assert.equal(
      first,
      `# ${digestOf(name)}`,
      `${name}: the chart has changed; with helm: node --test --test-update-snapshots test/deploy/chart.test.ts`,
    );
  }
});

test('what is rendered is what Kubernetes 1.37 publishes of its API', () => {
  const text = readFileSync(join(fixtures, 'kubernetes-1.37.json'), 'utf8');
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const api: unknown = JSON.parse(text);
  assert.ok(isObject(api) && isObject(api['$defs']));
  ajv.addSchema({ ...api, $id: 'kubernetes' });
  const kinds = new Set<string>();
  const validators = new Map<string, ValidateFunction>();
  for (const name of names) {
    for (const object of objectsOf(name)) {
      const { apiVersion, kind } = object;
      kinds.add(String(kind));
      if (kind === 'ServiceMonitor') continue;
      const version = String(apiVersion).replace('/', '.').replace(/^v1$/, 'core.v1');
      const place = version.replace('networking.k8s.io', 'networking');
      const id = `io.k8s.api.${place}.${String(kind)}`;
      assert.ok(Object.hasOwn(api['$defs'], id), id);
      const validate = validators.get(id) ?? ajv.compile({ $ref: `kubernetes#/$defs/${id}` });
      validators.set(id, validate);
      assert.ok(validate(object), `${name}, ${String(kind)}: ${JSON.stringify(validate.errors)}`);
    }
  }
  assert.equal(kinds.size, 9, [...kinds].join(' '));
});

test('the ServiceMonitor finds the admin plane, and reads its token from a Secret', () => {
  const monitor = only('whole', ['ServiceMonitor']);
  assert.equal(monitor['apiVersion'], 'monitoring.coreos.com/v1');
  const [endpoint] = listAt(monitor, 'spec.endpoints');
  assert.deepEqual(at(endpoint, 'authorization.credentials'), {
    name: 'gateway',
    key: 'metrics-token',
  });
  const wanted = at(monitor, 'spec.selector.matchLabels');
  assert.ok(isObject(wanted));
  const chosen = objectsOf('whole').filter(
    (object) =>
      object['kind'] === 'Service' &&
      Object.entries(wanted).every(
        ([key, value]) => (at(object, 'metadata.labels') as JsonObject)[key] === value,
      ),
  );
  assert.deepEqual(
    chosen.map((service) => at(service, 'metadata.name')),
    ['ai-admin'],
  );
  assert.equal(at(chosen[0], 'spec.ports.0.name'), at(endpoint, 'port'));
});

for (const name of names) {
  test(`${name}: what is named exists: ports, volumes, files, selectors`, () => {
    const workload = workloadOf(name);
    const pod = at(workload, 'spec.template.spec');
    const labels = at(workload, 'spec.template.metadata.labels') as JsonObject;
    const volumes = [
      ...listAt(pod, 'volumes').map((each) => at(each, 'name')),
      ...listAt(workload, 'spec.volumeClaimTemplates').map((each) => at(each, 'metadata.name')),
    ];
    const mounts = listAt(pod, 'containers.0.volumeMounts').map((each) => at(each, 'name'));
    assert.deepEqual(mounts.toSorted(), volumes.toSorted());
    assert.equal(new Set(volumes).size, volumes.length);
    const ports = listAt(pod, 'containers.0.ports').map((each) => at(each, 'name'));
    for (const object of objectsOf(name)) {
      const { kind } = object;
      if (kind === 'Service') {
        assert.ok(ports.includes(at(object, 'spec.ports.0.targetPort')));
        assert.deepEqual(labels, { ...labels, ...(at(object, 'spec.selector') as JsonObject) });
      }
      if (kind === 'HorizontalPodAutoscaler') {
        const target = { apiVersion: 'apps/v1', kind: workload['kind'], name: 'ai' };
        assert.deepEqual(at(object, 'spec.scaleTargetRef'), target);
        assert.equal(at(workload, 'spec.replicas'), undefined);
      }
      const selector = at(object, 'spec.podSelector') ?? at(object, 'spec.selector');
      const matched = at(selector, 'matchLabels');
      if (isObject(matched) && kind !== 'ServiceMonitor') {
        assert.deepEqual(labels, { ...labels, ...matched });
      }
    }
    const files = listAt(pod, 'volumes')
      .flatMap((each) => listAt(each, 'projected.sources'))
      .map((each) => `/etc/model-gateway/secrets/${String(at(each, 'secret.items.0.path'))}`);
    const config = configOf(name);
    const named = [
      ...listAt(pod, 'containers.0.env').map((each) => String(at(each, 'value'))),
      ...[...config.matchAll(/\$\{file:([^}]+)\}/g)].map(([, path]) => String(path)),
    ].filter((path) => path.startsWith('/etc/model-gateway/secrets/'));
    assert.deepEqual(named.toSorted(), files.toSorted());
  });

  test(`${name}: G14 a pod has the time of its drain, and leaves the Service only when nothing is served`, () => {
    const pod = at(workloadOf(name), 'spec.template.spec');
    const { wait, limit } = drainOf(name);
    assert.ok(Number(at(pod, 'terminationGracePeriodSeconds')) >= wait + limit + 10);
    assert.equal(at(pod, 'containers.0.readinessProbe.httpGet.path'), '/readyz');
    assert.equal(at(pod, 'containers.0.livenessProbe.httpGet.path'), '/healthz');
    const probe = at(pod, 'containers.0.readinessProbe');
    const seconds = Number(at(probe, 'periodSeconds')) * Number(at(probe, 'failureThreshold'));
    assert.ok(seconds >= 300, 'a lease of a budget is good for five minutes without PostgreSQL');
  });

  test(`${name}: S25 the container runs without rights, and reads secrets by reference`, () => {
    const pod = at(workloadOf(name), 'spec.template.spec');
    assert.equal(at(pod, 'securityContext.runAsNonRoot'), true);
    assert.deepEqual(at(pod, 'containers.0.securityContext'), {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const secrets = listAt(pod, 'volumes').find((each) => at(each, 'name') === 'secrets');
    assert.equal(at(secrets, 'projected.defaultMode'), 0o440);
    assert.ok(!objectsOf(name).some(({ kind }) => kind === 'Secret'));
  });

  test(`${name}: the gateway takes the gateway.yaml of the ConfigMap`, async () => {
    await takes(name);
  });
}

function configOf(name: string): string {
  return String((at(only(name, ['ConfigMap']), 'data') as JsonObject)['gateway.yaml']);
}

function drainOf(name: string): { readonly wait: number; readonly limit: number } {
  const drain = at(parse(configOf(name)), 'drain');
  return {
    wait: Number.parseInt(String(at(drain, 'wait')), 10),
    limit: Number.parseInt(String(at(drain, 'limit')), 10),
  };
}

/** Loads the file with Secrets as a pod has them. */
async function takes(name: string): Promise<void> {
  const folder = temporaryFolder('chart');
  const certificates = await makeCertificates('someone');
  const put = (path: string, text: string | Buffer): void => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text, { mode: 0o600 });
  };
  put('secrets/database', 'postgres://gateway:a-password@db.internal/gateway?sslmode=disable');
  put('secrets/counters', 'redis://cache.internal:6379/0');
  let config = configOf(name).replaceAll('/etc/model-gateway/', `${folder}/`);
  if (certificates === undefined) {
    config = config.replaceAll(/^(admin_)?tls:\n(?: .*\n?)+/gm, '');
  } else {
    for (const plane of ['tls', 'admin-tls']) {
      put(`${plane}/tls.crt`, readFileSync(certificates.server.cert));
      put(`${plane}/tls.key`, readFileSync(certificates.server.key));
    }
  }
  put('config/gateway.yaml', config);
  const settings = await loadSettings({
    flags: { config: join(folder, 'config/gateway.yaml') },
    env: { OPENAI_API_KEY: 'a-key', TEAM_VLLM_KEY: 'another-key' },
    cwd: folder,
    knownProviders,
  });
  assert.equal(settings.storage.database, name === 'single' ? 'sqlite' : 'postgres');
  assert.deepEqual(settings.listen, { host: '0.0.0.0', port: 8686 });
  assert.deepEqual(settings.adminListen, { host: '0.0.0.0', port: 8687 });
}

test(
  'the real helm finds nothing to say against the chart, and renders these files',
  { skip: missing },
  (t) => {
    for (const name of names) {
      const linted = run(
        'lint',
        '--strict',
        '--kube-version',
        '1.37.0',
        chart,
        '-f',
        valuesOf(name),
      );
      assert.equal(linted.status, 0, linted.text);
      assert.doesNotMatch(linted.text, /\[(WARNING|ERROR)\]/);
      const { status, text } = template(valuesOf(name));
      assert.equal(status, 0, text);
      const file = `# ${digestOf(name)}\n# values: test/deploy/helm/${name}.yaml\n${text}`;
      t.assert.fileSnapshot(file, renderedOf(name), { serializers: [String] });
    }
  },
);

test(
  'the real helm refuses what would lose keys, money or secrets, and says what to set',
  { skip: missing },
  () => {
    const folder = temporaryFolder('helm');
    const admin = { adminToken: { secret: 'gateway', key: 'admin-token' } };
    const database = { secret: 'storage', key: 'database' };
    const image = { repository: 'registry.example.com/model-gateway' };
    const refused: readonly (readonly [RegExp, object])[] = [
      [/storage\.database: several gateways/, { image, secrets: admin }],
      [
        /storage\.database: several gateways/,
        { image, secrets: admin, replicas: 1, autoscaling: { enabled: true } },
      ],
      [/persistence\.enabled: without storage\.database/, { image, secrets: admin, replicas: 1 }],
      [
        /storage\.counters/,
        {
          image,
          secrets: admin,
          replicas: 1,
          persistence: { enabled: true },
          storage: { counters: database },
        },
      ],
      [/secrets\.adminToken/, { image, storage: { database } }],
      [/image\.repository/, { secrets: admin, storage: { database } }],
      [
        /secrets\.metricsToken/,
        { image, secrets: admin, storage: { database }, serviceMonitor: { enabled: true } },
      ],
      [/replica/, { image, secrets: admin, storage: { database }, replica: 3 }],
    ];
    for (const [index, [what, values]] of refused.entries()) {
      const file = join(folder, `${index}.json`);
      writeFileSync(file, JSON.stringify(values));
      const { status, text } = template(file);
      assert.notEqual(status, 0, text.slice(0, 200));
      assert.match(text, what);
    }
  },
);
