/**
 * A program with the engine's command line, IPC messages and socket, and no model behind them. The
 * "model file" says how it behaves. Requests are held open until they are left, `/done` is answered, and
 * `/who` with the number of the process.
 */
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';

/** What a model file of the scripted engine may hold. */
export interface EngineScript {
  /** `slow` reports 40 % and no more, `failed` its reason, `exit` ends before it is ready. */
  readonly start?: 'ready' | 'slow' | 'failed' | 'exit';
  /** No signs of life once it is ready. */
  readonly mute?: boolean;
  /** Whether tokens move while a request is open. */
  readonly stands?: boolean;
}

const { values: flags } = parseArgs({
  strict: false,
  options: { socket: { type: 'string' }, model: { type: 'string' }, name: { type: 'string' } },
});
const script: EngineScript = tryParseObject(readFileSync(String(flags.model), 'utf8')) ?? {};
let served = 0;
let active = 0;
let steps = 0;

const server = createServer((request, response) => {
  served += 1;
  if (request.url === '/done') {
    response.end('{}');
    return;
  }
  if (request.url === '/who') {
    response.end(JSON.stringify({ pid: process.pid }));
    return;
  }
  active += 1;
  response.on('close', () => (active -= 1));
  response.flushHeaders();
});
process.on('disconnect', () => process.exit());
process.on('message', (message) => {
  if (!isObject(message) || script.mute === true) return;
  const leaves = message['ask'] === 'leave';
  if (leaves && active === 0 && served >= Number(message['served'])) process.exit();
  if (script.stands !== true) steps += 1;
  const stays = leaves ? { stays: true } : {};
  process.send?.({ state: 'beat', served, active, computing: active, steps, ...stays });
});
rmSync(String(flags.socket), { force: true });
server.listen(String(flags.socket), () => {
  if (script.start === 'exit') process.exit(7);
  if (script.start === 'slow') process.send?.({ state: 'loading', percent: 40 });
  else if (script.start === 'failed')
    process.send?.({ state: 'failed', reason: 'It is not a model.' });
  else process.send?.({ state: 'ready' });
});
