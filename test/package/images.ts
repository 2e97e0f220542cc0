/**
 * Images built by buildah and run by runc, without a registry: the base image is made of this machine's Node, npm and
 * the few Debian programs that the Containerfile calls.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  cpSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { removeFolder, temporaryFolder } from '../support/folders.ts';
import { findProgram } from '../support/server-process.ts';
import { root } from './pack.ts';

const base = 'localhost/node:26';
/** Of the base image; the official one has them too. */
const called = 'bash cat chown chmod cp env find grep gzip ldd ln mkdir rm sh strip tar'.split(' ');

const buildah = findProgram(['buildah']);
const runc = findProgram(['runc']);

/** What this machine lacks, or false. */
export const missing = whatIsMissing();

function whatIsMissing(): string | false {
  if (process.getuid?.() !== 0) return 'left out: images are built as root here';
  if (buildah === undefined || runc === undefined)
    return 'left out: buildah or runc is not on this machine (apt-get install buildah runc)';
  if (called.some((name) => findProgram([name]) === undefined))
    return 'left out: strip is not on this machine (apt-get install binutils)';
  // Root of a container may have no right to make another one.
  const namespaces = ['--mount', '--pid', '--ipc', '--uts', '--fork'];
  if (spawnSync('unshare', [...namespaces, 'mount', '-t', 'tmpfs', 'none', '/mnt']).status !== 0)
    return 'left out: this machine lets no process have files and process numbers of its own';
  return false;
}

async function run(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [status]: unknown[] = await once(child, 'close');
  assert.equal(status, 0, `${program} ${args.join(' ')}\n${printed}${said}`);
  return printed;
}

/** A program and the libraries that it is linked with. */
function copyProgram(program: string, to: string, folder: string): void {
  mkdirSync(dirname(join(folder, to)), { recursive: true });
  copyFileSync(realpathSync(program), join(folder, to));
  const { stdout } = spawnSync('ldd', [realpathSync(program)], { encoding: 'utf8' });
  for (const [library] of stdout.matchAll(/\/[^ ]+/g)) {
    mkdirSync(join(folder, dirname(library)), { recursive: true });
    copyFileSync(library, join(folder, library));
  }
}

/** Images and containers in a folder of their own. */
export class Images {
  readonly folder = temporaryFolder('images');
  readonly #files = new Map<string, Promise<string>>();

  buildah(...args: readonly string[]): Promise<string> {
    const places = ['--root', join(this.folder, 'images'), '--runroot', join(this.folder, 'run')];
    return run(buildah ?? '', [...places, ...args]);
  }

  /** The image that the Containerfile starts from. npm reads what `npm ci` has left in its cache. */
  async makeBase(): Promise<void> {
    const files = join(this.folder, 'base');
    for (const name of called) copyProgram(findProgram([name]) ?? '', `usr/bin/${name}`, files);
    copyProgram(process.execPath, 'usr/local/bin/node', files);
    symlinkSync('usr/bin', join(files, 'bin'));
    for (const name of ['tmp', 'root']) mkdirSync(join(files, name));
    const npm = join(realpathSync(findProgram(['npm']) ?? ''), '../..');
    cpSync(npm, join(files, 'usr/local/lib/npm'), { recursive: true });
    symlinkSync('../lib/npm/bin/npm-cli.js', join(files, 'usr/local/bin/npm'));
    const environment =
      'PATH=/usr/local/bin:/usr/bin HOME=/root npm_config_offline=true npm_config_cache=/cache';
    const recipe = join(this.folder, 'base.containerfile');
    writeFileSync(recipe, `FROM scratch\nCOPY . /\nENV ${environment}\n`);
    await this.buildah('build', '--file', recipe, '--tag', base, files);
  }

