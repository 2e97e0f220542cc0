/**
 * Rates and slots in Redis or Valkey: one script a reservation, times are the server's. What Redis
 * forgets is lost: rates begin anew, and running calls hold no slots any more.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { IdTable } from '../../core/id-table.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import { StoreError } from '../store-error.ts';
import {
  type ReserveRequest,
  type ReserveResult,
  type RateCounters,
  ServerTime,
  type Used,
  leaseMs,
  renewEveryMs,
} from './counters.ts';
import {
  type Answer,
  type RedisClient,
  Script,
  isRefusal,
  unavailable,
  within,
} from './redis-client.ts';
import { type Settlement, Settlements } from './settlements.ts';
import { type Reading, grant, refusal } from './verdict.ts';

export interface RedisCountersOptions {
  readonly client: RedisClient;
  /** Keeps installations apart; the hash tag of all keys. */
  readonly tenant: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The time that a reservation waits for its answer; default 50 ms. */
  readonly patienceMs?: number;
  /** Lua that puts the server's time into `now`; another one only in tests. */
  readonly time?: string;
}

/** A slower answer is as good as none (F89). */
export const slowMs = 50;
const lostAfter = 3;
/** The time that a settlement waits for the next reservation, to be sent with it. */
const settleWithinMs = 5;
const firstConnectionMs = 2000;
const settleAtOnce = 200;
/** The time after which a silent gateway is not counted any more. */
const instanceMs = 10_000;

export class RedisCounters implements RateCounters {
  readonly #prefix: string;
  readonly #options: RedisCountersOptions;
  readonly #time: ServerTime;
  readonly #live = new IdTable<ReserveRequest>();
  readonly #settlements: Settlements;
  readonly #scripts: { readonly [name in keyof CounterScripts]: Script };
  readonly #timer: NodeJS.Timeout;
  /** Reserves in a row that were not answered in time. */
  #missed = 0;
  #failedLooks = 0;
  #closed = false;

