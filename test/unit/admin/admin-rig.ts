/** A real admin server on a SQLite store in memory, or in a file where the test looks into it, and a client for it. */
import { once } from 'node:events';
import { request, type Server } from 'node:http';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { loadAdminToken, makeRunToken, TokenCheck } from '../../../src/access/keys/admin-token.ts';
import { AuditLog, FileAnchor } from '../../../src/access/audit.ts';
import { KeyRing } from '../../../src/access/keys/keys.ts';
import { noContentKey } from '../../../src/access/keys/seal-key.ts';
import { Ledger } from '../../../src/access/ledger.ts';
import { Policies } from '../../../src/access/policies.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { tryParse } from '../../../src/json/parse.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { AdminDeps } from '../../../src/admin/handler.ts';
import { createAdminServer } from '../../../src/admin/server.ts';
import { LoggedContents } from '../../../src/features/content-log/sealed-content.ts';
import { listen } from '../../../src/http/listen.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { memoryStore } from '../../support/memory-store.ts';
import { countingBytes, HeldClock, silentLog } from '../access/fakes.ts';

export const adminToken = 'the-admin-token-0123';

export interface Answer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  readonly body: JsonObject;
}

export interface Ask {
  readonly method?: string;
  readonly body?: Json;
  /** Sent instead of `body`. */
  readonly raw?: string;
  readonly headers?: { readonly [name: string]: string };
  /** Default: the admin token. */
  readonly token?: string | undefined;
}

export interface Rig {
  readonly url: string;
  /** Of its own; `audit.head` lies there. */
  readonly folder: string;
  readonly deps: AdminDeps;
  readonly keys: KeyRing;
  readonly ledger: Ledger;
  readonly clock: HeldClock;
  readonly control: Secret;
  readonly server: Server;
  /** From now on this is the admin token. */
  tokenIs(token: string): void;
  ask(path: string, options?: Ask): Promise<Answer>;
}

/** A store in a file, for `adminRig`: each costs two threads. */
export async function fileStore(): Promise<{ readonly store: Store; readonly path: string }> {
  const folder = temporaryFolder('store');
  const path = join(folder, 'gateway.db');
  return { store: await openSqliteStore({ path, log: silentLog }), path };
}

export async function adminRig(
  t: TestContext,
  change: Partial<AdminDeps> = {},
  wait: () => Promise<void> = async () => undefined,
  server: Partial<Parameters<typeof createAdminServer>[0]> = {},
): Promise<Rig> {
  const folder = temporaryFolder('admin');
  const store = change.store ?? memoryStore();
  const clock = new HeldClock();
  const random = countingBytes();
  const policies = new Policies(store.policies);
  const keys = new KeyRing({ store, clock, random, policies });
  await keys.load();
  const ledger = new Ledger({ store, clock, log: silentLog });
  const literal = new Secret(adminToken);
  let { check } = await loadAdminToken({ store, random, keys, literal });
  const adminTokenCheck = {
    verify: (text: string) => check.verify(text),
    verifyDigest: (digest: Buffer) => check.verifyDigest(digest),
  };
  const control = makeRunToken(random);
  const deps: AdminDeps = {
    keys,
    policies,
    audit: new AuditLog({
      store: store.audit,
      clock,
      log: silentLog,
      anchor: new FileAnchor(join(folder, 'audit.head')),
    }),
    version: '1.2.3',
    store,
    clock,
    log: silentLog,
    flushLedger: () => ledger.flush(),
    models: async () => [
      { id: 'local/tiny', targets: [{ target: 'local/tiny', health: 'healthy' }] },
    ],
    modelProblems: () => [],
    config: () => ({ origins: [], warnings: [] }),
    providers: () => [],
    downloads: async () => [],
    prices: async () => [],
    defaultPrice: () => undefined,
    contents: new LoggedContents({ store, key: noContentKey, clock }),
    status: () => ({ version: '1.2.3' }),
    reload: async () => ({ applied: true, problems: [] }),
    ...change,
  };
  const newId = (prefix: string): string => `${prefix}1`;
  const listener = createAdminServer({
    ...deps,
    ...server,
    adminToken: adminTokenCheck,
    controlToken: control,
    newId,
    random,
    wait,
  });
  const url = await listen(listener, { host: '127.0.0.1', port: 0 });
  t.after(async () => {
    listener.closeAllConnections();
    listener.close();
    await ledger.close();
    await store.close();
  });
  return {
    url,
    folder,
    deps,
    keys,
    ledger,
    clock,
    control,
    server: listener,
    tokenIs: (token) => {
      check = TokenCheck.of(new Secret(token));
    },
    ask: (path, options = {}) => ask(url + path, options),
  };
}

async function ask(url: string, options: Ask): Promise<Answer> {
  const token = 'token' in options ? options.token : adminToken;
  const outgoing = request(url, {
    method: options.method ?? 'GET',
    agent: false,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...options.headers,
    },
  });
  const text = options.raw ?? (options.body === undefined ? '' : JSON.stringify(options.body));
  if (text !== '') outgoing.setHeader('content-length', Buffer.byteLength(text));
  outgoing.end(text);
  const [response] = await once(outgoing, 'response');
  let received = '';
  for await (const piece of response) received += String(piece);
  const body = tryParse(received);
  return {
    status: response.statusCode,
    headers: response.headers,
    body: isObject(body) ? body : { text: received },
  };
}

/** The `error` member of a refusal. */
export function errorOf(answer: Answer): JsonObject {
  const { error } = answer.body;
  return isObject(error) ? error : {};
}

/** A member that must be a text. */
export function textOf(body: JsonObject, name: string): string {
  const value = body[name];
  return typeof value === 'string' ? value : '';
}

/** A member that must be a list of objects. */
export function listOf(body: JsonObject, name: string): readonly JsonObject[] {
  const value = body[name];
  return Array.isArray(value) ? value.filter((item) => isObject(item)) : [];
}
