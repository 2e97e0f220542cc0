/**
 * Other gateways beside ours, in the same rounds: each is a file of `peers/` that says how it is started
 * in front of the mock upstream. None is a dependency: what can be installed is, on demand and outside
 * of the tree (`peer-install.ts`), what cannot is taken from the PATH, or omitted with a line that says so.
 */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join, resolve } from 'node:path';
import { z } from 'zod';
import { makeScratch, removeScratch, startProcess, stopProcess, subjectCore } from './child.ts';
import { installation, installPeer } from './peer-install.ts';
import { freePort, untilListening, untilPrinted } from './ports.ts';
import { perDialect } from './protocol.ts';
import type { RunningSubject, Subject } from './subject.ts';

const folder = join(import.meta.dirname, 'peers');

/** A Python program that loads hundreds of modules takes half a minute on a slow core. */
const startLimitMs = 90_000;

/**
 * A peer. In command, files, env and headers stand for themselves: `{port}` to listen on, `{mock}`, the
 * upstream's port, `{folder}` with its files, `{installed}` with what was installed, `{node}`.
 */
const peerFile = z.strictObject({
  name: z.string(),
  /** Absent: that of whatever is on the PATH. */
  version: z.string().optional(),
  /** Measured only when it is requested: it takes long to install or to start. */
  onDemand: z.boolean().default(false),
  install: installation.optional(),
  command: z.array(z.string()).min(1),
  /** A pattern whose first group is the port, in what it prints: for a program that chooses its port. */
  printsPort: z.string().optional(),
  files: z.record(z.string(), z.string()).default({}),
  env: z.record(z.string(), z.string()).default({}),
  /** What it calls the mock's model, and the key it wants. */
  model: z.string(),
  key: z.string(),
  headers: z.record(z.string(), z.string()).default({}),
  /** Where it takes chat completions, if not where everyone does. */
  path: z.string().optional(),
});

export type Peer = z.infer<typeof peerFile>;

/** A peer by the name of its file in `peers/`, or by a path to one. @throws Error that says what is wrong */
export function readPeer(nameOrPath: string): Peer {
  const known = join(folder, `${nameOrPath}.json`);
  const file = existsSync(known) ? known : resolve(nameOrPath);
  if (!existsSync(file)) {
    throw new Error(`no peer ${nameOrPath}: known are ${knownPeers().join(', ')}, or give a file`);
  }
  const read = peerFile.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (read.success) return read.data;
  throw new Error(`${file}: ${z.prettifyError(read.error)}`);
}

export function knownPeers(): string[] {
  return readdirSync(folder).map((file) => basename(file, '.json'));
}

export interface FoundPeers {
  readonly subjects: readonly Subject[];
  /** Those that are omitted. */
  readonly missing: readonly { readonly name: string; readonly why: string }[];
}

/** Those requested; of no request, those that are measured by default, with a line for each other. */
export function findPeers(asked: readonly string[] | undefined): FoundPeers {
  const subjects: Subject[] = [];
  const missing: { readonly name: string; readonly why: string }[] = [];
  for (const name of asked ?? knownPeers()) {
    const peer = readPeer(name);
    const found =
      asked !== undefined || !peer.onDemand
        ? findPeer(peer)
        : { missing: `not asked for, \`--peers ${name}\`` };
    if ('missing' in found) missing.push({ name: peer.name, why: found.missing });
    else subjects.push(found);
  }
  return { subjects, missing };
}

function findPeer(peer: Peer): Subject | { readonly missing: string } {
  const place = peer.install === undefined ? undefined : installPeer(peer.install);
  if (place !== undefined && 'missing' in place) return place;
  const [program = ''] = peer.command;
  if (place === undefined && !isOnPath(program)) return { missing: `no ${program} on the PATH` };
  const installed = place?.folder ?? '';
  return {
    name: peer.name,
    version: peer.version ?? 'of the PATH',
    key: peer.key,
    models: perDialect(() => peer.model),
    ...(peer.path === undefined ? {} : { path: peer.path }),
    translates: false,
    isPeer: true,
    warmUp: 'long',
    start: (mockPort) => startPeer(peer, installed, mockPort),
  };
}

function isOnPath(program: string): boolean {
  if (program === '{node}') return true;
  if (isAbsolute(program)) return existsSync(program);
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.some((place) => existsSync(join(place, program)));
}

async function startPeer(peer: Peer, installed: string, mockPort: number): Promise<RunningSubject> {
  const own = makeScratch('peer');
  const chosen = await freePort();
  const values = { port: chosen, mock: mockPort, folder: own, installed, node: process.execPath };
  const { files, env, headers, command } = fillIn(peer, values);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(own, name), text);
  const log = join(own, 'output.log');
  const output = openSync(log, 'w');
  const child = startProcess(command, {
    core: subjectCore,
    stdio: ['ignore', output, output],
    cwd: own,
    env: { PATH: process.env.PATH ?? '', HOME: own, ...env },
  });
  closeSync(output);
  const stop = async (): Promise<void> => {
    await stopProcess(child);
    removeScratch(own);
  };
  let port = chosen;
  try {
    const { printsPort } = peer;
    if (printsPort !== undefined) port = await untilPrinted(child, log, printsPort, startLimitMs);
    await untilListening(child, port, startLimitMs);
  } catch (error) {
    const tail = readFileSync(log, 'utf8').slice(-500);
    await stop();
    throw new Error(`${peer.name}: ${String(error)}: ${tail}`, { cause: error });
  }
  return { port, headers, stop, ...(child.pid === undefined ? {} : { pid: child.pid }) };
}

type Values = Readonly<Record<string, string | number>>;

/** The peer with each `{name}` in it replaced; braces around anything else stay. */
export function fillIn(
  { files, env, headers, command }: Pick<Peer, 'files' | 'env' | 'headers' | 'command'>,
  values: Values,
): Pick<Peer, 'files' | 'env' | 'headers' | 'command'> {
  const fill = (text: string): string =>
    text.replaceAll(/\{([a-z]+)\}/g, (whole, name: string) => String(values[name] ?? whole));
  const all = (texts: Record<string, string>): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
  return { files: all(files), env: all(env), headers: all(headers), command: command.map(fill) };
}
