/** A gateway whose measured load the test sets, with any number of keys. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/json/value.ts';
import type { LoadSample } from '../../src/http/overload/load.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import type { ClientDialect } from '../support/dialects.ts';
import { endpointOf } from '../support/requests.ts';
import { startRig, type Rig, type RigConfig } from '../support/rig.ts';

export interface OverloadRig extends Rig {
  /** What the process says of itself from now on: one sample. */
  press(sample: Partial<LoadSample>): void;
  /** Another key for all models. */
  key(): Promise<string>;
  call(dialect: ClientDialect, body: unknown, sending?: Calling): Promise<Reply>;
  status(): Promise<JsonObject>;
}

export interface Calling extends Sending {
  readonly key?: string;
}

/** Of `limits.memory` in these tests. */
export const memoryBytes = 256 * 1024 * 1024;

export async function startOverloadRig(config: RigConfig = {}): Promise<OverloadRig> {
  let tell: (sample: LoadSample) => void = () => undefined;
  const rig = await startRig(config, {
    load: (listener) => {
      tell = listener;
      return () => undefined;
    },
  });
  const admin = async (method: string, path: string, body?: JsonObject): Promise<JsonObject> => {
    const headers = { authorization: `Bearer ${adminToken}` };
    const reply = await send(rig.gateway.adminUrl + path, body, { method, headers });
    assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text}`);
    return reply.json;
  };
  return {
    ...rig,
    press: (sample) => tell({ rssBytes: 0, heapShare: 0, delayMs: 0, busy: 0, ...sample }),
    key: async () => {
      const made = await admin('POST', '/api/keys', { name: 'another', models: ['*'] });
      return String(made['key']);
    },
    call: (dialect, body, { key = clientKey, headers, ...sending } = {}) =>
      send(rig.gateway.url + endpointOf[dialect], body, {
        ...sending,
        headers: { authorization: `Bearer ${key}`, ...headers },
      }),
    status: () => admin('GET', '/api/status'),
  };
}

/** Waits until something is so. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`never: ${what}`);
    await sleep(5);
  }
}

export interface RawConnection {
  readonly socket: Socket;
  /** All that came back. */
  text(): string;
  readonly closed: Promise<unknown>;
}

/** Opens a connection and writes bytes on it. */
export async function openRaw(url: string, bytes: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  if (bytes !== '') await new Promise((resolve) => socket.write(bytes, resolve));
  return { socket, text: () => text, closed };
}

/** The head of a chat call with a body of this number of bytes; `chunked` says no length. */
export function rawHead(length: number | 'chunked', extra: readonly string[] = []): string {
  return [
    'POST /v1/chat/completions HTTP/1.1',
    'host: gateway',
    `authorization: Bearer ${clientKey}`,
    'content-type: application/json',
    length === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${length}`,
    ...extra,
    '\r\n',
  ].join('\r\n');
}
