/**
 * The scripts of the counters in Redis or Valkey: one a draw, one a settlement. Lua's numbers are
 * doubles: amounts stay below 2^53 and are written with all their digits.
 *
 * All keys share the hash tag `{tenant}`, so that they lie together in a cluster: `r:`, `t:` hashes of `m`
 * (missing), `a` (at), `p` (per minute); `c:` sorted sets of calls by the end of their lease; `k:` what a call holds.
 */

/** Lua for the server's time in whole ms. */
export const serverTime = `local t = redis.call('TIME')
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
 * ARGV: prefix, call, lease, peek ('1' = takes nothing), then for each kind its count and its fields: c (counter,
 * most), r (counter, per minute), t (counter, per minute, amount).
 * Answer: what became of it, the time, and the readings from before, kind by kind.
 */
const drawBody = `
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
local kept = redis.call('GET', prefix .. 'k:' .. id)
if kept and not holding(kept) then return {'done', now} end

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
  if peek then return answer end
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
return answer`;

/**
 * ARGV: prefix, then of each call its id and its used tokens. A call is remembered for a minute, so that a draw
 * that comes late takes nothing any more.
 */
const settleBody = `
local function settle(id, tokens)
  local key = prefix .. 'k:' .. id
  local kept = redis.call('GET', key)
  redis.call('SET', key, 'done', 'PX', 60000)
  if not holding(kept) then return end
  local record = cjson.decode(kept)
  for _, name in ipairs(record.c) do redis.call('ZREM', prefix .. 'c:' .. name, id) end
  for _, x in ipairs(record.t) do
    local bucket, rate = prefix .. 't:' .. x[1], tonumber(x[2])
    local was = missing(bucket)
    local units = math.max(0, was + (tokens - tonumber(x[3])) * 60000)
    units = math.min(units, math.max(was, 2 * rate * 60000))
    if units ~= was then keep(bucket, units, rate) end
  end
end
for i = 2, #ARGV, 2 do settle(ARGV[i], tonumber(ARGV[i + 1])) end
return {'settled', now}`;

/** ARGV: prefix, a call that runs on without its places. */
const vacateBody = `
local key = prefix .. 'k:' .. ARGV[2]
local kept = redis.call('GET', key)
if not holding(kept) then return {'over', now} end
local record = cjson.decode(kept)
for _, name in ipairs(record.c) do redis.call('ZREM', prefix .. 'c:' .. name, ARGV[2]) end
record.c = {}
redis.call('SET', key, cjson.encode(record), 'KEEPTTL')
return {'vacated', now}`;

/** ARGV: prefix, lease, calls … */
const renewBody = `
local lease = tonumber(ARGV[2])
for i = 3, #ARGV do
  local key = prefix .. 'k:' .. ARGV[i]
  local kept = redis.call('GET', key)
  if holding(kept) then
    for _, name in ipairs(cjson.decode(kept).c) do place(name, ARGV[i], lease) end
    redis.call('PEXPIRE', key, lease * 20)
  end
end
return {'renewed', now}`;

export interface CounterScripts {
  readonly draw: string;
  readonly settle: string;
  readonly vacate: string;
  readonly renew: string;
}

/** @param time Lua that puts the time in ms into `now` */
export function counterScripts(time: string): CounterScripts {
  const begin = common(time);
  return {
    draw: begin + drawBody,
    settle: begin + settleBody,
    vacate: begin + vacateBody,
    renew: begin + renewBody,
  };
}
