/**
 * Where an agent runs: an empty home, a small project, an environment of a few variables, and no network
 * but loopback. Under Linux it gets a network namespace of its own, so that nothing but the gateway can
 * be reached whatever it tries; elsewhere every request that honours the customary proxy variables is
 * refused. Each address that it tried to reach is recorded.
 */
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { temporaryFolder } from '../support/folders.ts';

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly env?: { readonly [name: string]: string };
  /** What it reads from its standard input; nothing without. */
  readonly input?: string;
}

export interface Talk {
  /** @throws Error with what the program said when it ends instead of answering */
  ask(line: string): Promise<string>;
  /** Ends it. */
  close(): Promise<void>;
}

export interface Box {
  readonly home: string;
  readonly project: string;
  /** `host:port` of everything that was tried beyond loopback through the proxy variables. */
  readonly tried: readonly string[];
  /** Method and path of what the gateway was asked; known in a namespace only. */
  readonly asked: readonly string[];
  /** Runs a program in the project to its end. */
  run(command: readonly string[], running?: Running): Promise<Ran>;
  /** Starts a program that answers each line with one. */
  talk(command: readonly string[], env: Running['env']): Talk;
  write(path: string, content: string | Buffer): Promise<void>;
  /** The project's files, by name. */
  files(): Promise<{ readonly [name: string]: string }>;
  close(): Promise<void>;
}

const isLinux = process.platform === 'linux';
const alone = ['unshare', '--map-root-user', '--net'] as const;

/** Whether programs can be run without any network here. */
export const hasNamespaces =
  isLinux && spawnSync(alone[0], [...alone.slice(1), 'ip', 'link', 'set', 'lo', 'up']).status === 0;

/** No healthy agent takes that long for two or three answers from loopback, even on a busy machine. */
const patienceMs = 240_000;

/** A box from which the gateway at `url` can be reached. */
export async function openBox(url: string): Promise<Box> {
  const root = temporaryFolder('agent');
  const home = join(root, 'home');
  const project = join(root, 'project');
  const temp = join(root, 'tmp');
  for (const folder of [home, project, temp]) await mkdir(folder);
  const tried: string[] = [];
  const asked: string[] = [];
  const proxy = await listen(refusing(tried), { port: 0, host: '127.0.0.1' });
  const proxyPort = portOf(proxy);
  const ports = [Number(new URL(url).port), proxyPort];
  const doors = await Promise.all(
    ports.map((port) => listen(leading(port, asked), { path: join(root, `${port}.sock`) })),
  );
  const base = {
    ...environment(home, temp, proxyPort),
    // Agents that run in Node, and its sources are large, are compiled once.
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? temp,
    PATH: [dirname(process.execPath), process.env['PATH'] ?? ''].join(':'),
  };
  const inside = [
    ...alone,
    process.execPath,
    join(import.meta.dirname, 'inside.ts'),
    root,
    ports.join(','),
  ];
  const start = (command: readonly string[], env: object): Program =>
    new Program(hasNamespaces ? [...inside, ...command] : command, {
      cwd: project,
      env: { ...base, ...env },
    });
  return {
    home,
    project,
    tried,
    asked,
    run: (command, { env = {}, input } = {}) => {
      const program = start(command, env);
      program.child.stdin.end(input ?? '');
      return program.within(program.ended);
    },
    talk: (command, env = {}) => talkWith(start(command, env)),
    write: async (path, content) => {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
    },
    files: () => filesIn(project),
    close: async () => {
      for (const server of [proxy, ...doors]) server.close();
    },
  };
}

async function filesIn(folder: string): Promise<{ readonly [name: string]: string }> {
  const entries = await readdir(folder, { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const texts = files.map(async ({ name }) => [name, await readFile(join(folder, name), 'utf8')]);
  return Object.fromEntries(await Promise.all(texts));
}

function environment(home: string, temp: string, proxyPort: number): Record<string, string> {
  const proxy = `http://127.0.0.1:${proxyPort}`;
  const own = '127.0.0.1,localhost';
  return {
    HOME: home,
    USERPROFILE: home,
    TMPDIR: temp,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    ALL_PROXY: proxy,
    NO_PROXY: own,
    http_proxy: proxy,
    https_proxy: proxy,
    all_proxy: proxy,
    no_proxy: own,
  };
}

function listen(server: Server, where: { port: number; host: string } | { path: string }) {
  return new Promise<Server>((resolve, reject) => {
    server.on('error', reject);
    server.listen(where, () => resolve(server));
  });
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return address.port;
}

/** A proxy that refuses everything and keeps where it should have led. */
function refusing(tried: string[]): Server {
  return createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (bytes: Buffer) => {
      const [, target = ''] = bytes.toString('latin1').split(' ', 2);
      tried.push(URL.canParse(target) && target.includes('//') ? new URL(target).host : target);
      socket.end('HTTP/1.1 403 No network\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    });
  });
}

const requestLine = /^([A-Z]+ \/\S*) HTTP\/1\.1\r\n/;

/** Leads its connections to a port of this machine, and keeps what is asked there. */
function leading(port: number, asked: string[]): Server {
  return createServer({ allowHalfOpen: true }, (inner) => {
    const outer: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    inner.on('data', (bytes: Buffer) => {
      const line = requestLine.exec(bytes.toString('latin1', 0, 200))?.[1];
      if (line !== undefined) asked.push(line);
    });
    inner.on('error', () => outer.destroy());
    outer.on('error', () => inner.resetAndDestroy());
    inner.on('close', () => outer.destroy());
    outer.on('close', () => inner.destroy());
    inner.pipe(outer).pipe(inner);
  });
}

interface Start {
  readonly cwd: string;
  readonly env: { readonly [name: string]: string };
}

class Program {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ran>;
  readonly #command: readonly string[];
  #out = '';
  #err = '';

  constructor(command: readonly string[], { cwd, env }: Start) {
    this.#command = command;
    const [program = '', ...args] = command;
    // A group of its own: what an agent leaves behind ends with it.
    this.child = spawn(program, args, { cwd, env, detached: true });
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => (this.#out += text));
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#err += text));
    this.child.stdin.on('error', () => undefined);
    this.child.on('exit', () => this.stop());
    this.ended = new Promise((resolve, reject) => {
      this.child.on('error', reject);
      this.child.on('close', (code) => resolve({ code, out: this.#out, err: this.#err }));
    });
  }

  stop(): void {
    try {
      if (this.child.pid !== undefined) process.kill(-this.child.pid, 'SIGKILL');
    } catch {
      // The group is gone already.
    }
  }

  /** @throws Error when it is not done in time */
  async within<T>(done: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.stop();
      const said = `${this.#out.slice(-2000)}\n${this.#err.slice(-2000)}`;
      late.reject(new Error(`${this.#command.join(' ')} did not end\n${said}`));
    }, patienceMs);
    return Promise.race([done, late.promise]).finally(() => clearTimeout(timer));
  }
}

function talkWith(program: Program): Talk {
  const lines = createInterface({ input: program.child.stdout });
  return {
    ask: async (line) => {
      const answered = once(lines, 'line');
      const instead = program.ended.then(({ code, out, err }): never => {
        throw new Error(`it ended with ${code}\n${out}\n${err}`);
      });
      program.child.stdin.write(`${line}\n`);
      const [answer]: unknown[] = await program.within(Promise.race([answered, instead]));
      return String(answer);
    },
    close: async () => {
      program.child.stdin.end();
      await program.within(program.ended);
    },
  };
}
