/**
 * `run.json` in the data directory: where the admin plane of the running gateway is, and the secret of this run that
 * lets the command line of the same user in.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '../core/secret.ts';
import { tryParseObject } from '../json/parse.ts';

interface RunFile {
  readonly pid: number;
  /** `http://HOST:PORT` of the admin plane; over TLS `https://`. */
  readonly admin: string;
  readonly control: Secret;
  /** PEM of the certificate that the admin plane shows; absent without TLS. */
  readonly certificate?: string;
}

function pathIn(dataDir: string): string {
  return join(dataDir, 'run.json');
}

/** Writes the file in one step, 0600. @throws Error that names it, as where the disk is full */
export function writeRunFile(dataDir: string, run: RunFile): void {
  const unfinished = `${pathIn(dataDir)}.${run.pid}.new`;
  const { pid, admin, certificate } = run;
  const text = JSON.stringify({ pid, admin, control: run.control.reveal(), certificate });
  try {
    rmSync(unfinished, { force: true });
    writeFileSync(unfinished, `${text}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(unfinished, pathIn(dataDir));
  } catch (cause) {
    // The system's own text names no file where a disk is full.
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${pathIn(dataDir)} cannot be written (${why}).`, { cause });
  }
}

/** The gateway that runs on the directory; undefined when none does (a dead one's file counts as none). */
export function readRunFile(dataDir: string): RunFile | undefined {
  const run = parseRunFile(dataDir);
  return run !== undefined && isAlive(run.pid) ? run : undefined;
}

/** Removes the file when it is still that of the given process. */
export function removeRunFile(dataDir: string, pid: number): void {
  if (parseRunFile(dataDir)?.pid === pid) rmSync(pathIn(dataDir), { force: true });
}

function parseRunFile(dataDir: string): RunFile | undefined {
  let text: string;
  try {
    text = readFileSync(pathIn(dataDir), 'utf8');
  } catch {
    return undefined;
  }
  const run = tryParseObject(text) ?? {};
  const { pid, admin, control, certificate } = run;
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  if (typeof admin !== 'string' || typeof control !== 'string') return undefined;
  return {
    pid,
    admin,
    control: new Secret(control),
    ...(typeof certificate === 'string' ? { certificate } : {}),
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user may not be signalled, but it is there.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
