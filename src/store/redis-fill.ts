/** Fills a new epoch in Redis; redis-epoch.ts says when, and with what. */
import type { Draw } from './counters.ts';
import type { RedisClient } from './redis-client.ts';
import { keepMs } from './redis-draw.ts';
import { Script, type Answer } from './redis-run.ts';
import { beginFillScript, dropFillScript, endFillScript, loadScript } from './redis-script.ts';
import { StoreError } from './store-error.ts';

/** What an epoch begins with. */
export interface EpochContents {
  /** By `counter|window`. */
  readonly settled: readonly {
    readonly name: string;
    readonly nanodollars: number;
    readonly endsAt: number | undefined;
  }[];
  /** Calls that run, with what they hold of budgets. */
  readonly open: readonly Draw[];
}

export interface EpochFillParts {
  readonly client: RedisClient;
  /** Whose value is the epoch that counts. */
  readonly key: string;
  readonly prefix: string;
  /** Ms since the epoch, of the server. */
  now(): number;
  /** Counts a draw in an epoch, without asking. */
  take(draw: Draw, epoch: string): Promise<Answer>;
}

const atOnce = 200;
/** Draws that are on their way together: one by one each would take a round trip. */
const drawsAtOnce = 50;

/**
 * Who begins to fill ends what counted before, and whatever another one was filling: that one learns it at its
 * next step. All that is written meanwhile is under the epoch's own name, which is never given twice.
 */
export class EpochFill {
  readonly #parts: EpochFillParts;

  constructor(parts: EpochFillParts) {
    this.#parts = parts;
  }

  /** @param instead what is there. @throws StoreError when it is something else by now, or an error of the client */
  async begin(epoch: string, instead: string | undefined): Promise<void> {
    const { client, key, prefix } = this.#parts;
    const begun = await client.eval(beginFillScript, 1, key, prefix, epoch, instead ?? '');
    if (begun !== 1) throw beingBuilt();
  }

  /**
   * It does not count yet.
   * @param goesOn called every now and then
   * @throws StoreError when another one is being filled, an error of the client, or what `goesOn` throws
   */
  async fill(epoch: string, contents: EpochContents, goesOn: () => Promise<void>): Promise<void> {
    await this.#settled(epoch, contents, goesOn);
    for (let i = 0; i < contents.open.length; i += drawsAtOnce) {
      const some = contents.open.slice(i, i + drawsAtOnce);
      const answers = await Promise.all(some.map((draw) => this.#parts.take(draw, epoch)));
      if (answers.some(([answer]) => answer === 'epoch')) throw beingBuilt();
      await goesOn();
    }
  }

  /**
   * Nobody is to count in an epoch that was begun and not ended: what it was filled with goes. One that counts
   * after all stays. Never throws: what could not be dropped ends with its windows.
   */
  async drop(epoch: string, contents: EpochContents): Promise<void> {
    const { client, key, prefix } = this.#parts;
    const script = new Script(client, dropFillScript);
    const names = keysOf(contents);
    try {
      for (let i = 0; i < names.length; i += atOnce) {
        const some = names.slice(i, i + atOnce);
        const [answer] = await script.run(key, [prefix, epoch, ...some]);
        if (answer !== 'dropped') return;
      }
    } catch {
      // Redis is away.
    }
  }

  async #settled(
    epoch: string,
    contents: EpochContents,
    goesOn: () => Promise<void>,
  ): Promise<void> {
    const { client, key, prefix } = this.#parts;
    const load = new Script(client, loadScript);
    const now = this.#parts.now();
    for (let i = 0; i < contents.settled.length; i += atOnce) {
      const rows = contents.settled
        .slice(i, i + atOnce)
        .flatMap(({ name, nanodollars, endsAt }) => [name, nanodollars, keepMs(endsAt, now)]);
      const [answer] = await load.run(key, [prefix, epoch, ...rows]);
      if (answer !== 'loaded') throw beingBuilt();
      await goesOn();
    }
  }

  /** It counts from now on. @throws StoreError when another one is being filled, or an error of the client */
  async end(epoch: string): Promise<void> {
    const { client, key, prefix } = this.#parts;
    if ((await client.eval(endFillScript, 1, key, prefix, epoch)) !== 1) throw beingBuilt();
  }
}

/** Behind the name of the epoch. */
function keysOf({ settled, open }: EpochContents): readonly string[] {
  const keys = new Set(['leases']);
  for (const { name } of settled) keys.add(`b:${name}`);
  for (const { callId, budgets } of open) {
    keys.add(`k:${callId}`);
    for (const { counter, window } of budgets) keys.add(`b:${counter}|${window}`);
  }
  return [...keys];
}

/** Others are faster: the next who asks finds what they made. */
export function beingBuilt(): StoreError {
  return new StoreError('unavailable', 'The counters are being built by another gateway.');
}
