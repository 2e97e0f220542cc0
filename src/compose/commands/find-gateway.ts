/**
 * Part of the composition root: how a command reaches the admin API. Through the gateway that runs on the data
 * directory or at the admin address, else on the directory's store itself, with the same powers and answers. Nothing
 * here makes a store, and no secret of a vendor is needed.
 */
import { accessSync, constants, existsSync, readFileSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { readRunFile } from '../../admin/run-file.ts';
import { httpAdminClient, type HttpAdminOptions } from '../../cli/admin-client.ts';
import type { AdminClient, FoundGateway } from '../../cli/command.ts';
import { reason, withSecretFiles } from '../../config/config-file.ts';
import { addressText } from '../../config/errors.ts';
import { type GatewayLocation, loadLocation } from '../../config/load.ts';
import { Secret } from '../../core/secret.ts';
import { isObject } from '../../json/value.ts';
import type { Environment } from '../options.ts';

/** Where the gateway of this data directory listens; undefined when none runs. */
export async function runningUrl(env: Environment, cwd: string): Promise<string | undefined> {
  try {
    const location = await loadLocation({ flags: {}, env, cwd });
    const found = await runningGateway(location, env, probeOf(location, env));
    if (found === undefined) return undefined;
    const { body } = await found.client.request('GET', '/api/status');
    const url = isObject(body) ? body['url'] : undefined;
    if (typeof url !== 'string') return undefined;
    const { byUrl, adminListen } = location;
    if (byUrl !== true) return url.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\])/, '$1127.0.0.1');
    // The gateway is on another machine. A loopback address that it reports would lead to this machine.
    const { host } = adminListen;
    const own = /^(https?:\/\/)(0\.0\.0\.0|\[::1?\]|127\.[\d.]+|localhost)(?=[:/]|$)/;
    return url.replace(own, (_, scheme) => `${scheme}${host.includes(':') ? `[${host}]` : host}`);
  } catch {
    // A broken config or a gateway that just ended: the customary address is a good answer then.
    return undefined;
  }
}

/**
 * @throws ConfigError; Error that names the directory which was examined and what to do, when no gateway runs and
 * there is no store
 */
export async function findGateway(env: Environment, cwd: string): Promise<FoundGateway> {
  const location = await loadLocation({ flags: {}, env, cwd });
  const probe = probeOf(location, env);
  const running = await runningGateway(location, env, probe);
  if (running !== undefined) return running;
  const { dataDir, adminListen } = location;
  const { storeOfDirectory } = await import('./admin-of-directory.ts');
  const store = await storeOfDirectory(env, cwd);
  if (store.kind === 'sqlite' && !existsSync(join(dataDir, 'gateway.db'))) {
    const address = addressText(adminListen);
    const other = (await probe()) ? address : undefined;
    const closed = closedTo(dataDir);
    const beside = other === undefined ? '' : `; the one at ${other} has other data`;
    const silent = other === undefined && isAddressSaid(env) ? address : undefined;
    return {
      // A gateway on a directory that this user may not read cannot be seen: the one that answers may be that one.
      from:
        closed === undefined
          ? `No running gateway was found in ${dataDir}${beside}`
          : `${dataDir} cannot be read`,
      client: withoutStore(store.withoutData, missingText(dataDir, { other, silent, closed })),
    };
  }
  return { from: `No gateway runs; data in ${dataDir}`, client: store.client };
}

/** An address and a token that a person gave mean the gateway there, whatever lies in this folder. */
function isAddressSaid(env: Environment): boolean {
  const variables = ['MODEL_GATEWAY_ADMIN_LISTEN', 'MODEL_GATEWAY_ADMIN_TOKEN'];
  return variables.every((name) => (withSecretFiles(env)[name] ?? '') !== '');
}

/** The admin API of the gateway that runs on the directory; undefined when none does. @throws Error */
export function runningAdmin(dataDir: string, env: Environment): FoundGateway | undefined {
  const running = readRunFile(dataDir);
  if (running === undefined) return undefined;
  const { admin: address, control: token, certificate } = running;
  const client = httpAdminClient({ address, token, certificate, own: ownCertificate(env) });
  return { from: `Gateway ${address}, data in ${dataDir}`, client };
}

/** For an admin plane with `client_ca`. @throws Error that names the variable */
function ownCertificate(env: Environment): HttpAdminOptions['own'] {
  const [cert, key] = (['CERT', 'KEY'] as const).map((part) => {
    const variable = `MODEL_GATEWAY_CLIENT_${part}`;
    const path = env[variable] ?? '';
    try {
      return path === '' ? undefined : readFileSync(path, 'utf8');
    } catch (error) {
      throw new Error(`${variable}: ${path} cannot be read (${reason(error)}).`, { cause: error });
    }
  });
  return cert === undefined || key === undefined ? undefined : { cert, key: new Secret(key) };
}

async function runningGateway(
  location: GatewayLocation,
  env: Environment,
  probe: () => Promise<boolean>,
): Promise<FoundGateway | undefined> {
  const { dataDir, byUrl } = location;
  const running = byUrl === true ? undefined : runningAdmin(dataDir, env);
  if (running !== undefined) return running;
  const token = givenToken(env);
  if (byUrl === true && token === '') {
    throw new Error('Set MODEL_GATEWAY_ADMIN_TOKEN to the admin token of that gateway.');
  }
  if (byUrl === true) return gatewayAt(location, env, token);
  // A store of this directory goes before a gateway elsewhere that has the same token.
  if (token === '' || existsSync(join(dataDir, 'gateway.db')) || !(await probe())) {
    return undefined;
  }
  return gatewayAt(location, env, token);
}

