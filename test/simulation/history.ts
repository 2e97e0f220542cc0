/** One history from one seed: who calls when, what breaks when; and then what must be true of it. */
import { call, type Ask, type Heard } from './client.ts';
import { Dice } from './dice.ts';
import { Disk, slowestWrite } from './disk.ts';
import { Instance, type World } from './instance.ts';
import { isHedged, judge, type Account, type Death } from './judge.ts';
import { models, policies } from './scene.ts';
import { Upstream } from './upstream.ts';
import { VirtualTime } from './virtual-time.ts';

/** What became of a history; a seed gives the same each time. */
export interface Outcome {
  readonly seed: number;
  readonly complaints: readonly string[];
  /** All that was seen, as a text: two runs of one seed must not differ. */
  readonly trace: string;
  readonly calls: number;
  /** Of which two requests ran beside each other. */
  readonly hedged: number;
}

/** The ledger may be so many ms behind: it waits 20 ms, then writes what ended, then what runs. */
const ledgerMs = 20 + 3 * slowestWrite + 5;
const maxSteps = 60_000;

/** A deliberate fault, to see that the judge finds it. */
export type Sabotage =
  | 'a settlement that is lost'
  | 'a row that is lost'
  | 'a budget that is passed'
  | 'a timer that is left'
  | 'a provider that says two things';

export async function runHistory(seed: number, sabotage?: Sabotage): Promise<Outcome> {
  const time = new VirtualTime();
  const giveBack = time.install();
  const complaints: string[] = [];
  try {
    const complain = (what: string): void => void complaints.push(what);
    const history = new History(seed, time, { complain, sabotage });
    await history.run().catch((error: unknown) => {
      complaints.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    });
    return {
      seed,
      complaints,
      trace: history.trace(),
      calls: history.heard.length,
      hedged: history.hedged,
    };
  } finally {
    giveBack();
  }
}

interface Means {
  readonly complain: (what: string) => void;
  readonly sabotage: Sabotage | undefined;
}

class History {
  readonly heard: Heard[] = [];
  hedged = 0;
  readonly #time: VirtualTime;
  readonly #dice: Dice;
  readonly #upstream: Upstream;
  readonly #disk: Disk;
  readonly #world: World;
  readonly #deaths: Death[] = [];
  readonly #past: Instance[] = [];
  readonly #revoked = new Set<string>();
  readonly #keys = new Map<string, { readonly id: string; readonly text: string }>();
  readonly #complain: (what: string) => void;
  #instance: Instance | undefined;
  #ids = 0;
  #version = 0;

