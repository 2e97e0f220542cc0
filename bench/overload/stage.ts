/** A gateway with limits, its upstream, and what the system and the admin plane say of it. */
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { isObject, tryParseObject } from '../../src/core/json.ts';
import type { JsonObject } from '../../src/core/conversation.ts';
import { loadCore, startHelper, subjectCore } from '../child.ts';
import { adminToken, gatewayKey, startGateway } from '../gateway.ts';
import { cpuUs, processTree } from '../process-cpu.ts';
import { isPort } from '../protocol.ts';
import { Callers } from './client.ts';

/** The second key: of whoever behaves. */
export const goodKey = 'bench-good-0123456789abcdefghijkl';
export const floodKey = gatewayKey;

export interface Stage {
  readonly port: number;
  readonly callers: Callers;
  status(): Promise<JsonObject>;
  /** Rows of the ledger since its start. */
  calls(): Promise<number>;
  /** MB: now, and the highest so far. */
  memory(): { readonly nowMb: number; readonly peakMb: number };
  /** CPU time of the gateway so far, in seconds. */
  cpuSeconds(): number;
  /** Bytes that the upstream could write into endless streams. */
  flooded(): Promise<number>;
  /** Ends the streams that are held. */
  endStreams(): Promise<unknown>;
  alive(): boolean;
  stop(): Promise<void>;
}

export async function openStage(limits: JsonObject, more: JsonObject = {}): Promise<Stage> {
  const upstream = startHelper(join(import.meta.dirname, 'upstream.ts'), { core: loadCore });
  const told = await upstream.next();
  if (!isPort(told)) throw new Error('the upstream did not start');
  const digest = `sha256:${createHash('sha256').update(goodKey).digest('hex')}`;
  const config = { limits, keys: { good: { digest, models: ['*'] } }, ...more };
  const gateway = await startGateway({
    mockPort: told.port,
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
    calls: async () => {
      const { rows } = await admin('/api/usage?by=model');
      const list = Array.isArray(rows) ? rows.filter(isObject) : [];
      return list.reduce((sum, row) => sum + Number(row['calls']), 0);
    },
    memory: () => ({ nowMb: field('VmRSS'), peakMb: field('VmHWM') }),
    cpuSeconds: () => cpuUs(processTree(pid)) / 1e6,
    flooded: async () => {
      const answer = await upstream.ask({});
      return isObject(answer) ? Number(answer['flooded']) : 0;
    },
    endStreams: () => upstream.ask({ end: true }),
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