  constructor(options: RedisCountersOptions) {
    this.#options = options;
    this.#prefix = `gw:{${options.tenant}}:`;
    this.#time = new ServerTime(options.clock);
    const texts = counterScripts(options.time ?? serverTime);
    const script = (name: keyof CounterScripts): Script => new Script(options.client, texts[name]);
    this.#scripts = {
      reserve: script('reserve'),
      settle: script('settle'),
      releaseSlots: script('releaseSlots'),
      renew: script('renew'),
    };
    this.#settlements = new Settlements({
      send: (calls) => this.#sendSettle(calls),
      log: options.log,
      atOnce: 64,
      together: settleAtOnce,
      waitMs: settleWithinMs,
    });
    this.#timer = setInterval(() => void this.renew(), renewEveryMs);
    this.#timer.unref();
  }

  wall(): number {
    return this.#time.wall();
  }

  /** Calls that hold something here. */
  get live(): Iterable<ReserveRequest> {
    return this.#live.entries().map(([, request]) => request);
  }

  /** Whether several reservations or looks in a row were not answered, or there is no connection. */
  get lost(): boolean {
    const isSilent = this.#missed >= lostAfter || this.#failedLooks >= lostAfter;
    return isSilent || this.#options.client.status !== 'ready';
  }

  healthy(): boolean {
    return !this.lost;
  }

  /** Waits for the first connection, not without end. */
  async connected(): Promise<void> {
    const deadline = performance.now() + firstConnectionMs;
    while (this.#options.client.status !== 'ready' && performance.now() < deadline) {
      await pause(slowMs / 5);
    }
  }

  /** @throws StoreError `unavailable` within 50 ms where there is no answer */
  async reserve(wanted: ReserveRequest, peek = false): Promise<ReserveResult> {
    const patience = this.#options.patienceMs ?? slowMs;
    try {
      // With settlements, so that it finds what has become free.
      const asking = this.#settlements.sendWith(
        (ended) => this.#run('reserve', reserveArguments(wanted, peek, ended)),
        (answer) => unsettledOf(wanted, answer),
      );
      const result = resultOf(wanted, await within(patience, asking));
      this.#missed = 0;
      if (result.granted && !peek) this.#live.set(wanted.callId, wanted);
      return result;
    } catch (error) {
      // A counter that cannot be read is not the loss of the server, which other calls would feel.
      if (!isRefusal(error)) this.#missed += 1;
      // It may have been taken, or be taken later: both are undone.
      if (!peek) this.#settlements.add(wanted.callId, { tokens: 0, nanodollars: 0 });
      throw unavailable(error);
    }
  }

  settle(callId: string, used: Used): void {
    if (this.#live.delete(callId) !== undefined) this.#settlements.add(callId, used);
  }

  /** If it does not arrive, the slots come back with the settlement. */
  releaseSlots(callId: string): void {
    const request = this.#live.get(callId);
    if (request === undefined || request.concurrent.length === 0) return;
    this.#live.set(callId, { ...request, concurrent: [] });
    this.#run('releaseSlots', [callId]).catch(() => undefined);
  }

  async settled(): Promise<void> {
    await this.#settlements.sent();
  }

  /**
   * Whether the server answers now, and accepts writes: one without memory, a replica, or one that
   * cannot save answers every ping. Ends `lost`. Never throws.
   */
  async look(): Promise<boolean> {
    try {
      const { client } = this.#options;
      await within(slowMs, client.set(`${this.#prefix}look`, '1', 'PX', 2 * instanceMs));
      this.#missed = 0;
      this.#failedLooks = 0;
      return true;
    } catch {
      this.#failedLooks += 1;
      return false;
    }
  }

  /** Registers this gateway as alive, and returns the number of live gateways. @throws StoreError */
  async instances(id: string): Promise<number> {
    const { client } = this.#options;
    const key = `${this.#prefix}instances`;
    const now = Math.floor(this.#time.wall());
    const replies = client
      .multi()
      .zadd(key, now, id)
      .zremrangebyscore(key, '-inf', now - instanceMs)
      .zcard(key)
      .pexpire(key, 2 * instanceMs)
      .exec();
    const results = await within(slowMs, replies);
    return Number(results?.[2]?.[1] ?? 1);
  }

  /** Puts off the end of the leases of all running calls. Never throws. */
  async renew(): Promise<void> {
    const live = this.#live.entries().map(([callId]) => callId);
    const calls = [...live, ...this.#settlements.waiting];
    try {
      for (let i = 0; i === 0 || i < calls.length; i += settleAtOnce) {
        await this.#run('renew', [String(leaseMs), ...calls.slice(i, i + settleAtOnce)]);
      }
    } catch (error) {
      this.#options.log.warn('leases_not_renewed', { calls: calls.length, reason: String(error) });
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#settlements.close();
    this.#closed = true;
  }

  async #sendSettle(calls: readonly Settlement[]): Promise<void> {
    try {
      await this.#run('settle', settleArguments(calls));
    } catch (error) {
      throw isRefusal(error) ? new StoreError('refused', String(error), error) : error;
    }
  }

  /** @throws StoreError, or an error of the client */
  async #run(script: keyof CounterScripts, values: readonly (string | number)[]): Promise<Answer> {
    if (this.#closed) throw new StoreError('closed', 'The counters are closed.');
    const prefix = this.#prefix;
    const answer = await this.#scripts[script].run(`${prefix}k`, [prefix, ...values]);
    if (typeof answer[1] === 'number') this.#time.heard(answer[1]);
    return answer;
  }
}

function reserveArguments(
  { callId, concurrent, requests, tokens }: ReserveRequest,
  peek: boolean,
  ended: readonly Settlement[],
): readonly (string | number)[] {
  const values: (string | number)[] = [callId, leaseMs, peek ? 1 : 0, concurrent.length];
  for (const { counter, most } of concurrent) values.push(counter, most);
  values.push(requests.length);
  for (const { counter, perMinute } of requests) values.push(counter, perMinute);
  values.push(tokens.length);
  for (const { counter, perMinute, amount } of tokens) values.push(counter, perMinute, amount);
  values.push(...settleArguments(ended));
  return values;
}

function settleArguments(ended: readonly Settlement[]): readonly (string | number)[] {
  return ended.flatMap(({ callId, used }) => [callId, Math.max(0, used.tokens)]);
}

/**
 * @param answer what became of it, the time, the readings
 * @throws StoreError for a reservation that was undone before it arrived
 */
function resultOf(wanted: ReserveRequest, answer: Answer): ReserveResult {
  const now = Number(answer[1]);
  if (answer[0] === 'done') throw new StoreError('unavailable', 'The reservation came too late.');
  const reading = readingOf(wanted, answer);
  const refused = answer[0] === 'refused' ? refusal(wanted, reading, now) : undefined;
  return refused ?? grant(wanted, reading, { wall: now, taken: answer[0] === 'known' });
}

/** The calls that could not be settled with this reservation. */
function unsettledOf({ concurrent, requests, tokens }: ReserveRequest, answer: Answer): string[] {
  const readings = answer[0] === 'done' ? 0 : concurrent.length + requests.length + tokens.length;
  return answer.slice(2 + readings).map(String);
}

/** @param answer what became of it, the time, the readings */
function readingOf(wanted: ReserveRequest, answer: Answer): Reading {
  let at = 2;
  const next = (): number => Number(answer[at++] ?? 0);
  return {
    concurrent: wanted.concurrent.map(next),
    requests: wanted.requests.map(next),
    tokens: wanted.tokens.map(next),
    budgets: [],
  };
}

// The scripts of the counters in Redis or Valkey: one a reservation, which takes settlements along. Lua's numbers are
// doubles: amounts stay below 2^53 and are written with all their digits.
//
// All keys share the hash tag `{tenant}`, so that they lie together in a cluster: `r:`, `t:` hashes of `m`
// (missing), `a` (at), `p` (per minute); `c:` sorted sets of calls by the end of their lease; `k:` what a call holds.

/** Lua for the server's time in whole ms. */
const serverTime = `local t = redis.call('TIME')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

const common = (time: string): string => `
${time}
local prefix = ARGV[1]
local function text(n) return string.format('%.0f', n) end

local function missing(key)
  local h = redis.call('HMGET', key, 'm', 'a', 'p')
  if not h[1] then return 0 end
  return math.max(0, tonumber(h[1]) - math.max(0, now - tonumber(h[2])) * tonumber(h[3]))
end

local function keep(key, units, rate)
  redis.call('HSET', key, 'm', text(units), 'a', text(now), 'p', text(rate))
  redis.call('PEXPIRE', key, text(math.ceil(units / rate) + 1000))
end

local function holding(kept) return kept and string.sub(kept, 1, 1) == '{' end

local function place(name, id, lease)
  redis.call('ZADD', prefix .. 'c:' .. name, text(now + lease), id)
  redis.call('PEXPIRE', prefix .. 'c:' .. name, text(lease * 2))
end
`;

/**
 * A call is remembered for a minute, so that a reservation that comes late takes nothing any more. A counter that cannot
 * be read (a value of another type) leaves the others settled.
 */
const settling = `
local function refund(x, tokens)
  local bucket, rate = prefix .. 't:' .. x[1], tonumber(x[2])
  local was = missing(bucket)
  local units = math.max(0, was + (tokens - tonumber(x[3])) * 60000)
  units = math.min(units, math.max(was, 2 * rate * 60000))
  if units ~= was then keep(bucket, units, rate) end
end

local function settle(id, tokens)
  local key = prefix .. 'k:' .. id
  local kept = redis.call('GET', key)
  redis.call('SET', key, 'done', 'PX', 60000)
  if not holding(kept) then return end
  local record = cjson.decode(kept)
  for _, name in ipairs(record.c) do pcall(redis.call, 'ZREM', prefix .. 'c:' .. name, id) end
  for _, x in ipairs(record.t) do pcall(refund, x, tokens) end
end
`;

/**
 * ARGV: prefix, call, lease, peek ('1' = takes nothing), then for each kind its count and its fields: c (counter,
 * most), r (counter, per minute), t (counter, per minute, amount). Then calls that have ended, as for a settlement.
 * Answer: what became of it, the time, the readings from before, kind by kind, and the ended calls that could not be settled.
 */
const reserveBody = `
local id, lease, peek = ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local at = 5
local function list(fields)
  local rows = {}
  local count = tonumber(ARGV[at])
  at = at + 1
  for i = 1, count do
    local row = {}
    for j = 1, fields do row[j] = ARGV[at]; at = at + 1 end
    rows[i] = row
  end
  return rows
end
local c, r, t = list(2), list(2), list(3)
local unsettled = {}
for i = at, #ARGV, 2 do
  if not pcall(settle, ARGV[i], tonumber(ARGV[i + 1])) then unsettled[#unsettled + 1] = ARGV[i] end
end
local function with(answer)
  for _, call in ipairs(unsettled) do answer[#answer + 1] = call end
  return answer
end
local kept = redis.call('GET', prefix .. 'k:' .. id)
if kept and not holding(kept) then return with({'done', now}) end

local answer, fits = {'', now}, true
local function tell(n) answer[#answer + 1] = text(n) end
for _, x in ipairs(c) do
  local key = prefix .. 'c:' .. x[1]
  redis.call('ZREMRANGEBYSCORE', key, '-inf', text(now))
  local taken = redis.call('ZCARD', key)
  if taken >= tonumber(x[2]) then fits = false end
  tell(taken)
end
for _, x in ipairs(r) do
  x.m = missing(prefix .. 'r:' .. x[1])
  if x.m + 60000 > tonumber(x[2]) * 60000 then fits = false end
  tell(x.m)
end
for _, x in ipairs(t) do
  x.m = missing(prefix .. 't:' .. x[1])
  if x.m + tonumber(x[3]) * 60000 > tonumber(x[2]) * 60000 then fits = false end
  tell(x.m)
end
if kept then
  answer[1] = 'known'
elseif not fits then
  answer[1] = 'refused'
else
  answer[1] = 'granted'
  if peek then return with(answer) end
  local record = {c = {}, t = {}}
  for i, x in ipairs(c) do
    place(x[1], id, lease)
    record.c[i] = x[1]
  end
  for _, x in ipairs(r) do keep(prefix .. 'r:' .. x[1], x.m + 60000, tonumber(x[2])) end
  for i, x in ipairs(t) do
    keep(prefix .. 't:' .. x[1], x.m + tonumber(x[3]) * 60000, tonumber(x[2]))
    record.t[i] = {x[1], x[2], x[3]}
  end
  redis.call('SET', prefix .. 'k:' .. id, cjson.encode(record), 'PX', lease * 20)
end
return with(answer)`;

/** ARGV: prefix, then of each call its id and its used tokens. */
const settleBody = `
for i = 2, #ARGV, 2 do settle(ARGV[i], tonumber(ARGV[i + 1])) end
return {'settled', now}`;

/** ARGV: prefix, a call that runs on without its slots. */
const releaseSlotsBody = `
local key = prefix .. 'k:' .. ARGV[2]
local kept = redis.call('GET', key)
if not holding(kept) then return {'over', now} end
local record = cjson.decode(kept)
for _, name in ipairs(record.c) do redis.call('ZREM', prefix .. 'c:' .. name, ARGV[2]) end
record.c = {}
redis.call('SET', key, cjson.encode(record), 'KEEPTTL')
return {'released', now}`;

/** ARGV: prefix, lease, calls … One that cannot be read does not end the leases of the others. */
const renewBody = `
local lease = tonumber(ARGV[2])
local function renew(id)
  local key = prefix .. 'k:' .. id
  local kept = redis.call('GET', key)
  if not holding(kept) then return end
  redis.call('PEXPIRE', key, lease * 20)
  for _, name in ipairs(cjson.decode(kept).c) do place(name, id, lease) end
end
for i = 3, #ARGV do pcall(renew, ARGV[i]) end
return {'renewed', now}`;

interface CounterScripts {
  readonly reserve: string;
  readonly settle: string;
  readonly releaseSlots: string;
  readonly renew: string;
}

/** @param time Lua that puts the time in ms into `now` */
function counterScripts(time: string): CounterScripts {
  const begin = common(time);
  return {
    reserve: begin + settling + reserveBody,
    settle: begin + settling + settleBody,
    releaseSlots: begin + releaseSlotsBody,
    renew: begin + renewBody,
  };
}
