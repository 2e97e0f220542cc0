/** The gateway as it is started for real: keys, ledger on disk, the log as it is by default. */
import { existsSync, readFileSync, writeFileSync, openSync, closeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { makeScratch, removeScratch, startProcess, stopProcess, subjectCore } from './child.ts';
import { tryParseObject } from '../src/json/parse.ts';
import { nodeEnvironment, programArguments } from '../test/support/program.ts';
import { cloudModels } from './cloud-answers.ts';
import type { RunningSubject, Subject } from './subject.ts';

const root = join(import.meta.dirname, '..');
const entry = join(root, 'src', 'main.ts');
const launcher = join(root, 'bin', 'model-gateway');
export const gatewayKey = 'bench-key-0123456789abcdefghijkl';
export const adminToken = 'bench-admin-0123456789abcdefghij';
const startLimitMs = 20_000;
/** A book with many keys and rows is read first. */
const fullStartLimitMs = 90_000;

/** More than the default allows: one of the questions is what 5,000 of them take. */
const manyStreams = 'limits: { streams: 6000 }\n';

/** The subject, or why there is none. */
export function findGateway(): Subject | { readonly missing: string } {
  if (!existsSync(entry)) return { missing: 'src/main.ts is not there' };
  const version = tryParseObject(readFileSync(join(root, 'package.json'), 'utf8'))?.version;
  return {
    name: 'gateway',
    version: typeof version === 'string' ? version : '',
    key: gatewayKey,
    models: {
      'openai-chat': 'mock/m',
      'anthropic-messages': 'mock-messages/m',
      'openai-responses': 'mock-responses/m',
      gemini: `mock-gemini/${cloudModels.gemini}`,
      'bedrock-converse': `mock-bedrock/${cloudModels['bedrock-converse']}`,
      'bedrock-invoke': `mock-bedrock/${cloudModels['bedrock-invoke']}`,
    },
    translates: true,
    warmUp: 'long',
    start: (mockPort) => startGateway({ mockPort, core: subjectCore, config: manyStreams }),
  };
}

export interface GatewayStart {
  readonly mockPort: number;
  readonly core: number | string;
  /** Added to its config file. */
  readonly config?: string;
  /** Absent = an empty one. */
  readonly dataDir?: string;
  /** Of Node, before the program: src/ as it is. Absent: what the launcher starts, as a rule the joined program. */
  readonly nodeOptions?: readonly string[];
}

/**
 * Starts the gateway on free ports, with an empty data directory unless one is given.
 * @throws Error with the end of what it wrote to stderr when it does not come up.
 */
export async function startGateway({
  mockPort,
  core,
  config: more = '',
  dataDir,
  nodeOptions,
}: GatewayStart): Promise<RunningSubject> {
  const folder = makeScratch('gateway');
  const config = join(folder, 'gateway.yaml');
  const log = join(folder, 'stderr.log');
  writeFileSync(config, configuration(mockPort) + more);
  const errors = openSync(log, 'w');
  const args = ['start', ...options(dataDir ?? join(folder, 'data'), config)];
  const child = startProcess(
    nodeOptions === undefined
      ? [launcher, ...args]
      : [process.execPath, ...programArguments(args, nodeOptions)],
    {
      core,
      stdio: ['ignore', 'pipe', errors],
      // Nothing of the caller's environment: a vendor's key in it would add providers and probes.
      env: {
        ...nodeEnvironment,
        PATH: process.env.PATH ?? '',
        HOME: folder,
        MODEL_GATEWAY_KEY: gatewayKey,
        MODEL_GATEWAY_ADMIN_TOKEN: adminToken,
      },
    },
  );
  closeSync(errors);
  const stop = async (): Promise<void> => {
    await stopProcess(child);
    removeScratch(folder);
  };
  const { promise, resolve } = Promise.withResolvers<readonly number[] | undefined>();
  const ports: number[] = [];
  const timer = setTimeout(
    resolve,
    dataDir === undefined ? startLimitMs : fullStartLimitMs,
    undefined,
  );
  child.on('exit', () => resolve(undefined));
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const port = /^(?:listening|admin) http:\/\/[^ ]*:(\d+)/.exec(line)?.[1];
      if (port !== undefined && ports.push(Number(port)) === 2) resolve(ports);
    });
  }
  const [port, adminPort] = (await promise) ?? [];
  clearTimeout(timer);
  if (port === undefined) {
    const tail = readFileSync(log, 'utf8').slice(-2000);
    await stop();
    throw new Error(`the gateway did not start:\n${tail}`);
  }
  return {
    port,
    stop,
    ...(adminPort === undefined ? {} : { adminPort }),
    ...(child.pid === undefined ? {} : { pid: child.pid }),
  };
}

function options(dataDir: string, config: string): string[] {
  const flags = {
    listen: '127.0.0.1:0',
    'admin-listen': '127.0.0.1:0',
    'data-dir': dataDir,
    config,
  };
  return Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
}

function configuration(mockPort: number): string {
  return `providers:
  mock:
    dialect: openai-chat
    base_url: http://127.0.0.1:${mockPort}/v1
    api_key: bench
  mock-messages:
    dialect: anthropic-messages
    base_url: http://127.0.0.1:${mockPort}
    api_key: bench
  mock-responses:
    dialect: openai-responses
    base_url: http://127.0.0.1:${mockPort}/v1
    api_key: bench
  mock-gemini:
    like: gemini
    base_url: http://127.0.0.1:${mockPort}/v1beta
    api_key: bench
  mock-bedrock:
    like: bedrock
    region: eu-central-1
    endpoint: http://127.0.0.1:${mockPort}
    access_key_id: AKIABENCH0123456789
    secret_access_key: bench
`;
}
