/** G14: three gateways are restarted one after the other under streams, and no client notices. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Instance } from '../cluster/instance.ts';
import { clientDialects } from '../support/dialects.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { brokenness, scriptSlow, stream } from './streams.ts';

let upstream: ScriptedUpstream;
before(async () => {
  upstream = await ScriptedUpstream.start();
});
after(() => upstream.close());

const clients = 60;
const minStreams = 300;
/** Many times longer than the balancer needs to ask all three, on a machine that is busy with all these streams. */
const drain = { wait: '5s', limit: '5m' };

/** One place behind the balancer: whatever runs there at the moment. */
interface Place {
  instance: Instance;
  key: string;
  /** The answer to the balancer's last readiness check. */
  ready: boolean;
}

async function startPlace(directory?: string): Promise<Place> {
  const instance = await Instance.start({
    storage: 'sqlite',
    upstream: upstream.port,
    drain,
    ...(directory === undefined ? {} : { directory }),
  });
  const { key } = await instance.makeKey();
  return { instance, key, ready: true };
}

/** Asks each place whether it is ready, again and again, as balancers do. */
async function watch(places: readonly Place[], isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    for (const place of places) {
      place.ready = await place.instance.ready().then(
        (status) => status === 200,
        () => false,
      );
    }
    await sleep(100);
  }
}

test(
  'G14 300 streams through a rolling restart of three: none is broken',
  { timeout: 500_000 },
  async () => {
    let turn = 0;
    scriptSlow(upstream, 'slow', () => sleep(500 + ((turn * 137) % 1500)));
    const places = [await startPlace(), await startPlace(), await startPlace()];
    const restarts = { over: false };
    let ended = 0;
    const broken: string[] = [];
    const watching = watch(places, () => restarts.over);
    const client = async (number: number): Promise<void> => {
      const dialect = clientDialects[number % clientDialects.length] ?? 'chat';
      while (!restarts.over || ended < minStreams) {
        const ready = places.filter((place) => place.ready);
        turn += 1;
        const place = ready[turn % ready.length];
        assert.ok(place !== undefined, 'none is ready');
        const { instance, key } = place;
        const reply = await stream({ instance, key, dialect, model: 'up/slow' }).catch(String);
        const problem = typeof reply === 'string' ? reply : brokenness(dialect, reply);
        if (problem !== undefined) broken.push(problem);
        ended += 1;
      }
    };
    const calling = Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
    for (const place of places) {
      const old = place.instance;
      assert.equal(await old.stop(), 0, old.log);
      Object.assign(place, await startPlace(old.directory));
      await sleep(300);
    }
    restarts.over = true;
    await calling;
    await watching;
    for (const { instance } of places) {
      assert.equal(await instance.stop(), 0);
    }
    assert.deepEqual(broken, []);
    assert.ok(ended >= minStreams, `${ended} streams`);
  },
);
