/** Start time and size: process start to first answered call, and what an install takes on disk. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { tryParseObject } from '../src/json/parse.ts';
import { everyCore } from './child.ts';
import { gatewayKey, startGateway } from './gateway.ts';
import { processTree, residentKb } from './process-cpu.ts';

/** Of each start: seconds to the first answer, and resident MB at rest after it. `missing` says why there is no figure. */
export type StartTimes =
  | { readonly seconds: readonly number[]; readonly restMb?: readonly number[] }
  | { readonly missing: string };

/** After its last call. The young generation is collected after three seconds. */
const restMs = 6_000;

/** How long the first answer may take before the start counts as failed. */
const answerLimitMs = 30_000;

/**
 * Starts the gateway `times` times, on any core, each with an empty data directory, and makes one
 * unary chat call. The files are in the page cache; no process and no model is warm.
 */
export async function measureStart(
  model: string,
  mockPort: number,
  times: number,
): Promise<StartTimes> {
  const seconds: number[] = [];
  const restMb: number[] = [];
  for (let i = 0; i < times; i++) {
    const startedAt = performance.now();
    const gateway = await startGateway({ mockPort, core: everyCore.name });
    try {
      const fault = await firstAnswer(gateway.port, model);
      if (fault !== undefined) return { missing: fault };
      seconds.push((performance.now() - startedAt) / 1000);
      await new Promise((resolve) => setTimeout(resolve, restMs));
      if (gateway.pid !== undefined) restMb.push(residentKb(processTree(gateway.pid)) / 1024);
    } finally {
      await gateway.stop();
    }
  }
  return { seconds, restMb };
}

/** What was wrong with the answer; undefined when the call was answered with counted tokens. */
function firstAnswer(port: number, model: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const call = request(
    {
      port,
      host: '127.0.0.1',
      path: '/v1/chat/completions',
      method: 'POST',
      headers: { authorization: `Bearer ${gatewayKey}`, 'content-type': 'application/json' },
      timeout: answerLimitMs,
    },
    (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => (text += piece));
      answer.on('end', () => {
        const counted = tryParseObject(text)?.usage !== undefined;
        const right = answer.statusCode === 200 && counted;
        resolve(right ? undefined : `status ${answer.statusCode}: ${text.slice(0, 300)}`);
      });
    },
  );
  call.on('timeout', () => call.destroy(new Error('no answer in time')));
  call.on('error', (error) => resolve(String(error)));
  call.end(
    JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8 }),
  );
  return promise;
}

/** Disk use of `node_modules` in MB, as `du` counts it; undefined when it is not there. */
export function installedMb(): number | undefined {
  const folder = join(import.meta.dirname, '..', 'node_modules');
  if (!existsSync(folder)) return undefined;
  const kb = Number(spawnSync('du', ['-sk', folder], { encoding: 'utf8' }).stdout.split('\t')[0]);
  return Number.isFinite(kb) ? kb / 1024 : undefined;
}
