/** Starts the real gateway for a test: real sockets, a directory of its own, no vendor keys. */
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startGateway } from '../../src/main.ts';
import type { LoadSource } from '../../src/http/overload/load.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { upstreamDialects, type UpstreamDialect } from './dialects.ts';
import { temporaryFolder } from './folders.ts';
import { adminToken, clientKey } from './keys.ts';

export interface TestGateway {
  /** Without `/v1`. */
  readonly url: string;
  readonly adminUrl: string;
  /** The ledger row of a call with its `attempt_list`, as soon as it is written. */
  callRow(requestId: string): Promise<JsonObject>;
  /** The rows of all calls for a model name, once there are at least `count` of them. */
  callRows(model: string, count: number): Promise<readonly JsonObject[]>;
  /** The same, once they have sent at least this number of upstream requests. */
  callsAfter(model: string, attempts: number): Promise<readonly JsonObject[]>;
  /** What is wrong with a target of a route (`provider/model`), by the admin API, once something is. */
  trouble(route: string, target: string): Promise<string>;
  /** Writes another config and has it read; it must be one that can be applied. */
  reload(config: TestConfig): Promise<void>;
  /** Resolves when no call is left, by the gateway's own count. */
  noneLeft(): Promise<void>;
  stop(): Promise<void>;
}

/** Config as in interface.md; JSON is YAML. */
export interface TestConfig {
  readonly retry?: JsonObject;
  readonly providers?: JsonObject;
  readonly models?: JsonObject;
  readonly limits?: JsonObject;
  readonly local?: JsonObject;
  readonly prices?: JsonObject;
  readonly keys?: JsonObject;
  readonly clients?: JsonObject;
  readonly trusted_proxies?: readonly string[];
  readonly teams?: JsonObject;
  readonly tags?: JsonObject;
  readonly webhooks?: readonly JsonObject[];
  readonly traces?: JsonObject;
  readonly content?: JsonObject;
  readonly oidc?: JsonObject;
  readonly responses?: JsonObject;
}

/** How a config names a provider of a dialect at an address. */
const wires: { readonly [D in UpstreamDialect]: (address: string) => JsonObject } = {
  chat: (address) => ({ dialect: 'openai-chat', base_url: `${address}/v1` }),
  messages: (address) => ({ dialect: 'anthropic-messages', base_url: address }),
  responses: (address) => ({ dialect: 'openai-responses', base_url: `${address}/v1` }),
  gemini: (address) => ({ like: 'gemini', base_url: `${address}/v1beta` }),
  converse: (address) => ({ like: 'bedrock', region: 'eu-central-1', endpoint: address }),
};

/** A provider that speaks a dialect at a port of this machine, with whatever else `more` says of it. */
export function providerAt(
  upstream: UpstreamDialect,
  port: number,
  more: JsonObject = {},
): JsonObject {
  const wire = wires[upstream](`http://127.0.0.1:${port}`);
  return { ...wire, api_key: `upstream-${upstream}-key`, ...more };
}

/** A config with a provider `up-DIALECT` for each dialect, at the ports of scripted upstreams. */
export function upstreamConfig(
  portOf: (upstream: UpstreamDialect) => number,
): Required<Pick<TestConfig, 'providers'>> {
  const providers = upstreamDialects.map((upstream): [string, JsonObject] => [
    `up-${upstream}`,
    providerAt(upstream, portOf(upstream)),
  ]);
  return { providers: Object.fromEntries(providers) };
}

/** What waits and weights are drawn with: with 0 no backoff takes any time. */
export interface TestMeans {
  readonly random?: () => number;
  /** Variables besides those of the keys. */
  readonly env?: { readonly [name: string]: string };
  /** Where the admin plane listens; default: a free port. */
  readonly adminPort?: number;
  /** Default: nothing is said of the load. The test's own work blocks the gateway's event loop, too. */
  readonly load?: LoadSource;
  /** Default: the first call fetches the credentials of clouds, so that tests can count fetches. */
  readonly fetchesCredentials?: boolean;
}

