/**
 * Services of a compose file without images: programs of this machine in place of those of the images, each with files
 * and a network of its own. Linux, as root of namespaces of its own (`unshare`): all of it goes with them.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
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
}

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
    const { name, address, root, mounts, command, env, user } = service;
    for (const args of [
      `netns add ${name}`,
      `link add v-${name} type veth peer name eth0 netns ${name}`,
      `link set v-${name} master br0 up`,
      `-n ${name} addr add ${address}/24 dev eth0`,
      `-n ${name} link set eth0 up`,
      `-n ${name} link set lo up`,
    ]) {
      execFileSync('ip', args.split(' '));
    }
    writeFileSync(`${root}.hosts`, hosts);
    const script = [
      'set -e; mount --make-rprivate /; mkdir -p "$R"',
      // A container has files of its own where it writes or mounts; programs and libraries are those of this machine.
      'for each in /*; do case $each in /etc|/run|/var|/tmp) continue;; esac',
      'if [ -L $each ]; then cp -P $each "$R"; elif [ -d $each ]; then mkdir -p "$R$each"; mount --rbind $each "$R$each"; fi; done',
      'cp -a /etc "$R"; cp "$R.hosts" "$R/etc/hosts"; mkdir -p "$R/run/postgresql" "$R/var/log/nginx" "$R/var/lib/nginx" "$R/tmp"; chmod 1777 "$R/tmp" "$R/run/postgresql"',
      'ln -s /run "$R/var/run"; mkdir -p "$R$REPOSITORY"; mount --rbind "$REPOSITORY" "$R$REPOSITORY"',
      ...Object.entries(mounts).map(([to, from]) => {
        const place = `"$R${to}"`;
        const made = statSync(from).isDirectory()
          ? `mkdir -p ${place}`
          : `mkdir -p "$(dirname ${place})"; touch ${place}`;
        return `${made}; mount --rbind '${from}' ${place}`;
      }),
      `exec chroot ${user === undefined ? '' : `--userspec=${user.uid}:${user.gid} `}"$R" "$@"`,
    ].join('\n');
    const inside = ['unshare', '--mount', 'sh', '-c', script, 'sh', ...command];
    this.#child = spawn('nsenter', [`--net=/run/netns/${name}`, ...inside], {
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', R: root, REPOSITORY: repository, ...env },
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

  /** Whether a command in the container succeeds. */
  succeeds(command: readonly string[]): boolean {
    this.requireRunning();
    const place = ['--mount', '--net', '--target', String(this.#child.pid)];
    return spawnSync('nsenter', [...place, 'chroot', this.service.root, ...command]).status === 0;
  }

  /** @returns the exit code */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    await this.#ended;
    return this.#child.exitCode;
  }
}

/** A folder that every user may read and write. */
export function openFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o777);
  return path;
}
