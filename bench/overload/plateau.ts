/**
 * G6: what is left of the capacity when three times as much is asked. Calls are translated streams of a
 * second, on a schedule that waits for no answer. Of 200 events, ten in each write of the upstream: so that the gateway has much to
 * do for a call, and its callers and the upstream, which share the other core, little. Were it as much, their
 * core would be the one that is full.
 */
import { join } from 'node:path';
import { startHelper, subjectCore } from '../child.ts';
import { isPort } from '../protocol.ts';
import { Callers, percentile, translatedCall, type Outcome } from './client.ts';
import { floodKey, openStage, sleep, type Figure, type Stage } from './stage.ts';

const request = translatedCall('anthropic-messages', floodKey, 'stream-200-20-10');

interface Window {
  readonly perSecond: number;
  readonly seconds: number;
  readonly offered: number;
  readonly good: readonly number[];
  readonly shed: readonly number[];
  /** How late their callers were, of those that were refused. */
  readonly shedLate: readonly number[];
  /** Answers that began and did not end properly. */
  readonly broken: number;
  readonly other: number;
  readonly withRetryAfter: number;
}

/** Offers calls at a rate for a time, and waits for all of them. */
async function offer(
  { callers }: Pick<Stage, 'callers'>,
  perSecond: number,
  seconds: number,
): Promise<Window> {
  const outcomes: Promise<Outcome>[] = [];
  const startedAt = performance.now();
  const total = Math.round(perSecond * seconds);
  while (outcomes.length < total) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1000) * perSecond));
    while (outcomes.length < due) {
      const dueAt = startedAt + (outcomes.length / perSecond) * 1000;
      outcomes.push(callers.send(request, dueAt));
    }
    await sleep(2);
  }
  const ended = await Promise.all(outcomes);
  const good = ended.filter(({ status, whole }) => status === 200 && whole);
  const shed = ended.filter(({ status }) => status === 529);
  return {
    perSecond,
    seconds,
    offered: total,
    good: good.map(({ ms }) => ms),
    shed: shed.map(({ ms }) => ms),
    shedLate: shed.map(({ lateMs }) => lateMs),
    broken: ended.filter(({ status, whole }) => status === 200 && !whole).length,
    other: ended.filter(({ status }) => status !== 200 && status !== 529).length,
    withRetryAfter: shed.filter(({ retryAfter }) => retryAfter).length,
  };
}

function perSecond(window: Window): number {
  return window.good.length / window.seconds;
}

/** The highest rate of which nearly all was served. */
async function findCapacity(stage: Stage, say: (line: string) => void): Promise<number> {
  let capacity = 0;
  for (let rate = 150; ; rate = Math.round(rate * 1.2)) {
    const window = await offer(stage, rate, 4);
    const got = perSecond(window);
    say(`  ${rate}/s offered: ${got.toFixed(0)}/s served, ${window.shed.length} refused`);
    capacity = Math.max(capacity, got);
    if (got < 0.95 * rate) return capacity;
  }
}

/** What refusals take where nothing else is done: so much is the measuring itself. */
async function bareRefusals(rate: number, seconds: number): Promise<Window> {
  const refuser = startHelper(join(import.meta.dirname, 'refuser.ts'), { core: subjectCore });
  const told = await refuser.next();
  if (!isPort(told)) throw new Error('the bare server did not start');
  const callers = new Callers(told.port);
  try {
    await offer({ callers }, rate, 2);
    return await offer({ callers }, rate, seconds);
  } finally {
    callers.close();
    await refuser.stop();
  }
}

export async function plateau(seconds: number, say: (line: string) => void): Promise<Figure[]> {
  const stage = await openStage({ streams: 10_000 });
  try {
    await offer(stage, 100, 2);
    const capacity = await findCapacity(stage, say);
    await sleep(1500);
    const normal = await offer(stage, 0.8 * capacity, 4);
    const [cpu, from] = [stage.cpuSeconds(), stage.loadSeconds()];
    const at = performance.now();
    const over = await offer(stage, 3 * capacity, seconds);
    const share = (used: number): string =>
      `${((100_000 * used) / (performance.now() - at)).toFixed(0)} %`;
    const shares = `${share(stage.cpuSeconds() - cpu)}, ${share(stage.loadSeconds() - from)}`;
    const status = await stage.status();
    say(`  ${JSON.stringify(status)}`);
    // Ten seconds after the flood everything is as before.
    const back = await offer(stage, 0.8 * capacity, 10);
    const after = await offer(stage, 0.8 * capacity, 4);
    const bare = await bareRefusals(2 * capacity, Math.min(10, seconds));
    const goodput = perSecond(over) / capacity;
    const [usual, loaded] = [percentile(normal.good, 0.99), percentile(over.good, 0.99)];
    const shedMs = percentile(over.shed, 0.99);
    return [
      { what: 'capacity, streams of 200 events in 1 s', value: `${capacity.toFixed(0)}/s` },
      { what: 'CPU beyond it: gateway; callers and upstream', value: shares },
      {
        what: `served of it at ${(3 * capacity).toFixed(0)}/s for ${seconds} s`,
        value: `${(100 * goodput).toFixed(0)} %`,
        bound: '≥ 90 %',
        kept: goodput >= 0.9,
      },
      {
        what: 'refusals, p50 / p99',
        value: `${percentile(over.shed, 0.5).toFixed(0)} / ${shedMs.toFixed(0)} ms`,
        bound: 'p99 ≤ 50 ms',
        kept: shedMs <= 50,
      },
      {
        what: 'of it their callers, p99; refusals of a bare node:http server at that rate, p50 / p99',
        value: `${percentile(over.shedLate, 0.99).toFixed(0)} ms; ${percentile(bare.shed, 0.5).toFixed(0)} / ${percentile(bare.shed, 0.99).toFixed(0)} ms`,
      },
      {
        what: 'refusals with retry-after',
        value: `${over.withRetryAfter} of ${over.shed.length}`,
        bound: 'all',
        kept: over.withRetryAfter === over.shed.length,
      },
      {
        what: 'served calls, p99 (normal)',
        value: `${loaded.toFixed(0)} ms (${usual.toFixed(0)})`,
        bound: '≤ 2 ×',
        kept: loaded <= 2 * usual,
      },
      {
        what: 'begun answers that broke / other endings',
        value: `${over.broken} / ${over.other}`,
        bound: '0 / 0',
        kept: over.broken + over.other === 0,
      },
      {
        what: 'refused 10 s later, at 80 % of capacity',
        value: `${after.shed.length} of ${after.offered}; ${back.shed.length} in the 10 s`,
        bound: '0',
        kept: after.shed.length === 0,
      },
    ];
  } finally {
    await stage.stop();
  }
}
