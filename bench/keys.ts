/**
 * Measures a start with many keys on SQLite: how long it takes, how much memory it leaves and needed at
 * most, and how long pages of the admin API take.
 * Usage: node bench/keys.ts [keys, default 500000] [folder, default a new one that is removed]
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fillKeys, madeKey } from './many-rows.ts';

const keys = Number(process.argv[2] ?? '500000');
const folder = process.argv[3] ?? mkdtempSync(join(tmpdir(), 'gateway-keys-'));
const path = join(folder, 'gateway.db');
const adminToken = 'an-admin-token-for-the-bench';

function memoryOf(pid: number, name: 'VmHWM' | 'VmRSS'): number {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  );
  return Math.round(Number(found?.[1] ?? 0) / 1024);
}

async function page(url: string): Promise<{ readonly ms: number; readonly next: string }> {
  const startedAt = performance.now();
  const answer = await fetch(url, { headers: { authorization: `Bearer ${adminToken}` } });
  const body = await answer.text();
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${body.slice(0, 200)}`);
  const ms = performance.now() - startedAt;
  return { ms, next: /"next":"([^"]+)"/.exec(body)?.[1] ?? '' };
}

async function measure(): Promise<void> {
  const startedAt = performance.now();
  const program = new URL('../src/main.ts', import.meta.url).pathname;
  const flags = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--data-dir', folder];
  const child = spawn(process.execPath, [program, 'start', ...flags], {
    env: { PATH: process.env['PATH'], HOME: folder, MODEL_GATEWAY_ADMIN_TOKEN: adminToken },
    stdio: ['ignore', 'ignore', 'inherit'],
    cwd: folder,
  });
  const runFile = join(folder, 'run.json');
  while (!existsSync(runFile) && child.exitCode === null) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { pid = 0 } = child;
  console.log(`start ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  console.log(`memory ${memoryOf(pid, 'VmRSS')} MB, at most ${memoryOf(pid, 'VmHWM')} MB`);
  const admin = /"admin":"([^"]+)"/.exec(readFileSync(runFile, 'utf8'))?.[1] ?? '';
  for (const route of [
    `/api/keys?limit=100`,
    `/api/keys?limit=100&after=${madeKey(keys - 200).id}`,
  ]) {
    const { ms } = await page(`${admin}${route}`);
    console.log(`page ${route.slice(0, 40)} ${ms.toFixed(0)} ms`);
  }
  child.kill('SIGTERM');
  await new Promise((resolve) => child.once('exit', resolve));
}

if (!existsSync(path)) await fillKeys(path, keys);
await measure();
if (process.argv[3] === undefined) rmSync(folder, { recursive: true, force: true });
