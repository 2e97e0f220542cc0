/** The package that `npm pack` makes of the repository, without network, a user's npm settings or a change of this folder. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '../support/folders.ts';

export const root = join(import.meta.dirname, '..', '..');
const nodeBin = join(root, 'node_modules', '.bin');

/** What packing reads; `node_modules` has the bundler. */
const sources = [
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'bench',
  'bin',
  'dashboard',
  'deploy',
  'docs',
  'models',
  'package-lock.json',
  'package.json',
  'scripts',
  'src',
  'tsconfig.json',
];

/** A copy of the repository to be packed: packing writes `dist/`, which a person may have in use. */
function copyOfRepository(folder: string): string {
  const copy = join(folder, 'repository');
  mkdirSync(copy);
  for (const name of sources) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Runs npm in a folder, with `home` instead of the person's own; what it wrote. @throws AssertionError when it fails. */
export async function npm(cwd: string, home: string, args: readonly string[]): Promise<string> {
  const child = spawn('npm', args, {
    cwd,
    env: {
      PATH: `${nodeBin}:${process.env['PATH'] ?? ''}`,
      HOME: home,
      npm_config_cache: join(home, 'cache'),
      npm_config_update_notifier: 'false',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  }
  const [status]: unknown[] = await once(child, 'close');
  assert.equal(status, 0, said);
  return said;
}

/** Packs a copy with its scripts, as a release does; the path of the tarball. */
async function pack(copy: string, folder: string): Promise<string> {
  const destination = mkdtempSync(join(folder, 'pack-'));
  const said = await npm(copy, folder, ['pack', '--offline', '--pack-destination', destination]);
  assert.doesNotMatch(said, /is installed/);
  const [name = ''] = readdirSync(destination);
  return join(destination, name);
}

export interface Packed {
  /** The copy that was packed. */
  readonly copy: string;
  readonly tarball: string;
  /** Of a second run at the same time, in the same copy. */
  readonly second: string;
}

export const secretFiles = ['deploy/.env', 'deploy/secrets/admin_token'];

let packed: Promise<Packed> | undefined;

/** The package, packed twice at once, and once a process, which joins the program and builds the dashboard. */
export function packedOnce(): Promise<Packed> {
  packed ??= packRepository();
  return packed;
}

async function packRepository(): Promise<Packed> {
  const folder = temporaryFolder('packed');
  const copy = copyOfRepository(folder);
  // Secrets of deploy/compose.yaml, as a person has them: no file list of a package may take them.
  for (const name of secretFiles) {
    mkdirSync(dirname(join(copy, name)), { recursive: true });
    writeFileSync(join(copy, name), 'a-secret');
  }
  const packs = [pack(copy, folder), pack(copy, folder)] as const;
  const [tarball, second] = await Promise.all(packs);
  return { copy, tarball, second };
}
