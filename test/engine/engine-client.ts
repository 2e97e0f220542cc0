/** Talks to a real engine over its real socket. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { tryParse } from '../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import type { Log } from '../../src/core/runtime.ts';
import { assertAnyStream } from '../support/legality.ts';
import { tinyModel } from '../../src/local-models/model-folder.ts';
import { createLocalEngine, type LocalEngine } from '../../src/providers/local.ts';

export const clock = { now: () => performance.now(), wall: () => Date.now() };

export interface LogEntry {
  readonly event: string;
  readonly [field: string]: unknown;
}

/** A log that keeps what was written. */
export function memoryLog(): { readonly log: Log; readonly entries: LogEntry[] } {
  const entries: LogEntry[] = [];
  const write = (event: string, fields?: object): void => void entries.push({ event, ...fields });
  return { log: { debug: write, info: write, warn: write, error: write }, entries };
}

/** Callers wait for 20 s while an engine starts, which takes longer on a busy machine. */
export const patient = { startWaitMs: 300_000 } as const;

export function tinyEngine(): LocalEngine {
  const { path: modelPath, sha256 } = tinyModel;
  return createLocalEngine({ modelPath, sha256, clock, log: memoryLog().log, ...patient });
}

/** The reason to leave engine tests out on this machine, as one line; false when it can run. */
export async function reasonToSkip(): Promise<string | false> {
  // Of a run of several files the first one that starts an engine says it to the others.
  const folder = process.env['TEST_SERVER_FOLDER'];
  const started = folder === undefined ? undefined : join(folder, 'engine-started');
  if (started !== undefined && existsSync(started)) return false;
  const engine = tinyEngine();
  try {
    await engine.ready();
    if (started !== undefined) writeFileSync(started, '');
    return false;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (reason.includes('npm install')) return `left out: ${reason}`;
    throw error;
  } finally {
    await engine.stop();
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly body: JsonObject;
}

export interface StreamedAnswer {
  readonly chunks: readonly JsonObject[];
  readonly done: boolean;
}

/** A request that can be left. */
export interface OpenRequest {
  readonly response: Promise<IncomingMessage>;
  leave(): void;
}

export class EngineClient {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  open(path: string, body?: Json): OpenRequest {
    const outgoing = request({
      socketPath: this.#socketPath,
      path,
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json' },
    });
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve);
      outgoing.once('error', reject);
    });
    response.catch(() => {});
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    return { response, leave: () => void outgoing.destroy() };
  }

  async call(path: string, body?: Json): Promise<Answer> {
    const response = await this.open(path, body).response;
    const text = await readAll(response);
    const parsed = tryParse(text);
    assert.ok(isObject(parsed), text);
    return { status: response.statusCode ?? 0, headers: response.headers, text, body: parsed };
  }

  /** One question, as a document. */
  chat(question: string, more: JsonObject = {}): Promise<Answer> {
    return this.call('/v1/chat/completions', chatBody(question, more));
  }

  /** One question, streamed with usage. */
  async stream(question: string, more: JsonObject = {}): Promise<StreamedAnswer> {
    const streamed = { stream: true, stream_options: { include_usage: true }, ...more };
    const body = chatBody(question, streamed);
    const response = await this.open('/v1/chat/completions', body).response;
    const text = await readAll(response);
    assert.equal(response.statusCode, 200, text);
    assertAnyStream({ dialect: 'chat', origin: 'relayed' }, body, text);
    return readEvents(text);
  }
}

export function chatBody(question: string, more: JsonObject = {}): JsonObject {
  return {
    model: 'tiny',
    messages: [{ role: 'user', content: question }],
    temperature: 0,
    ...more,
  };
}

/** An answer that goes on and on with any model: what repeats becomes more and more likely. */
export function endlessBody(more: JsonObject = {}): JsonObject {
  const messages = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'ha ha ha ha ha ha ha ha ha ha' },
  ];
  return { model: 'tiny', messages, temperature: 0, frequency_penalty: -2, ...more };
}

/** Two frames: the role, and the first text. */
export const firstText = /"content":"".*"content":"./s;

export function readEvents(text: string): StreamedAnswer {
  const data = text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => frame.slice('data: '.length));
  const chunks = data.filter((line) => line !== '[DONE]').map((line) => asObject(tryParse(line)));
  return { chunks, done: data.at(-1) === '[DONE]' };
}

export async function readAll(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8');
  let text = '';
  for await (const piece of response) text += String(piece);
  return text;
}

/** Waits until the bytes so far match. */
export async function waitForText(response: IncomingMessage, wanted: RegExp): Promise<void> {
  response.setEncoding('utf8');
  let text = '';
  while (!wanted.test(text)) {
    const [piece] = await once(response, 'data');
    text += String(piece);
  }
}

export function asObject(value: unknown): JsonObject {
  assert.ok(isObject(value), `not an object: ${JSON.stringify(value)}`);
  return value;
}

/** A value inside a JSON document, by its path. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current: unknown = value;
  for (const key of path) {
    if (Array.isArray(current)) current = current[Number(key)];
    else current = isObject(current) ? current[key] : undefined;
  }
  return current;
}

export function messageOf(answer: Answer): JsonObject {
  assert.equal(answer.status, 200, answer.text);
  return asObject(at(answer.body, 'choices', 0, 'message'));
}

/** The text of a streamed answer. */
export function textOf(answer: StreamedAnswer): string {
  return answer.chunks
    .map((chunk) => at(chunk, 'choices', 0, 'delta', 'content'))
    .filter((text) => typeof text === 'string')
    .join('');
}
