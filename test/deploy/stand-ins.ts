/**
 * Services of a compose file without images: programs of this machine in place of those of the images, each with files
 * and a network of its own. Linux, as root of namespaces of its own (`unshare`): all of it goes with them.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const repository = join(import.meta.dirname, '../..');
export const prefix = '172.30.86.';
/** Of the process that makes the stand. */
export const hostAddress = `${prefix}1`;

export interface Service {
  readonly name: string;
  readonly address: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Files and folders of this machine by their place in the container. */
  readonly mounts: Readonly<Record<string, string>>;
  /** A folder of its own. */
  readonly root: string;
  /** Not root. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Of `setpriv`, besides those of the user. */
  readonly privileges?: readonly string[];
  /** Nothing but volumes and `temporary` can be written. */
  readonly isReadOnly?: boolean;
  /** Folders in memory. */
  readonly temporary?: readonly string[];
}

/** The repository and Node in a container: a user of it may not be able to enter the folders above them. */
const place = '/app';
export const nodeInside = '/node';
const inside = (path: string): string =>
  path.startsWith(`${repository}/`) ? place + path.slice(repository.length) : path;

/** A network with an address for this process. */
export function makeNetwork(): void {
  mkdirSync('/run/netns', { recursive: true });
  for (const args of [
    'link add br0 type bridge',
    `addr add ${hostAddress}/24 dev br0`,
    'link set br0 up',
    'link set lo up',
  ]) {
    execFileSync('ip', args.split(' '));
  }
}

export class StandIn {
  readonly service: Service;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  said = '';

  constructor(service: Service, hosts: string) {
    this.service = service;
    const { name, address, root, mounts, command, env } = service;
    // A name of an interface has 15 characters at most.
    const link = `v-${address.slice(prefix.length)}`;
    for (const args of [
      `netns add ${name}`,
      `link add ${link} type veth peer name eth0 netns ${name}`,
      `link set ${link} master br0 up`,
      `-n ${name} addr add ${address}/24 dev eth0`,
      `-n ${name} link set eth0 up`,
      `-n ${name} link set lo up`,
    ]) {
      execFileSync('ip', args.split(' '));
    }
    writeFileSync(`${root}.hosts`, hosts);
    const script = [
      'set -e; mount --make-rprivate /; mkdir -p "$R"; mount --bind "$R" "$R"',
      // A container has files of its own where it writes or mounts; programs and libraries are those of this machine.
      'for each in /*; do case $each in /etc|/run|/var|/tmp) continue;; esac',
      'if [ -L $each ]; then cp -P $each "$R"; elif [ -d $each ]; then mkdir -p "$R$each"; mount --rbind $each "$R$each"; fi; done',
      'cp -a /etc "$R"; cp "$R.hosts" "$R/etc/hosts"; mkdir -p "$R/run/postgresql" "$R/var/log/nginx" "$R/var/lib/nginx" "$R/tmp"; chmod 1777 "$R/tmp" "$R/run/postgresql"',
      'ln -s /run "$R/var/run"',
      ...Object.entries({ ...mounts, [place]: repository, [nodeInside]: process.execPath }).map(
        ([to, from]) => {
          const target = `"$R${to}"`;
          const made = statSync(from).isDirectory()
            ? `mkdir -p ${target}`
            : `mkdir -p "$(dirname ${target})"; touch ${target}`;
          return `${made}; mount --rbind '${from}' ${target}`;
        },
      ),
      ...(service.temporary ?? []).map((folder) => `mount -t tmpfs tmpfs "$R${folder}"`),
      ...(service.isReadOnly === true ? ['mount -o remount,bind,ro "$R"'] : []),
      'exec chroot "$R" "$@"',
    ].join('\n');
    const program = [...asUser(service), ...command.map(inside)];
    const started = ['unshare', '--mount', 'sh', '-c', script, 'sh', ...program];
    this.#child = spawn('nsenter', [`--net=/run/netns/${name}`, ...started], {
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', R: root, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    }
    this.#ended = once(this.#child, 'close');
  }

  requireRunning(): void {
    assert.equal(this.#child.exitCode, null, `${this.service.name} ended`);
  }

  /** What Linux says of the process: user, capabilities, and more. */
  status(): string {
    this.requireRunning();
    return readFileSync(`/proc/${this.#child.pid}/status`, 'utf8');
  }

  /** Whether a command in the container succeeds. */
  succeeds(command: readonly string[]): boolean {
    this.requireRunning();
    const target = ['--mount', '--net', '--target', String(this.#child.pid)];
    return spawnSync('nsenter', [...target, 'chroot', this.service.root, ...command]).status === 0;
  }

  /** @returns the exit code */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    await this.#ended;
    return this.#child.exitCode;
  }
}

/** As a container begins: its user, its capabilities, and no way to more. */
function asUser({ user, privileges = [] }: Service): readonly string[] {
  if (user === undefined && privileges.length === 0) return [];
  const identity =
    user === undefined ? [] : [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  return ['setpriv', ...identity, ...privileges];
}

/** A folder that every user may read and write. */
export function openFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o777);
  return path;
}
