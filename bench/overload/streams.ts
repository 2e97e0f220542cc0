/** G2: thousands of open streams, and the next one above the cap. */
import { chatBody, chatCall, percentile, type Outcome } from './client.ts';
import { floodKey, openStage, sleep, type Figure } from './stage.ts';

export interface StreamsWanted {
  readonly count: number;
  /** Events a second of each. */
  readonly rate: number;
}

export async function manyStreams(
  seconds: number,
  say: (line: string) => void,
  { count, rate }: StreamsWanted,
): Promise<Figure[]> {
  const stage = await openStage({ streams: count });
  try {
    const warm = chatCall(floodKey, chatBody('unary', { stream: false }));
    for (let i = 0; i < 50; i++) await stage.callers.send(warm);
    const before = stage.memory().nowMb;
    const request = chatCall(floodKey, chatBody(`hold-${rate}`, { stream: true }));
    const streams: Promise<Outcome>[] = [];
    while (streams.length < count) {
      for (let i = 0; i < 25 && streams.length < count; i++) {
        streams.push(stage.callers.send(request));
      }
      await sleep(25);
    }
    for (let i = 0; i < 600 && Number((await stage.status())['live_calls']) < count; i++) {
      await sleep(100);
    }
    // While all are open: who comes now is refused at once.
    const above = await Promise.all(Array.from({ length: 20 }, () => stage.callers.send(request)));
    const open = Number((await stage.status())['live_calls']);
    const [cpu, at] = [stage.cpuSeconds(), performance.now()];
    await sleep(seconds * 1000);
    const share = (stage.cpuSeconds() - cpu) / ((performance.now() - at) / 1000);
    const status = await stage.status();
    const { nowMb } = stage.memory();
    say(`  ${JSON.stringify(status)}`);
    await stage.endStreams();
    const ended = await Promise.all(streams);
    const whole = ended.filter((outcome) => outcome.status === 200 && outcome.whole).length;
    await sleep(1500);
    const { calls: rows } = await stage.usage();
    const { peakMb } = stage.memory();
    const refused = above.filter(({ status }) => status === 503);
    // Of refused calls ten a second have a row.
    const recorded = count + 50 + Math.min(10, refused.length);
    return [
      {
        what: `open at once, each ${rate} events a second`,
        value: `${open}`,
        bound: String(count),
        kept: open === count,
      },
      {
        what: `ended properly, after ${seconds} s with all of them`,
        value: `${whole} whole of ${count}`,
        bound: 'all',
        kept: whole === count,
      },
      {
        what: 'highest resident memory (at the start)',
        value: `${peakMb.toFixed(0)} MB (${before.toFixed(0)}); ${(((nowMb - before) * 1024) / count).toFixed(0)} KB a stream`,
        bound: `≤ ${count > 1000 ? 1024 : 400} MB`,
        kept: peakMb <= (count > 1000 ? 1024 : 400),
      },
      { what: 'CPU, of one core', value: `${(100 * share).toFixed(0)} %` },
      { what: 'usual delay of the event loop', value: `${String(status['loop_delay_ms'])} ms` },
      {
        what: 'calls above the cap',
        value: `${refused.length} × 503 of ${above.length}, p99 ${percentile(
          above.map(({ ms }) => ms),
          0.99,
        ).toFixed(0)} ms`,
        bound: 'all refused',
        kept: refused.length === above.length,
      },
      {
        what: 'rows in the ledger',
        value: `${rows} of ${recorded}`,
        bound: 'all',
        kept: rows >= count + 50,
      },
    ];
  } finally {
    await stage.stop();
  }
}
