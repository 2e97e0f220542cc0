/** nginx as the floor: one worker, keep-alive to the upstream, no buffering of answers, no log. */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeScratch, removeScratch, startProcess, stopProcess, subjectCore } from './child.ts';
import { freePort, untilListening } from './ports.ts';
import { perDialect } from './protocol.ts';
import type { RunningSubject, Subject } from './subject.ts';

const startLimitMs = 5000;
const policyFile = '/usr/sbin/policy-rc.d';

/** The subject, or why there is none. Installs Debian's package where it may. */
export function findNginx(): Subject | { readonly missing: string } {
  let binary = locate();
  if (binary === undefined) {
    const refusal = install();
    if (refusal !== undefined) return { missing: refusal };
    binary = locate();
    if (binary === undefined) return { missing: 'the package was installed without a binary' };
  }
  const program = binary;
  return {
    name: 'nginx',
    version: spawnSync(program, ['-v'], { encoding: 'utf8' }).stderr.replace(/.*\//s, '').trim(),
    key: 'bench',
    models: perDialect(() => 'm'),
    translates: false,
    warmUp: 'short',
    start: (mockPort) => startNginx(program, mockPort),
  };
}

function locate(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin'];
  return folders.map((folder) => join(folder, 'nginx')).find((path) => existsSync(path));
}

/** Why it could not be installed; undefined when it was. */
function install(): string | undefined {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) {
    return 'no nginx on the PATH, and only root on Debian can install it here';
  }
  process.stderr.write('installing nginx from the packages of Debian\n');
  // Debian starts a service as it installs it; this file is its own way to forbid that.
  const forbids = !existsSync(policyFile);
  if (forbids) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const apt = (...args: string[]): string | undefined => {
      const run = spawnSync('apt-get', args, { encoding: 'utf8', env: environment });
      return run.status === 0 ? undefined : (run.stderr.trim().split('\n').at(-1) ?? 'failed');
    };
    const wanted = ['install', '-y', '--no-install-recommends', 'nginx'];
    if (apt(...wanted) === undefined) return undefined;
    const refusal = apt('update') ?? apt(...wanted);
    return refusal === undefined ? undefined : `apt-get could not install nginx: ${refusal}`;
  } finally {
    if (forbids) rmSync(policyFile, { force: true });
  }
}

async function startNginx(program: string, mockPort: number): Promise<RunningSubject> {
  const folder = makeScratch('nginx');
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, configuration(folder, port, mockPort));
  const child = startProcess([program, '-p', folder, '-e', 'stderr', '-c', file], {
    core: subjectCore,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const stop = async (): Promise<void> => {
    await stopProcess(child);
    removeScratch(folder);
  };
  try {
    await untilListening(child, port, startLimitMs);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop, ...(child.pid === undefined ? {} : { pid: child.pid }) };
}

function configuration(folder: string, port: number, mockPort: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${folder}/${name};`)
    .join('\n');
  return `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 16384; }
http {
  access_log off;
${temporary}
  client_max_body_size 64m;
  client_body_buffer_size 16m;
  keepalive_requests 100000000;
  upstream mock {
    server 127.0.0.1:${mockPort};
    keepalive 1024;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;
}
