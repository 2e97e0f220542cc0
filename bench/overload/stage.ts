/** A gateway with limits, its upstream, and what the system and the admin plane say of it. */
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { loadCore, makeScratch, startHelper, subjectCore } from '../child.ts';
import { adminToken, gatewayKey, startGateway } from '../gateway.ts';
import { cpuUs, processTree } from '../process-cpu.ts';
import { isPort } from '../protocol.ts';
import { Callers } from './client.ts';

/** The second key, of the client that behaves. */
export const goodKey = 'bench-good-0123456789abcdefghijkl';
export const floodKey = gatewayKey;

export interface Stage {
  readonly port: number;
  readonly callers: Callers;
  status(): Promise<JsonObject>;
  /** Rows of the ledger since its start, and their tokens. */
  usage(): Promise<{ readonly calls: number; readonly tokens: number }>;
  /** How late its event loop was, from five seconds after its start on. */
  loop(): { readonly p99Ms: number; readonly maxMs: number };
  /** MB: now, and the highest so far. */
  memory(): { readonly nowMb: number; readonly peakMb: number };
  /** CPU time of the gateway so far, in seconds. */
  cpuSeconds(): number;
  /** CPU time of the callers and the upstream so far, in seconds. */
  loadSeconds(): number;
  /** By the upstream. */
  counted(): Promise<Counted>;
  /** Ends the streams that are held. */
  endStreams(): Promise<unknown>;
  alive(): boolean;
  stop(): Promise<void>;
}

/** What an upstream has counted since its start. */
export interface Counted {
  readonly flooded: number;
  readonly calls: number;
  readonly tokens: number;
}

export interface Upstream {
  readonly port: number;
  readonly pid: number;
  counted(): Promise<Counted>;
  /** Ends the streams that are held. */
  end(): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startUpstream(): Promise<Upstream> {
  const helper = startHelper(join(import.meta.dirname, 'upstream.ts'), { core: loadCore });
  const told = await helper.next();
  if (!isPort(told)) throw new Error('the upstream did not start');
  return {
    port: told.port,
    pid: helper.pid,
    counted: async () => {
      const sums = await helper.ask({});
      const of = (name: string): number => (isObject(sums) ? Number(sums[name]) : 0);
      return { flooded: of('flooded'), calls: of('calls'), tokens: of('tokens') };
    },
    end: () => helper.ask({ end: true }),
    stop: () => helper.stop(),
  };
}

export async function openStage(limits: JsonObject, more: JsonObject = {}): Promise<Stage> {
  const upstream = await startUpstream();
  const loopFile = join(makeScratch('loop'), 'loop.json');
  const probe = pathToFileURL(join(import.meta.dirname, 'loop-probe.ts'));
  probe.searchParams.set('to', loopFile);
  const digest = `sha256:${createHash('sha256').update(goodKey).digest('hex')}`;
  const config = { limits, keys: { good: { digest, models: ['*'] } }, ...more };
  const gateway = await startGateway({
    mockPort: upstream.port,
    nodeOptions: ['--import', probe.href],
    core: subjectCore,
    // JSON is YAML.
    config: Object.entries(config)
      .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
      .join(''),
  });
  const { pid = 0, adminPort = 0 } = gateway;
  const admin = async (path: string): Promise<JsonObject> => {
    const headers = { authorization: `Bearer ${adminToken}` };
    const answer = await fetch(`http://127.0.0.1:${adminPort}${path}`, { headers });
    return tryParseObject(await answer.text()) ?? {};
  };
  const field = (name: string): number => {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) / 1024;
  };
  const callers = new Callers(gateway.port);
  return {
    port: gateway.port,
    callers,
    status: () => admin('/api/status'),
    usage: async () => {
      const { rows } = await admin('/api/usage?by=model');
      const list = Array.isArray(rows) ? rows.filter(isObject) : [];
      const sum = (...names: string[]): number =>
        list.reduce((all, row) => names.reduce((some, name) => some + Number(row[name]), all), 0);
      return { calls: sum('calls'), tokens: sum('input_tokens', 'output_tokens') };
    },
    loop: () => {
      const told = tryParseObject(readFileSync(loopFile, 'utf8')) ?? {};
      return { p99Ms: Number(told['p99Ms']), maxMs: Number(told['maxMs']) };
    },
    memory: () => ({ nowMb: field('VmRSS'), peakMb: field('VmHWM') }),
    cpuSeconds: () => cpuUs(processTree(pid)) / 1e6,
    loadSeconds: () => cpuUs([process.pid, upstream.pid]) / 1e6,
    counted: () => upstream.counted(),
    endStreams: () => upstream.end(),
    alive: () => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    },
    stop: async () => {
      callers.close();
      await gateway.stop();
      await upstream.stop();
    },
  };
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** What a run has to say: figures, and what was asked of them. */
export interface Figure {
  readonly what: string;
  readonly value: string;
  /** Absent: no bound. */
  readonly bound?: string;
  readonly kept?: boolean;
}