  constructor(seed: number, time: VirtualTime, { complain, sabotage }: Means) {
    const dice = new Dice(seed);
    this.#time = time;
    this.#dice = dice;
    this.#complain = complain;
    this.#disk = new Disk(time, dice);
    this.#upstream = new Upstream({
      time,
      dice,
      faulty: dice.pick([0, 0.15, 0.4, 0.8]),
      liar: sabotage === 'a provider that says two things',
      opened: (end) => this.#instance?.ends.add(end),
    });
    const secrets = new Dice(seed + 1);
    this.#world = {
      time,
      dice,
      upstream: this.#upstream,
      disk: this.#disk,
      newId: (prefix) => `${prefix}${String((this.#ids += 1)).padStart(24, '0')}`,
      random: (count) => Uint8Array.from({ length: count }, () => secrets.int(0, 255)),
      complain,
      sabotage,
    };
  }

  async run(): Promise<void> {
    const dice = this.#dice;
    await this.#start();
    await this.#makeKeys();
    const calls = dice.int(1, 6);
    for (let i = 0; i < calls; i++) this.#time.after(dice.int(0, 3000), () => this.#call(i));
    this.#mishaps();
    const healAt = dice.int(3000, 8000);
    this.#time.after(healAt, () => (this.#upstream.healed = true));
    // Nothing is left to do only when no timer is left: this ends by itself, or is told as a leak.
    await this.#time.run(Number.POSITIVE_INFINITY, maxSteps);
    await this.#probe();
    await this.#close();
    await this.#judge();
  }

  trace(): string {
    const calls = this.heard.map(({ ask, response, left, closed }) => [
      ask.call,
      response?.status,
      response?.body,
      left,
      closed,
    ]);
    const served = this.#upstream.served.map((each) => [each.call, each.fault, each.done]);
    return JSON.stringify([calls, served, this.#time.now()]);
  }

  async #start(): Promise<void> {
    this.#instance = await Instance.start(this.#world);
  }

  async #makeKeys(): Promise<void> {
    for (const [name, policy] of Object.entries(policies)) {
      const made = await this.#instance?.keys.create({ name, models: ['*'], policy });
      if (made !== undefined) this.#keys.set(name, { id: made.id, text: made.key.reveal() });
    }
  }

  #call(number: number, sure: Partial<Ask> = {}): void {
    const dice = this.#dice;
    const name = dice.pick(['free', 'limited', 'paid', 'paid']);
    const ask: Ask = {
      call: number,
      dialect: dice.chance(0.5) ? 'chat' : 'messages',
      model: dice.pick(models),
      stream: dice.chance(0.65),
      cap: dice.pick([3, 8, 12]),
      key: this.#keys.get(name)?.text ?? '',
      leaves: dice.chance(0.25) ? dice.int(0, dice.pick([20, 300, 3000])) : undefined,
      how: dice.pick(['reset', 'fin', 'close']),
      stops: dice.chance(0.1) ? dice.pick([700, 4000, Number.POSITIVE_INFINITY]) : undefined,
      slowness: dice.chance(0.15) ? dice.int(1, 800) : 0,
      ...sure,
    };
    const connect = (): ReturnType<Instance['connect']> => {
      if (this.#instance === undefined) throw new Error('no gateway runs');
      return this.#instance.connect();
    };
    // Nobody listens while it starts anew.
    if (this.#instance === undefined) return;
    this.heard.push(call(ask, { time: this.#time, dice, connect }));
  }

  #mishaps(): void {
    const dice = this.#dice;
    const some = (share: number, what: () => void): void => {
      if (dice.chance(share)) this.#time.after(dice.int(0, 5000), what);
    };
    some(0.3, () => this.#reload());
    some(0.15, () => this.#reload());
    some(0.3, () => this.#crash());
    some(0.08, () => this.#crash());
    some(0.12, () => void this.#stop());
    some(0.1, () => void this.#revoke());
    some(0.2, () => this.#disk.trouble(dice.int(50, 3000)));
  }

  #reload(): void {
    this.#version += 1;
    this.#instance?.reload(this.#version);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#time.after(ms, resolve);
    });
  }

  async #revoke(): Promise<void> {
    const key = this.#keys.get('limited');
    if (key === undefined) return;
    this.#revoked.add(key.text);
    await this.#instance?.keys.revoke(key.id);
  }

  #crash(): void {
    const dead = this.#instance;
    if (dead === undefined) return;
    this.#instance = undefined;
    this.#past.push(dead);
    dead.kill();
    this.#deaths.push({
      at: this.#time.now(),
      told: dead.told,
      trusted: !this.#disk.troubledWithin(ledgerMs + 1500),
      ledgerMs,
    });
    this.#time.after(this.#dice.int(1, 400), () => void this.#start());
  }

  /** SIGTERM whose drain is over: calls are ended, rows written, and the next one begins. */
  async #stop(): Promise<void> {
    const ending = this.#instance;
    if (ending === undefined || this.#disk.troubledWithin(1)) return;
    this.#instance = undefined;
    ending.sweeper.shutDown();
    // As the drain does: who was told is let go, then nobody is left, and the ledger is the last.
    await this.#pause(200);
    for (const end of ending.ends) end.destroy();
    await this.#pause(200);
    await ending.ledger.close();
    await ending.client.close();
    this.#past.push(ending);
    await this.#start();
  }

  /** Whatever broke is whole again: each route must answer, after the longest that a target is kept out. */
  async #probe(): Promise<void> {
    await this.#time.run(this.#time.now() + 11 * 60_000, maxSteps);
    const free = this.#keys.get('free')?.text ?? '';
    for (const [i, model] of models.entries()) {
      this.#call(1000 + i, {
        key: free,
        model,
        cap: 12,
        leaves: undefined,
        stops: undefined,
        slowness: 0,
      });
      await this.#time.run(Number.POSITIVE_INFINITY, maxSteps);
      const heard = this.heard.at(-1);
      if (heard?.response?.status !== 200 || !heard.response.complete) {
        const { status, body } = heard?.response ?? {};
        this.#complain(`"${model}" does not recover: ${status} ${body}`);
      }
    }
  }

  async #close(): Promise<void> {
    const last = this.#instance;
    if (last === undefined) throw new Error('no gateway runs at the end');
    const closing = last.ledger.close();
    await this.#time.run(Number.POSITIVE_INFINITY, maxSteps);
    await closing;
    if (last.sweeper.size !== 0) this.#complain(`${last.sweeper.size} calls are still running`);
    for (const target of last.busy) this.#complain(`calls are said to run at ${target}`);
    await last.client.close();
    await this.#time.run(Number.POSITIVE_INFINITY, maxSteps);
    if (this.#time.timers !== 0) this.#complain(`${this.#time.timers} timers are left`);
    for (const each of [...this.#past, last]) each.ends.clear();
  }

  async #judge(): Promise<void> {
    const last = this.#instance;
    if (last === undefined) return;
    const { rows } = this.#disk;
    const account: Account = {
      heard: this.heard,
      served: this.#upstream.served,
      rows: (await rows.calls.list({ limit: 1000 })).calls,
      deaths: this.#deaths,
      instances: [...this.#past, last],
      revoked: this.#revoked,
      spent: await last.checkedCounters.spent(),
      booked: await rows.calls.spent(Number.NEGATIVE_INFINITY),
    };
    this.hedged = account.rows.filter(isHedged).length;
    judge(account, this.#complain);
  }
}

/** What went wrong, with the command that replays it. */
export function complaintOf({
  seed,
  complaints,
}: {
  readonly seed: number;
  readonly complaints: readonly string[];
}): string {
  const what = complaints.map((complaint) => `  ${complaint}`).join('\n');
  return `npm run simulate -- --seed ${seed}\n${what}`;
}
