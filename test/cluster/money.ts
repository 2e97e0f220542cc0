/**
 * Three gateways on one PostgreSQL, $1.00 on a key, on a team and on a tag, and 200 clients that spend them while
 * instances and servers fail. What was spent is counted by the upstream, call by call.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { JsonObject } from '../../src/json/value.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { SilentProxy } from '../support/silent-proxy.ts';
import { chatDocument } from '../upstream/chat.ts';
import { ScriptedUpstream, type Answer, type Received } from '../upstream/scripted.ts';
import { Instance, type InstanceOptions } from './instance.ts';
import { dollar, nanodollarsOfToken, stormPrices } from './storm.ts';

export const maxTokens = 240;
const clientCount = 200;
/** More than the texts of a stream may be taken for. */
const minOfStream = 20;
const whole = { budget: 1, per: 'ever' } as const;
const config = { teams: { crew: whole, both: whole }, tags: { project: whole, also: whole } };

/** Those who share one budget of $1.00. */
export interface Group {
  readonly name: string;
  readonly keys: readonly string[];
  /** Budgets that count exactly its calls, each with the rows of the ledger that count for it. */
  readonly budgets: readonly { readonly counter: string; readonly rows: string }[];
}

/** One of the gateways: it has a disk and a way to the database of its own, and one process after the other. */
export interface Seat {
  readonly proxy: SilentProxy;
  readonly options: InstanceOptions;
  instance: Instance;
}

export class Money {
  readonly seats: readonly Seat[];
  readonly groups: readonly Group[];
  readonly upstream: ScriptedUpstream;
  /** Tokens that the upstream counted: by call, and by group. */
  readonly counted = new Map<string, number>();
  readonly tokens = new Map<string, number>();
  /** Tokens that were asked for by calls whose instance died before it answered, by call. */
  readonly unanswered = new Map<string, number>();
  /** What was wrong at some moment. */
  readonly complaints: string[] = [];
  /** The maximum number of tokens that clients spend of each group. */
  ceiling = 0;
  /** How often the database said what was spent and leased. */
  samples = 0;
  readonly #postgres: TestPostgres;
  readonly #url: string;
  #isOver = false;
  #turn = 0;
  #running: readonly Promise<void>[] = [];

  private constructor(parts: {
    readonly postgres: TestPostgres;
    readonly url: string;
    readonly upstream: ScriptedUpstream;
    readonly seats: readonly Seat[];
    readonly groups: readonly Group[];
  }) {
    this.#postgres = parts.postgres;
    this.#url = parts.url;
    this.upstream = parts.upstream;
    this.seats = parts.seats;
    this.groups = parts.groups;
    for (const { name } of this.groups) this.tokens.set(name, 0);
    this.upstream.script('spender', (request) => this.#document(request));
    this.upstream.script('streamer', (request) => this.#stream(request));
  }

  /** @param counters `redis://…`; absent = PostgreSQL counts too. */
  static async start(postgres: TestPostgres, counters?: string): Promise<Money> {
    const url = await postgres.makeDatabase();
    const upstream = await ScriptedUpstream.start();
    const seats = await Promise.all(
      [0, 1, 2].map(async (): Promise<Seat> => {
        const proxy = await SilentProxy.start(postgres.port);
        const storage: JsonObject = {
          database: proxy.through(url),
          ...(counters === undefined ? {} : { counters }),
        };
        const base = { storage, upstream: upstream.port, prices: stormPrices, config };
        const instance = await Instance.start(base);
        return { proxy, options: { ...base, directory: instance.directory }, instance };
      }),
    );
    const [first] = seats;
    assert.ok(first !== undefined);
    // Without Redis a rate would need PostgreSQL for each call.
    const rates = counters === undefined ? {} : { rpm: 1_000_000, concurrent: 10_000 };
    const make = (input: JsonObject) => first.instance.makeKey({ ...input, ...rates });
    const [key, ...others] = await Promise.all([
      make({ ...whole, team: 'both', tags: ['also'] }),
      ...['crew', 'crew'].map((team) => make({ team })),
      ...['project', 'project'].map((tag) => make({ tags: [tag] })),
    ]);
    assert.ok(key !== undefined);
    const secrets = others.map((each) => each.key);
    const ofTeam = (name: string) => ({ counter: `team:${name}:ever`, rows: `team = '${name}'` });
    const ofTag = (name: string) => ({
      counter: `tag:${name}:ever`,
      rows: `tags LIKE '%"${name}"%'`,
    });
    const ofKey = { counter: `key:${key.id}:ever`, rows: `key_id = '${key.id}'` };
    const groups: readonly Group[] = [
      { name: 'key', keys: [key.key], budgets: [ofKey, ofTeam('both'), ofTag('also')] },
      { name: 'team', keys: secrets.slice(0, 2), budgets: [ofTeam('crew')] },
      { name: 'tag', keys: secrets.slice(2), budgets: [ofTag('project')] },
    ];
    return new Money({ postgres, url, upstream, seats, groups });
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
    for (const { instance, proxy } of this.seats) {
      await instance.kill();
      await proxy.close();
    }
    await this.upstream.close();
  }

  query(sql: string): ReturnType<TestPostgres['query']> {
    return this.#postgres.query(sql, this.#url);
  }

  /** Clients begin, and the database is watched. */
  begin(): void {
    this.#running = [
      this.#watch(),
      ...Array.from({ length: clientCount }, (_, index) => this.#client(index)),
    ];
  }

  /** Resolves when each group has spent this number of tokens. */
  spentTo(tokens: number): Promise<void> {
    return until(
      () => this.groups.every(({ name }) => (this.tokens.get(name) ?? 0) >= tokens),
      `${tokens} tokens of each group are spent`,
      240_000,
    );
  }

  async kill({ instance }: Seat): Promise<void> {
    await instance.kill();
  }

  async restart(seat: Seat): Promise<void> {
    seat.instance = await Instance.start(seat.options);
  }

  /** Clients spend the rest of all budgets, down to what one token costs. */
  async spendTheRest(): Promise<void> {
    this.ceiling = Number.POSITIVE_INFINITY;
    const budgets = this.groups.flatMap((group) => group.budgets);
    await until(
      async () => {
        const held = await this.#spent('spending');
        return budgets.every(
          ({ counter }) => (held.get(counter) ?? 0) > dollar - nanodollarsOfToken,
        );
      },
      'the last token of each budget is spent',
      300_000,
    );
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  /** Nanodollars by counter. */
  async #spent(what: 'spending' | 'spending and leases'): Promise<ReadonlyMap<string, number>> {
    const leases = `UNION ALL SELECT counter, amount FROM budget_leases`;
    const rows = await this.query(`SELECT counter, sum(n)::float8 AS n FROM
      (SELECT counter, nanodollars AS n FROM spending ${what === 'spending' ? '' : leases}) one
      GROUP BY counter`);
    return new Map(rows.map((row) => [String(row['counter']), Number(row['n'])]));
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      // While the server is away it says nothing.
      const held = await this.#spent('spending and leases').catch(() => new Map<string, number>());
      if (held.size > 0) this.samples += 1;
      for (const [counter, n] of held) {
        if (n > dollar) this.complaints.push(`${counter}: ${n} spent and leased`);
      }
      await pause(25);
    }
  }

  async #client(index: number): Promise<void> {
    const group = this.groups[index % this.groups.length];
    assert.ok(group !== undefined);
    const key = group.keys[index % group.keys.length] ?? '';
    // What was asked for last, where that was refused: in the end only little is left.
    let most = maxTokens;
    while (!this.#isOver) {
      if ((this.tokens.get(group.name) ?? 0) >= this.ceiling) {
        await pause(100);
        continue;
      }
      const status = await this.#call(`${group.name} ${index}`, { key, most });
      if (status === 200) continue;
      if (status === 429) most = most > 1 ? Math.ceil(most / 2) : maxTokens;
      // A refused call is a row of the ledger, too: clients that do not wait keep a slow machine busy with them.
      await pause(status === 429 ? 1000 : 2000);
    }
  }

