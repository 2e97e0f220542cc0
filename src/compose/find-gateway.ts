/**
 * Part of the composition root: how a command reaches the admin API. Through the gateway that runs on the data
 * directory or at the admin address, else on the directory's store itself, with the same powers and answers. Nothing
 * here makes a store, and no secret of a vendor is needed.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readRunFile } from '../admin/operations.ts';
import { httpAdminClient } from '../cli/admin-client.ts';
import type { AdminClient, FoundGateway } from '../cli/command.ts';
import { addressText } from '../config/errors.ts';
import { type GatewayPlace, loadPlace } from '../config/load.ts';
import { Secret } from '../core/secret.ts';
import { isObject } from '../json/value.ts';
import type { Environment } from './options.ts';

/** Where the gateway of this place listens; undefined when none runs. */
export async function runningUrl(env: Environment, cwd: string): Promise<string | undefined> {
  try {
    const found = await runningGateway(await loadPlace({ flags: {}, env, cwd }), env);
    if (found === undefined) return undefined;
    const { body } = await found.client.request('GET', '/api/status');
    const url = isObject(body) ? body['url'] : undefined;
    return typeof url === 'string'
      ? url.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])/, '$1127.0.0.1')
      : undefined;
  } catch {
    // A broken config or a gateway that just ended: the customary address is a good answer then.
    return undefined;
  }
}

/**
 * @throws ConfigError; Error that names the directory which was looked at and what to do, when no gateway runs and
 * there is no store
 */
export async function findGateway(env: Environment, cwd: string): Promise<FoundGateway> {
  const place = await loadPlace({ flags: {}, env, cwd });
  const running = await runningGateway(place, env);
  if (running !== undefined) return running;
  const { dataDir, adminListen } = place;
  const { storeOfDirectory } = await import('./admin-of-directory.ts');
  const store = await storeOfDirectory(env, cwd);
  if (store.kind === 'sqlite' && !existsSync(join(dataDir, 'gateway.db'))) {
    const other = (await answers(adminListen)) ? addressText(adminListen) : undefined;
    return {
      from: 'No gateway runs',
      client: withoutStore(store.withoutData, missingText(dataDir, other)),
    };
  }
  return { from: `No gateway runs; data in ${dataDir}`, client: store.client };
}

async function runningGateway(
  { dataDir, adminListen }: GatewayPlace,
  env: Environment,
): Promise<FoundGateway | undefined> {
  const running = readRunFile(dataDir);
  if (running !== undefined) {
    const client = httpAdminClient({ address: running.admin, token: running.control });
    return { from: `Gateway ${running.admin}, data in ${dataDir}`, client };
  }
  const token = env['MODEL_GATEWAY_ADMIN_TOKEN'] ?? '';
  // A store of this directory goes before a gateway elsewhere that has the same token.
  if (token === '' || existsSync(join(dataDir, 'gateway.db')) || !(await answers(adminListen))) {
    return undefined;
  }
  const address = `http://${addressText(adminListen)}`;
  const client = httpAdminClient({ address, token: new Secret(token) });
  return { from: `Gateway ${address}, by MODEL_GATEWAY_ADMIN_TOKEN`, client };
}

const probeMs = 1000;

/** Whether the admin plane of a gateway answers there. */
async function answers(address: GatewayPlace['adminListen']): Promise<boolean> {
  if (address.port === 0) return false;
  const host = ['0.0.0.0', '::'].includes(address.host) ? '127.0.0.1' : address.host;
  try {
    const url = `http://${addressText({ ...address, host })}/api/session`;
    const response = await fetch(url, { signal: AbortSignal.timeout(probeMs) });
    const body: unknown = await response.json();
    return isObject(body) && ('signed_in' in body || 'error' in body);
  } catch {
    return false;
  }
}

function missingText(dataDir: string, other: string | undefined): string {
  const here = `There is no gateway data in ${dataDir}.`;
  return other === undefined
    ? `${here} Start a gateway there ("model-gateway start"), or name the data directory of yours: --data-dir DIR.`
    : `${here} The gateway at ${other} has other data: name its directory with --data-dir DIR, or set MODEL_GATEWAY_ADMIN_TOKEN to its admin token.`;
}

/** What can be called, and what it costs, is known without a store. */
const needNoData = /^\/api\/(models|prices)\b/;

function withoutStore(known: AdminClient, missing: string): AdminClient {
  return {
    request: (method, path, body) => {
      if (!needNoData.test(path)) return Promise.reject(new Error(missing));
      return known.request(method, path, body);
    },
  };
}
