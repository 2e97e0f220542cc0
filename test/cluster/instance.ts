/** Real gateway processes, started as by `bin/model-gateway`, on shared stores, each with a data directory of its own. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { JsonObject } from '../../src/json/value.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/postgres-store.ts';
import { send, type Reply, type Sending } from '../support/http.ts';
import { adminToken } from '../support/keys.ts';
import { inNoonZone } from '../support/noon.ts';
import { nodeEnvironment, programArguments } from '../support/program.ts';

/** Three start at once on a machine that may be busy with other tests. */
const startMs = 180_000;

export interface InstanceOptions {
  /** As in gateway.yaml. */
  readonly storage: string | JsonObject;
  /** Port of the scripted upstream that is the provider `up`. */
  readonly upstream: number;
  readonly prices?: JsonObject;
  /** Default: a start waits for no other instance, since tests check readiness themselves. */
  readonly drain?: JsonObject;
  /** Instead of a fresh one: that of an instance that ended. */
  readonly directory?: string;
  /** Sections of the config besides, or instead. */
  readonly config?: JsonObject;
  /** Address of the data plane; default: a free port of loopback. */
  readonly listen?: string;
  /** Options of Node; with them it can be asked by `ask`. */
  readonly node?: readonly string[];
  /** Variables of its environment besides. */
  readonly env?: { readonly [name: string]: string };
}

/** Of the admin API. */
export interface MadeKey {
  readonly id: string;
  readonly key: string;
}

export class Instance {
  readonly directory: string;
  readonly #child: ReturnType<typeof spawn>;
  readonly #ended: Promise<unknown[]>;
  #stopping = false;
  #printed = '';
  #log = '';

  private constructor(
    directory: string,
    configFile: string,
    { node, env, listen: address = '127.0.0.1:0' }: InstanceOptions,
  ) {
    this.directory = directory;
    const args = ['start', '--config', configFile, '--data-dir', join(directory, 'data')];
    const listen = ['--listen', address, '--admin-listen', '127.0.0.1:0'];
    this.#child = spawn(process.execPath, programArguments([...args, ...listen], node), {
      cwd: directory,
      env: {
        PATH: process.env['PATH'],
        ...nodeEnvironment,
        MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
        MODEL_GATEWAY_WORKERS: process.env['MODEL_GATEWAY_WORKERS'],
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe', ...(node === undefined ? [] : ['ipc' as const])],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#printed += text));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#log += text));
    this.#ended = once(this.#child, 'close');
    // A failed test leaves nothing behind.
    const kill = (): boolean => this.#child.kill('SIGKILL');
    process.prependOnceListener('exit', kill);
    this.#child.once('close', () => process.off('exit', kill));
  }

  static async start(options: InstanceOptions): Promise<Instance> {
    const directory = options.directory ?? temporaryFolder('instance');
    const configFile = join(directory, 'gateway.yaml');
    writeFileSync(configFile, JSON.stringify(configOf(options)), { mode: 0o600 });
    const instance = new Instance(directory, configFile, options);
    const listens = (): boolean => instance.#printed.includes('\nadmin ');
    await until(() => listens() || !instance.running, 'it listens', startMs);
    assert.ok(instance.running, instance.log);
    return instance;
  }

  get url(): string {
    return /^listening (\S+)$/m.exec(this.#printed)?.[1] ?? '';
  }

  get adminUrl(): string {
    return /^admin (\S+)$/m.exec(this.#printed)?.[1] ?? '';
  }

  /** All that it printed and logged. */
  get log(): string {
    return this.#printed + this.#log;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** What a module that was loaded with `--import` answers to a message. */
  async ask(message: string): Promise<unknown> {
    const answered = once(this.#child, 'message');
    this.#child.send(message);
    const [answer]: unknown[] = await answered;
    return answer;
  }

  signal(signal: NodeJS.Signals): void {
    if (signal === 'SIGTERM') this.#stopping = true;
    this.#child.kill(signal);
  }

  /**
   * A drain; the exit code. One that drains already gets no second SIGTERM: a signal that arrives when Node has taken its
   * handlers away, in the last moment of an exit, ends the process by that signal.
   */
  async stop(): Promise<number | null> {
    if (this.running && !this.#stopping) this.signal('SIGTERM');
    await this.#ended;
    return this.#child.exitCode;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  admin(method: string, path: string, body?: JsonObject): Promise<Reply> {
    const headers = { authorization: `Bearer ${adminToken}` };
    return send(this.adminUrl + path, body, { method, headers });
  }

  /** Its budgets without a zone get one in which no day ends while the test runs. */
  async makeKey(input: JsonObject = {}): Promise<MadeKey> {
    const whole = inNoonZone({ name: 'test', models: ['*'], ...input });
    const reply = await this.admin('POST', '/api/keys', whole);
    assert.equal(reply.status, 201, reply.text);
    return { id: String(reply.json['id']), key: String(reply.json['key']) };
  }

  chat(key: string, body: JsonObject, sending: Sending = {}): Promise<Reply> {
    const messages = [{ role: 'user', content: 'hi' }];
    const headers = { authorization: `Bearer ${key}` };
    return send(`${this.url}/v1/chat/completions`, { messages, ...body }, { ...sending, headers });
  }

  /** Status of /readyz. */
  async ready(): Promise<number> {
    return (await send(`${this.url}/readyz`, undefined, { anonymous: true })).status;
  }
}

function configOf({ storage, upstream, prices, drain, config }: InstanceOptions): JsonObject {
  const base_url = `http://127.0.0.1:${upstream}/v1`;
  return {
    storage,
    drain: drain ?? { wait: '0s' },
    // The upstream is in the process of the test, which takes its connections when it comes to it.
    timeouts: { connect: '1m' },
    providers: { up: { dialect: 'openai-chat', base_url, api_key: 'upstream-key' } },
    ...(prices === undefined ? {} : { prices }),
    ...config,
  };
}