export async function startTestGateway(
  config: TestConfig,
  { env, adminPort = 0, ...means }: TestMeans = {},
): Promise<TestGateway> {
  const directory = temporaryFolder('test');
  const configFile = join(directory, 'gateway.yaml');
  await writeFile(configFile, configText(config));
  const workers = process.env['MODEL_GATEWAY_WORKERS'];
  // A store in a file starts a thread for writes and one for reads: three quarters of the CPU of a start. Files are the
  // subject of `test/store`, and of the tests that start the program. Workers need one.
  const storage = workers === undefined ? { storage: 'memory' } : {};
  const running = await startGateway({
    flags: {
      listen: '127.0.0.1:0',
      'admin-listen': `127.0.0.1:${adminPort}`,
      'data-dir': join(directory, 'data'),
      config: configFile,
      'log-level': 'silent',
      ...storage,
    },
    env: {
      MODEL_GATEWAY_KEY: clientKey,
      MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
      // The same tests on workers, on request (CONTRIBUTING.md).
      MODEL_GATEWAY_WORKERS: workers,
      ...env,
    },
    cwd: directory,
    load: () => () => undefined,
    fetchesCredentials: false,
    ...means,
  });
  const { url, adminUrl } = running;
  const callRows = (model: string, count: number): Promise<readonly JsonObject[]> =>
    untilRows(adminUrl, model, (rows) => rows.length >= count);
  const callsAfter = (model: string, attempts: number): Promise<readonly JsonObject[]> =>
    untilRows(
      adminUrl,
      model,
      (rows) => rows.reduce((sum, row) => sum + Number(row['attempts']), 0) >= attempts,
    );
  return {
    url,
    adminUrl,
    callRows,
    callsAfter,
    callRow: (requestId) =>
      until(async () => {
        const path = `/api/calls/${encodeURIComponent(requestId)}`;
        const { status, body, text } = await askAdmin(adminUrl, path);
        return status === 200 ? { found: body } : { instead: `${path}: ${status} ${text}` };
      }),
    trouble: (route, target) =>
      until(async () => {
        const { models } = await readAdmin(adminUrl, '/api/models');
        const model = Array.isArray(models)
          ? models.filter(isObject).find(({ id }) => id === route)
          : undefined;
        const targets = Array.isArray(model?.['targets']) ? model['targets'].filter(isObject) : [];
        const health = targets.find((each) => each['target'] === target)?.['health'];
        return typeof health === 'string' && /^(degraded|down)/.test(health)
          ? { found: health }
          : { instead: `${target} of ${route}: ${String(health)}` };
      }),
    reload: async (wanted) => {
      // As a whole: the watch of the file must not find it emptied.
      await writeFile(`${configFile}.new`, configText(wanted));
      await rename(`${configFile}.new`, configFile);
      const outcome = await running.reload();
      if (!outcome.applied) throw new Error(outcome.problems.join('\n'));
    },
    noneLeft: () =>
      until(async () => {
        const live = (await readAdmin(adminUrl, '/api/status'))['live_calls'];
        return live === 0 ? { found: undefined } : { instead: `${String(live)} calls are left` };
      }),
    stop: () => running.stop(),
  };
}

/** Tests knock with more bad keys a minute than anybody may; those that are about it set their own. */
function configText({ limits, ...config }: TestConfig): string {
  return JSON.stringify({ ...config, limits: { bad_keys: 1_000_000, ...limits } });
}

/** Rows are written behind the answer: asks again until they are there. */
function untilRows(
  adminUrl: string,
  model: string,
  enough: (rows: readonly JsonObject[]) => boolean,
): Promise<readonly JsonObject[]> {
  return until(async () => {
    const rows = await readRows(adminUrl, model);
    return enough(rows)
      ? { found: rows }
      : { instead: `${rows.length} rows for ${model}: ${JSON.stringify(rows.slice(0, 3))}` };
  });
}

/** Asks again until it is found; gives up after a while that no healthy gateway takes. */
async function until<T>(
  ask: () => Promise<{ readonly found: T } | { readonly instead: string }>,
): Promise<T> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if ('found' in answer) return answer.found;
    if (performance.now() > deadline) throw new Error(answer.instead);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function readRows(adminUrl: string, model: string): Promise<readonly JsonObject[]> {
  const path = `/api/calls?limit=1000&model=${encodeURIComponent(model)}`;
  const rows = (await readAdmin(adminUrl, path))['calls'];
  if (!Array.isArray(rows)) throw new Error('GET /api/calls gives no list');
  return rows.filter(isObject);
}

async function readAdmin(adminUrl: string, path: string): Promise<JsonObject> {
  const { status, body, text } = await askAdmin(adminUrl, path);
  if (status !== 200) throw new Error(`GET ${path}: ${status} ${text.slice(0, 200)}`);
  return body;
}

async function askAdmin(
  adminUrl: string,
  path: string,
): Promise<{ readonly status: number; readonly body: JsonObject; readonly text: string }> {
  const response = await fetch(adminUrl + path, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const text = await response.text();
  const body = tryParseObject(text);
  if (body === undefined) throw new Error(`GET ${path}: ${response.status} ${text.slice(0, 200)}`);
  return { status: response.status, body, text };
}
