/** Real proxies in front of the gateway, with connections to it that all clients share (S18). */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { temporaryFolder } from '../support/folders.ts';
import { findProgram, freePort } from '../support/server-process.ts';

export interface Front {
  readonly url: string;
  stop(): Promise<void>;
}

interface Kind {
  /** The file, and what is started with its name. */
  config(port: number, gatewayPort: number, folder: string): string;
  args(file: string, folder: string): readonly string[];
}

const kinds: { readonly [program: string]: Kind } = {
  nginx: {
    config: (port, gatewayPort, folder) => `
daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr crit;
events {}
http {
  access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
  uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  upstream gateway { server 127.0.0.1:${gatewayPort}; keepalive 1; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_request_buffering off; proxy_buffering off;
    }
  }
}
`,
    args: (file, folder) => ['-p', folder, '-e', 'stderr', '-c', file],
  },
  haproxy: {
    config: (port, gatewayPort) => `
global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  http-reuse always
frontend clients
  bind 127.0.0.1:${port}
  default_backend gateways
backend gateways
  server gateway 127.0.0.1:${gatewayPort}
`,
    args: (file) => ['-db', '-f', file],
  },
};

/** Undefined where the program is not installed. */
export async function startFront(name: string, gatewayUrl: string): Promise<Front | undefined> {
  const kind = kinds[name];
  const program = findProgram([name]);
  if (kind === undefined || program === undefined) return undefined;
  const folder = temporaryFolder(name);
  const file = join(folder, `${name}.conf`);
  const port = await freePort();
  writeFileSync(file, kind.config(port, Number(new URL(gatewayUrl).port), folder));
  const child = spawn(program, [...kind.args(file, folder)], { stdio: 'inherit' });
  await untilListening(child, port);
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the proxy ended with ${child.exitCode}`);
    const socket = connect(port, '127.0.0.1');
    const outcome = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (outcome) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
