/** G3: five hundred short calls a second, for minutes. */
import { Callers, chatBody, chatCall, percentile, type Outcome } from './client.ts';
import { floodKey, openStage, sleep, startUpstream, type Figure } from './stage.ts';
import { booked } from './translated.ts';

/** One call in this many goes to an upstream of its own without a gateway, to be compared with. */
const directEach = 10;

export async function shortCalls(
  seconds: number,
  say: (line: string) => void,
  perSecond: number,
): Promise<Figure[]> {
  const stage = await openStage({});
  const beside = await startUpstream();
  const direct = new Callers(beside.port);
  const request = chatCall(floodKey, chatBody('unary', { stream: false }));
  const times: { through: number[]; direct: number[] } = { through: [], direct: [] };
  let failed = 0;
  const keep =
    (list: number[]) =>
    ({ status, whole, ms }: Outcome): void => {
      if (status === 200 && whole) list.push(ms);
      else failed += 1;
    };
  try {
    for (let i = 0; i < 500; i++) await stage.callers.send(request);
    const running = new Set<Promise<void>>();
    const follow = (call: Promise<void>): void => {
      running.add(call);
      void call.then(() => running.delete(call));
    };
    const startedAt = performance.now();
    const total = perSecond * seconds;
    let told = 0;
    for (let sent = 0; sent < total;) {
      const elapsed = (performance.now() - startedAt) / 1000;
      const due = Math.min(total, Math.floor(elapsed * perSecond));
      for (; sent < due; sent++) {
        const dueAt = startedAt + (sent / perSecond) * 1000;
        follow(stage.callers.send(request, dueAt).then(keep(times.through)));
        if (sent % directEach === 0) follow(direct.send(request, dueAt).then(keep(times.direct)));
      }
      if (elapsed > told + 60) say(`  ${(told += 60)} s: ${times.through.length} served`);
      await sleep(1);
    }
    await Promise.all(running);
    await sleep(1500);
    const added = (share: number): number =>
      percentile(times.through, share) - percentile(times.direct, share);
    const [usage, counted] = [await stage.usage(), await stage.counted()];
    const both = (share: number): string =>
      `${added(share).toFixed(2)} ms (${percentile(times.through, share).toFixed(2)}, ${percentile(times.direct, share).toFixed(2)})`;
    return [
      { what: `calls, ${perSecond} a second for ${seconds} s`, value: String(total) },
      { what: 'failures', value: String(failed), bound: '0', kept: failed === 0 },
      {
        what: 'added at p50 (with the gateway, without)',
        value: both(0.5),
        bound: '≤ 2 ms',
        kept: added(0.5) <= 2,
      },
      {
        what: 'added at p99',
        value: both(0.99),
        bound: '≤ 15 ms',
        kept: added(0.99) <= 15,
      },
      ...booked(usage, counted),
    ];
  } finally {
    direct.close();
    await stage.stop();
    await beside.stop();
  }
}