/** '' = none. */
function givenToken(env: Environment): string {
  return withSecretFiles(env)['MODEL_GATEWAY_ADMIN_TOKEN'] ?? '';
}

/** @throws Error for a token that is none for certain, before it is sent */
function gatewayAt(location: GatewayLocation, env: Environment, token: string): FoundGateway {
  if (!/^[\x21-\x7e]*$/.test(token)) {
    throw new Error(
      'MODEL_GATEWAY_ADMIN_TOKEN has a space, a line break or another character that no admin token has.',
    );
  }
  const options = adminOptions(location, env);
  const client = httpAdminClient({ ...options, token: new Secret(token) });
  const { address } = options;
  return {
    from: `Gateway ${address}, by MODEL_GATEWAY_ADMIN_TOKEN`,
    client: naming(client, address),
  };
}

/**
 * A refusal of the token names the variable that it stands in: the answer's own words are for HTTP clients. Those of a
 * data plane list its endpoints.
 */
function naming(client: AdminClient, address: string): AdminClient {
  return {
    request: async (method, path, body) => {
      const reply = await client.request(method, path, body);
      if (isOfDataPlane(reply.body)) {
        throw new Error(
          `${address} is the data plane of a gateway. Commands need its admin plane, by default port 8687.`,
        );
      }
      if (reply.status !== 401) return reply;
      throw new Error(
        `The gateway at ${address} refuses the token in MODEL_GATEWAY_ADMIN_TOKEN. Set it to the admin token of that gateway, or name its data directory: --data-dir DIR.`,
      );
    },
  };
}

function isOfDataPlane(body: unknown): boolean {
  const error = isObject(body) ? body['error'] : undefined;
  return isObject(error) && error['code'] === 'unknown_url';
}

/** The first admin request of a gateway loads the admin API, which takes more than a second on a busy machine. */
const probeMs = 5000;

/** The address at which the configured listener is called. */
function adminOptions(
  { adminListen, adminTls, adminCertificate }: GatewayLocation,
  env: Environment,
): HttpAdminOptions {
  const host = ['0.0.0.0', '::'].includes(adminListen.host) ? '127.0.0.1' : adminListen.host;
  const address = `${adminTls ? 'https' : 'http'}://${addressText({ ...adminListen, host })}`;
  return { address, certificate: adminCertificate, own: ownCertificate(env) };
}

/** `answers`, requested at most once: an address that is silent takes the whole time of a request. */
function probeOf(location: GatewayLocation, env: Environment): () => Promise<boolean> {
  let asked: Promise<boolean> | undefined;
  return () => (asked ??= answers(location, env));
}

/** Whether the admin plane of a gateway answers there. */
async function answers(location: GatewayLocation, env: Environment): Promise<boolean> {
  if (location.adminListen.port === 0) return false;
  try {
    const client = httpAdminClient({ ...adminOptions(location, env), timeoutMs: probeMs });
    const { body } = await client.request('GET', '/api/session');
    return isObject(body) && ('signed_in' in body || 'error' in body);
  } catch {
    return false;
  }
}

interface Addresses {
  /** The customary or the named one, where a gateway with other data answers. */
  readonly other: string | undefined;
  /** The named one, where none answers. */
  readonly silent: string | undefined;
  /** Why the directory cannot be read. */
  readonly closed: string | undefined;
}

function missingText(dataDir: string, { other, silent, closed }: Addresses): string {
  if (silent !== undefined) {
    if (closed !== undefined) return `No gateway answers at ${silent}. ${closed}`;
    return `No gateway answers at ${silent}, and there is no gateway data in ${dataDir}. Check --admin-listen, or name the data directory: --data-dir DIR.`;
  }
  if (closed !== undefined) return closed;
  const here = `There is no gateway data in ${dataDir}.`;
  return other === undefined
    ? `${here} Start a gateway there ("model-gateway start"), or name the data directory of yours: --data-dir DIR.`
    : `${here} The gateway at ${other} has other data: name its directory with --data-dir DIR, or set MODEL_GATEWAY_ADMIN_TOKEN to its admin token.`;
}

/** Advice about a file, or a directory that this user may not read; undefined for others, and if there is none. */
function closedTo(dataDir: string): string | undefined {
  const found = entryOf(dataDir);
  if (found?.isDirectory() === false) {
    return `${dataDir} is not a directory. Name the data directory of a gateway: --data-dir DIR.`;
  }
  try {
    accessSync(dataDir, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const isClosed = error instanceof Error && 'code' in error && error.code === 'EACCES';
    if (!isClosed) return undefined;
    const owner = found?.uid ?? 'another one';
    const own = process.getuid?.() ?? 'another one';
    return `The data in ${dataDir} belongs to user ${owner}, and this program runs as user ${own}. Run the command as that user (sudo), or set MODEL_GATEWAY_ADMIN_TOKEN to the admin token.`;
  }
}

/** Undefined where there is nothing, or where a directory above is closed. */
function entryOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Models and prices are known without a store. */
const needNoData = /^\/api\/(models|prices)\b/;

function withoutStore(known: AdminClient, missing: string): AdminClient {
  return {
    request: (method, path, body) => {
      if (!needNoData.test(path)) return Promise.reject(new Error(missing));
      return known.request(method, path, body);
    },
  };
}
