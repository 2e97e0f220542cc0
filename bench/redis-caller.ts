/**
 * A child that asks a Redis server at a constant rate with the gateway's own client, and says what that
 * costs: `node redis-caller.ts URL`. The figure is what one round trip costs a Node process here.
 */
import { Redis } from 'ioredis';
import { isRoundTripOrder, type RoundTrips } from './redis-round-trip.ts';

/** As long as those of a draw with all kinds of limits. */
const values = Array.from({ length: 16 }, (_, i) => `key:limited:value-${i}`);
const text = 'return {1, 2, 3, 4, 5, 6}';

/** Sends as many as are due each millisecond; `ask` absent: only the clock goes. */
async function pace(
  perSecond: number,
  lengthMs: number,
  ask?: () => Promise<unknown>,
): Promise<RoundTrips> {
  const begun = performance.now();
  const before = process.cpuUsage();
  const answers: Promise<unknown>[] = [];
  let sent = 0;
  for (;;) {
    const passed = performance.now() - begun;
    if (passed >= lengthMs) break;
    for (const due = Math.floor((passed * perSecond) / 1000); sent < due; sent += 1) {
      if (ask !== undefined) answers.push(ask());
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(answers);
  const { user, system } = process.cpuUsage(before);
  return { count: sent, cpuUs: user + system };
}

const client = new Redis(process.argv[2] ?? '');
const hash = String(await client.script('LOAD', text));
const ask = (): Promise<unknown> => client.evalsha(hash, 1, 'key', ...values);

process.on('message', (order) => {
  if (!isRoundTripOrder(order)) return;
  const { perSecond, warmMs, measureMs } = order;
  const carryOut = async (): Promise<RoundTrips> => {
    await pace(perSecond, warmMs, ask);
    const idle = await pace(perSecond, measureMs);
    const asked = await pace(perSecond, measureMs, ask);
    return { count: asked.count, cpuUs: asked.cpuUs - idle.cpuUs };
  };
  carryOut().then(
    (trips) => process.send?.(trips),
    () => process.exit(1),
  );
});
