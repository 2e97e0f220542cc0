/**
 * F81, F82: a gateway is killed at a random moment under load, started again on the same data, and its
 * ledger compared with what the clients heard and what the upstream counted.
 */
import { randomInt } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../src/json/value.ts';
import { Instance, type InstanceOptions } from '../cluster/instance.ts';
import { compare, readLedger, type LedgerRow, type Comparison } from './ledger.ts';
import { Callers, type Called } from './callers.ts';
import { CountingUpstream } from './counting-upstream.ts';

export interface CrashReport extends Comparison {
  readonly rounds: number;
  readonly calls: number;
  /** Calls that ran when their gateway was killed and have a row all the same. */
  readonly interrupted: number;
  /** Answers that were heard before a kill and whose rows are lost or tell of an interruption. */
  readonly lost: number;
  /** Ms between the oldest of them and its kill. */
  readonly behindMs: number;
  /** The same for calls that were running. */
  readonly forgotten: number;
}

export interface CrashOptions {
  readonly rounds: number;
  readonly say?: (line: string) => void;
}

/**
 * Rows are written 20 ms behind the answer, on a busy machine later; what is older than this must be there. What
 * the database had before a kill must be there in any case.
 */
const writtenMs = 2000;
const prices = { 'up/*': { input: 1, output: 10 }, 'up-messages/*': { input: 1, output: 10 } };

export async function crashLoop({
  rounds,
  say = () => undefined,
}: CrashOptions): Promise<CrashReport> {
  const upstream = await CountingUpstream.start({
    faulty: 0.1,
    paceMs: 5,
    longest: 60,
    random: Math.random,
  });
  const options = optionsOf(upstream.port);
  let gateway = await Instance.start(options);
  const { directory } = gateway;
  const calls = new Map<string, Called>();
  const killedAt: number[] = [];
  const written = new Map<string, LedgerRow>();
  const excused = (called: Called): boolean => {
    const ended = called.endedAt ?? Number.POSITIVE_INFINITY;
    return killedAt.some((at) => ended > at - writtenMs && ended < at + 2000);
  };
  try {
    const paid = await gateway.makeKey({ budget: 100, per: 'ever' });
    const free = await gateway.makeKey();
    for (let round = 1; round <= rounds; round++) {
      const callers = new Callers({
        url: () => gateway.url,
        keys: [paid.key, free.key],
        count: 16,
        leaving: 0.2,
        prefix: `r${round}x`,
      });
      await new Promise((resolve) => setTimeout(resolve, randomInt(300, 3500)));
      for (const row of readLedger(directory)) written.set(row.user, row);
      await gateway.kill();
      killedAt.push(performance.now());
      await callers.stop();
      for (const [name, called] of callers.calls) calls.set(name, called);
      gateway = await Instance.start({ ...options, directory });
      say(`round ${round}: ${callers.calls.size} calls`);
    }
    const spent = await spentOf(gateway, paid.id);
    await gateway.stop();
    const rows = readLedger(directory);
    const compared = { rows, calls, upstream, excused };
    return report({ rounds, spent, killedAt, written }, compared);
  } finally {
    await gateway.kill();
    await upstream.close();
  }
}

function optionsOf(port: number): InstanceOptions {
  const base = `http://127.0.0.1:${port}`;
  const provider = { base_url: `${base}/v1`, api_key: 'upstream-key', dialect: 'openai-chat' };
  const messages = { base_url: base, api_key: 'upstream-key', dialect: 'anthropic-messages' };
  const config = { providers: { up: provider, 'up-messages': messages } };
  return { storage: 'sqlite', upstream: port, prices, config };
}

/** Of the paid key's budget, in nanodollars. */
async function spentOf(gateway: Instance, id: string): Promise<number> {
  const budgets = (await gateway.admin('GET', `/api/keys/${id}`)).json['budgets'];
  const [first] = Array.isArray(budgets) ? budgets.filter(isObject) : [];
  return Math.round(Number(first?.['spent_usd']) * 1e9);
}

interface Known {
  readonly rounds: number;
  readonly spent: number;
  readonly killedAt: readonly number[];
  /** Rows that were in the database before a kill. */
  readonly written: ReadonlyMap<string, LedgerRow>;
}

function report(
  { rounds, spent, killedAt, written }: Known,
  compared: Parameters<typeof compare>[0],
): CrashReport {
  const { rows, calls, upstream } = compared;
  const comparison = compare(compared);
  const wrong = [...comparison.wrong];
  const paidKeys = new Map([...calls.values()].map(({ name, key }) => [name, key]));
  const [paid] = paidKeys.values();
  const keys = [...new Set(paidKeys.values())];
  const sums = keys.map((key) =>
    rows.reduce((sum, row) => sum + (paidKeys.get(row.user) === key ? row.cost : 0), 0),
  );
  // Which of the two keys is the paid one is known by its sum.
  if (paid !== undefined && !sums.includes(spent)) {
    wrong.push(`the budget says ${spent} are spent, the rows cost ${sums.join(' or ')}`);
  }
  const final = new Map(rows.map((row) => [row.user, row]));
  for (const [user, row] of written) {
    if (!isDeepStrictEqual(final.get(user), row))
      wrong.push(`the row of ${user} was there, and changed`);
  }
  const known = [...calls.values()].filter(({ name }) => upstream.calls.has(name));
  const lost = known.filter(({ heard, name }) => heard && final.get(name)?.outcome !== 'ok');
  const behind = lost.map(({ endedAt = 0 }) => {
    const kill = killedAt.find((at) => at >= endedAt) ?? endedAt;
    return kill - endedAt;
  });
  return {
    ...comparison,
    wrong,
    rounds,
    calls: calls.size,
    interrupted: rows.filter(({ error }) => error === 'interrupted').length,
    lost: lost.length,
    behindMs: Math.round(Math.max(0, ...behind)),
    forgotten: known.filter(({ heard, name }) => !heard && !final.has(name)).length,
  };
}