  /** @returns the status; undefined where the instance died. */
  async #call(
    client: string,
    { key, most }: { readonly key: string; readonly most: number },
  ): Promise<number | undefined> {
    this.#turn += 1;
    const seat = this.seats[this.#turn % this.seats.length];
    const id = `${client} ${this.#turn}`;
    const isLeft = this.#turn % 5 === 0 && most >= minOfStream;
    const model = isLeft ? 'up/streamer' : 'up/spender';
    const messages = [{ role: 'user', content: id }];
    const body = { model, messages, user: id, max_tokens: most, stream: isLeft };
    const left = new AbortController();
    let seen = '';
    const onData = (chunk: Buffer): void => {
      seen += chunk.toString();
      if (isLeft && seen.includes('leave now')) left.abort();
    };
    try {
      const reply = await seat?.instance.chat(key, body, { signal: left.signal, onData });
      if (reply === undefined || reply.status === 200) return reply?.status;
      if (reply.status === 429) assert.match(reply.text, /insufficient_quota/);
      else assert.equal(reply.status, 503, reply.text);
      return reply.status;
    } catch (error) {
      if (error instanceof assert.AssertionError) this.complaints.push(error.message);
      if (left.signal.aborted) return 200;
      this.unanswered.set(id, most);
      return undefined;
    }
  }

  #count({ json }: Received, least = 1): number {
    const cap = Number(json['max_tokens'] ?? json['max_completion_tokens']);
    const [message] = Array.isArray(json['messages']) ? json['messages'] : [];
    const id = String(Object(message)['content']);
    const [name = ''] = id.split(' ');
    const tokens = least + Math.floor(Math.random() * (cap + 1 - least));
    if (!(cap >= 1 && cap <= maxTokens)) this.complaints.push(`${id}: ${cap} tokens asked for`);
    if (this.counted.has(id)) this.complaints.push(`${id} came twice`);
    this.counted.set(id, tokens);
    const all = (this.tokens.get(name) ?? 0) + tokens;
    this.tokens.set(name, all);
    if (all * nanodollarsOfToken > dollar) this.complaints.push(`${id}: ${all} tokens`);
    return tokens;
  }

  #document(request: Received): Answer {
    const tokens = this.#count(request);
    const usage = { prompt_tokens: 9, completion_tokens: tokens, total_tokens: 9 + tokens };
    return { body: JSON.stringify(chatDocument({ text: 'x', usage })) };
  }

  /** It says with each chunk what it has written so far, and waits until its client leaves. */
  #stream(request: Received): Answer {
    const tokens = this.#count(request, minOfStream);
    const chunk = (content: string, completion: number): string =>
      `data: ${JSON.stringify({
        id: 'c',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'streamer',
        choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }],
        usage: {
          prompt_tokens: 9,
          completion_tokens: completion,
          total_tokens: 9 + completion,
        },
      })}\n\n`;
    return {
      headers: { 'content-type': 'text/event-stream' },
      body: [chunk('x', 0), chunk('leave now', tokens)],
      ending: 'hang',
    };
  }
}
