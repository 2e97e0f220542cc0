/**
 * Measures how long a gateway that was killed takes until it is ready again, on a ledger of many rows (G16: at
 * most 3 s with a million). Each round kills it with SIGKILL as soon as it is ready, so that the next one recovers.
 * Usage: node bench/recovery.ts [rows, default 1000000] [rounds, default 5]
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const rows = process.argv[2] ?? '1000000';
const rounds = Number(process.argv[3] ?? '5');
const maxSeconds = 3;
const main = join(import.meta.dirname, '..', 'src', 'main.ts');

const folder = mkdtempSync(join(tmpdir(), 'gateway-recovery-'));
process.stdout.write(`writing ${rows} rows …\n`);
const ledger = join(import.meta.dirname, 'ledger.ts');
spawnSync(process.execPath, [ledger, rows, folder], { stdio: ['ignore', 'ignore', 'inherit'] });

const seconds: number[] = [];
for (let round = 0; round < rounds; round += 1) seconds.push(await secondsToReady());
seconds.sort((a, b) => a - b);
const megabytes = Math.round(statSync(join(folder, 'gateway.db')).size / 1e6);
const median = seconds[Math.floor(seconds.length / 2)] ?? Number.NaN;
const worst = seconds.at(-1) ?? Number.NaN;
process.stdout.write(
  `ready after a kill, ${rows} rows (${megabytes} MB): median ${median.toFixed(2)} s, worst of ${rounds} ${worst.toFixed(2)} s; at most ${maxSeconds} s\n`,
);
rmSync(folder, { recursive: true, force: true });
process.exitCode = worst <= maxSeconds ? 0 : 1;

/** From the start of the process to the first 200 of /readyz; then the process is killed. */
async function secondsToReady(): Promise<number> {
  const began = performance.now();
  const args = ['start', '--data-dir', folder, '--listen', ':0', '--admin-listen', ':0'];
  const child = spawn(process.execPath, [main, ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'], MODEL_GATEWAY_KEY: 'a-key-for-the-measurement' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const closed = once(child, 'close');
  let out = '';
  for await (const piece of child.stdout.setEncoding('utf8')) {
    out += String(piece);
    const url = /^listening (\S+)$/m.exec(out)?.[1];
    if (url === undefined) continue;
    while ((await status(`${url}/readyz`)) !== 200) await new Promise(setImmediate);
    break;
  }
  const taken = (performance.now() - began) / 1000;
  child.kill('SIGKILL');
  await closed;
  return taken;
}

function status(url: string): Promise<number> {
  return new Promise((resolve) => {
    const asked = request(url, { agent: false }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
    });
    asked.on('error', () => resolve(0));
    asked.end();
  });
}
