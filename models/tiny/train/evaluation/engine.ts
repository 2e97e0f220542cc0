/** The engine as the gateway runs it: its own process, asked over its socket. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { tryParseObject } from '../../../../src/json/parse.ts';
import type { JsonObject } from '../../../../src/json/value.ts';

const program = fileURLToPath(new URL('../../../../src/engine/main.ts', import.meta.url));
const startTriesEachMs = 50;

/** A running engine. */
export interface Engine {
  /** Asks `/v1/chat/completions`. @throws when the answer is no 200 with a JSON object */
  complete(body: JsonObject): Promise<JsonObject>;
  stop(): Promise<void>;
}

/** Starts an engine on a model file; resolves when it is ready. */
export async function startEngine(modelPath: string): Promise<Engine> {
  const folder = mkdtempSync(join(tmpdir(), 'evaluate-'));
  const socketPath = join(folder, 'engine.sock');
  const flags = ['--socket', socketPath, '--model', modelPath];
  const child = spawn(process.execPath, [program, ...flags], { stdio: ['ignore', 2, 2] });
  const ended = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    while (!(await isReady(socketPath))) {
      if (child.exitCode !== null) throw new Error('the engine ended before it was ready');
      await sleep(startTriesEachMs);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { complete: (body) => complete(socketPath, body), stop };
}

/** @throws when the engine says that it cannot start */
async function isReady(socketPath: string): Promise<boolean> {
  const answer = await call(socketPath, '/health').catch(() => undefined);
  const state = answer === undefined ? undefined : tryParseObject(answer.text)?.['status'];
  if (state === 'failed') throw new Error(`the engine cannot start: ${answer?.text}`);
  return state === 'ready';
}

async function complete(socketPath: string, body: JsonObject): Promise<JsonObject> {
  const answer = await call(socketPath, '/v1/chat/completions', body);
  const parsed = tryParseObject(answer.text);
  if (answer.status === 200 && parsed !== undefined) return parsed;
  throw new Error(`the engine answers ${answer.status}: ${answer.text}`);
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function call(socketPath: string, path: string, body?: JsonObject): Promise<Answer> {
  const method = body === undefined ? 'GET' : 'POST';
  const headers = { 'content-type': 'application/json' };
  const outgoing = request({ socketPath, path, method, headers });
  const answered = new Promise<Answer>((resolve, reject) => {
    outgoing.once('error', reject);
    outgoing.once('response', (response) => {
      response.setEncoding('utf8');
      response.once('error', reject);
      response
        .toArray()
        .then((pieces) => resolve({ status: response.statusCode ?? 0, text: pieces.join('') }))
        .catch(reject);
    });
  });
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  return answered;
}