  /** @param context the folder with the files that the Containerfile copies */
  async build(name: string, engine: 'yes' | 'no', context: string): Promise<void> {
    const cache = (await run('npm', ['config', 'get', 'cache'])).trim();
    const recipe = join(root, 'deploy/container/Containerfile');
    const options = ['--isolation', 'chroot', '--layers=false', '--format', 'docker'];
    for (const value of [`NODE_IMAGE=${base}`, `ENGINE=${engine}`]) {
      options.push('--build-arg', value);
    }
    options.push('--volume', `${cache}:/cache`, '--file', recipe, '--tag', name);
    await this.buildah('build', ...options, context);
  }

  /** Config of an image, as Docker writes it. */
  async configOf(name: string): Promise<JsonObject> {
    const whole = tryParseObject(await this.buildah('inspect', '--type', 'image', name)) ?? {};
    const { Docker: docker } = whole;
    assert.ok(isObject(docker) && isObject(docker['config']));
    return docker['config'];
  }

  /** Files of an image, copied once; containers are started on them, and change nothing there. */
  filesOf(name: string): Promise<string> {
    const copied = this.#files.get(name) ?? this.#copyOf(name);
    this.#files.set(name, copied);
    return copied;
  }

  async #copyOf(name: string): Promise<string> {
    const container = (await this.buildah('from', '--pull-never', name)).trim();
    return (await this.buildah('mount', container)).trim();
  }

  async remove(): Promise<void> {
    await this.buildah('rm', '--all');
    await this.buildah('rmi', '--all', '--force');
    removeFolder(this.folder);
  }
}

/** A container: read-only files, no capability, no new rights, the network of this machine. */
export class Container {
  readonly #name: string;
  readonly #places: readonly string[];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  #said = '';

  /**
   * @param config of the image
   * @param args in place of its command
   * @param mounts folders of this machine by their place in the container
   */
  constructor(
    folder: string,
    files: string,
    config: JsonObject,
    { args, mounts }: { readonly args: readonly string[]; readonly mounts: Mounts },
  ) {
    const bundle = mkdtempSync(join(folder, 'bundle-'));
    this.#name = bundle.split('/').at(-1) ?? '';
    this.#places = ['--root', join(bundle, 'state')];
    const { Entrypoint: entrypoint, Env: env, User: user, WorkingDir: cwd } = config;
    assert.ok(Array.isArray(entrypoint));
    const [uid, gid] = String(user).split(':').map(Number);
    const bound = Object.entries(mounts).map(([destination, source]) => {
      chownSync(source, uid ?? 0, gid ?? 0);
      return { destination, source, type: 'bind', options: ['rbind', 'rw'] };
    });
    const none = ['bounding', 'effective', 'permitted', 'ambient'].map((set) => [set, []]);
    const spec = {
      ociVersion: '1.0.2',
      process: {
        user: { uid, gid },
        args: [...entrypoint, ...args],
        env,
        cwd,
        noNewPrivileges: true,
        capabilities: Object.fromEntries(none),
      },
      root: { path: files, readonly: true },
      mounts: [
        { destination: '/proc', type: 'proc', source: 'proc' },
        { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['mode=755'] },
        { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['mode=1777', 'size=64m'] },
        ...bound,
      ],
      linux: { namespaces: ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })) },
    };
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(spec));
    const command = [...this.#places, 'run', '--bundle', bundle, this.#name];
    this.#child = spawn(runc ?? '', command, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#said += text));
    }
    this.#ended = once(this.#child, 'close');
  }

  get said(): string {
    return this.#said;
  }

  get running(): boolean {
    return this.#child.exitCode === null;
  }

  /** Runs a command in the container. */
  exec(args: readonly string[]): { readonly status: number | null; readonly text: string } {
    const command = [...this.#places, 'exec', this.#name, ...args];
    const { status, stdout, stderr } = spawnSync(runc ?? '', command, { encoding: 'utf8' });
    return { status, text: stdout + stderr };
  }

  signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    spawnSync(runc ?? '', [...this.#places, 'kill', this.#name, signal]);
  }

  /** The exit code. */
  async end(): Promise<number | null> {
    await this.#ended;
    return this.#child.exitCode;
  }
}

export type Mounts = Readonly<Record<string, string>>;
