/** A gateway whose models have prices, and keys that are limited. */
import assert from 'node:assert/strict';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { inNoonZone } from '../support/noon.ts';
import { objectAt, type AnyDialect } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';
import { startRig, type Rig, type RigConfig } from '../support/rig.ts';
import type { TestConfig } from '../support/gateway.ts';

export interface LimitedKey {
  readonly id: string;
  readonly key: string;
  readonly headers: { readonly authorization: string };
}

export interface LimitedRig extends Rig {
  /** A key for all models with these limits, as the admin API takes them. */
  key(limits?: JsonObject): Promise<LimitedKey>;
  /** Budgets without a zone get one in which no day ends while the test runs. */
  admin(method: string, path: string, body?: JsonObject): Promise<JsonObject>;
  call(
    key: LimitedKey,
    dialect: AnyDialect,
    body: JsonObject,
    headers?: JsonObject,
    sending?: Pick<Sending, 'signal' | 'onData'>,
  ): Promise<Reply>;
  /** Nanodollars of what the ledger says a budget has spent. */
  spent(key: LimitedKey): Promise<number>;
}

/** Input is free, so that what a call may cost is its output cap alone: 10 $ a million tokens. */
export const outputOnly = {
  'up-chat/*': { input: 0, output: 10 },
  'up-messages/*': { input: 0, output: 10 },
  'up-responses/*': { input: 0, output: 10 },
  'up-gemini/*': { input: 0, output: 10 },
  'up-converse/*': { input: 0, output: 10 },
} as const;
export const nanodollarsOfOutput = 10_000;

/** A provider at this upstream that searches the web itself. */
export function searchingProvider({ port }: { readonly port: number }): JsonObject {
  return {
    dialect: 'anthropic-messages',
    base_url: `http://127.0.0.1:${port}`,
    api_key: 'upstream-messages-key',
    server_tools: true,
  };
}

export async function startLimitedRig(config: RigConfig = {}): Promise<LimitedRig> {
  const priced = (given: TestConfig): TestConfig => ({ prices: outputOnly, ...given });
  const rig = await startRig(
    typeof config === 'function' ? (upstreams) => priced(config(upstreams)) : priced(config),
  );
  const admin: LimitedRig['admin'] = async (method, path, body) => {
    const input = body === undefined ? undefined : inNoonZone(body);
    const reply = await send(rig.gateway.adminUrl + path, input, {
      method,
      headers: { authorization: `Bearer ${adminToken}` },
    });
    assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text}`);
    return reply.json;
  };
  return {
    ...rig,
    admin,
    key: async (limits = {}) => {
      const made = await admin('POST', '/api/keys', { name: 'limited', models: ['*'], ...limits });
      const [id, key] = [String(made['id']), String(made['key'])];
      return { id, key, headers: { authorization: `Bearer ${key}` } };
    },
    call: (key, dialect, body, headers = {}, sending = {}) =>
      send(rig.gateway.url + endpointOf[dialect], body, {
        ...sending,
        headers: { ...key.headers, ...textsOf(headers) },
      }),
    spent: async (key) => {
      const shown = await admin('GET', `/api/keys/${key.id}`);
      const budgets = shown['budgets'];
      assert.ok(Array.isArray(budgets));
      const [first] = budgets.filter(isObject);
      return Math.round(Number(first?.['spent_usd']) * 1e9);
    },
  };
}

function textsOf(headers: JsonObject): { [name: string]: string } {
  return Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, String(text)]));
}

/** The `error` object of a refusal. */
export function errorOf(reply: Reply): JsonObject {
  return objectAt(reply.json, 'error');
}
