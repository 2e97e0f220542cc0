/**
 * The scripts of the counters in Redis or Valkey: one a draw, one a settlement. Lua's numbers are
 * doubles: amounts stay below 2^53 and are written with all their digits.
 *
 * All keys share the hash tag `{tenant}`, so that they lie together in a cluster. Rates and places:
 * `r:`, `t:` hashes of `m` (missing), `a` (at), `p` (per minute); `c:` sorted sets of calls by the end of
 * their lease. Money belongs to an epoch: `b:` hashes of `s` (settled), `o` (open); `k:` what a call holds;
 * `leases` calls by when their money is given back. A new epoch begins with empty keys (redis-counters.ts).
 */

/** Lua for the server's time in whole ms. */
export const serverTime = `local t = redis.call('TIME')
  local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

const common = (time: string): string => `
${time}
local prefix = ARGV[1]
local epoch = ARGV[2]
local function text(n) return string.format('%.0f', n) end
if redis.call('GET', prefix .. 'epoch') ~= epoch
  and redis.call('GET', prefix .. 'loading') ~= epoch then return {'epoch', now} end
local money = prefix .. epoch .. ':'
local leases = money .. 'leases'

local function missing(key)
  local h = redis.call('HMGET', key, 'm', 'a', 'p')
  if not h[1] then return 0 end
  return math.max(0, tonumber(h[1]) - math.max(0, now - tonumber(h[2])) * tonumber(h[3]))
end

local function keep(key, units, rate)
  redis.call('HSET', key, 'm', text(units), 'a', text(now), 'p', text(rate))
  redis.call('PEXPIRE', key, text(math.ceil(units / rate) + 1000))
end

local function release(id, record, spent)
  for _, name in ipairs(record.c) do redis.call('ZREM', prefix .. 'c:' .. name, id) end
  for _, b in ipairs(record.b) do
    local key = money .. 'b:' .. b[1]
    if b[2] ~= '0' then redis.call('HINCRBY', key, 'o', '-' .. b[2]) end
    if spent ~= '0' then redis.call('HINCRBY', key, 's', spent) end
    redis.call('PEXPIRE', key, b[3])
  end
  redis.call('ZREM', leases, id)
end

local function sweep(most)
  for _, id in ipairs(redis.call('ZRANGE', leases, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, most)) do
    local kept = redis.call('GET', money .. 'k:' .. id)
    if kept and kept ~= 'done' then release(id, cjson.decode(kept), '0') end
    redis.call('DEL', money .. 'k:' .. id)
    redis.call('ZREM', leases, id)
  end
end
`;

/**
 * ARGV: prefix, epoch, call, lease, grace, force ('1' = without asking), then for each kind its count and
 * its fields: c (counter, most), r (counter, per minute), t (counter, per minute, amount),
 * b (counter|window, limit, amount, ms to keep).
 * Answer: what became of it, the time, and the readings from before, kind by kind.
 */
const drawBody = `
sweep(5)
local id, lease, grace, force = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local at = 7
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
local c, r, t, b = list(2), list(2), list(3), list(4)
local kept = redis.call('GET', money .. 'k:' .. id)
if kept == 'done' then return {'done', now} end

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
for _, x in ipairs(b) do
  local h = redis.call('HMGET', money .. 'b:' .. x[1], 's', 'o')
  local s, o = tonumber(h[1] or '0'), tonumber(h[2] or '0')
  if s + o + tonumber(x[3]) > tonumber(x[2]) then fits = false end
  tell(s)
  tell(o)
end
if kept then
  answer[1] = 'known'
  if force and #c > 0 then
    local record = cjson.decode(kept)
    record.c = {}
    for i, x in ipairs(c) do
      redis.call('ZADD', prefix .. 'c:' .. x[1], text(now + lease), id)
      redis.call('PEXPIRE', prefix .. 'c:' .. x[1], text(lease * 2))
      record.c[i] = x[1]
    end
    redis.call('SET', money .. 'k:' .. id, cjson.encode(record), 'PX', 86400000)
  end
elseif not fits and not force then
  answer[1] = 'refused'
else
  answer[1] = 'granted'
  local record = {c = {}, t = {}, b = {}}
  for i, x in ipairs(c) do
    local key = prefix .. 'c:' .. x[1]
    redis.call('ZADD', key, text(now + lease), id)
    redis.call('PEXPIRE', key, text(lease * 2))
    record.c[i] = x[1]
  end
  for _, x in ipairs(r) do keep(prefix .. 'r:' .. x[1], x.m + 60000, tonumber(x[2])) end
  for i, x in ipairs(t) do
    keep(prefix .. 't:' .. x[1], x.m + tonumber(x[3]) * 60000, tonumber(x[2]))
    record.t[i] = {x[1], x[2], x[3]}
  end
  for i, x in ipairs(b) do
    local key = money .. 'b:' .. x[1]
    redis.call('HINCRBY', key, 'o', x[3])
    redis.call('PEXPIRE', key, x[4])
    record.b[i] = {x[1], x[3], x[4]}
  end
  redis.call('SET', money .. 'k:' .. id, cjson.encode(record), 'PX', 86400000)
  redis.call('ZADD', leases, text(now + lease + grace), id)
  redis.call('PEXPIRE', leases, 864000000)
end
return answer`;

/**
 * ARGV: prefix, epoch, call, used tokens, used nanodollars. The call is remembered for a minute, so that
 * a draw that comes late takes nothing any more.
 */
const settleBody = `
local id, tokens = ARGV[3], tonumber(ARGV[4])
local key = money .. 'k:' .. id
local kept = redis.call('GET', key)
if kept == 'done' then return {'unknown', now} end
redis.call('SET', key, 'done', 'PX', 60000)
if not kept then return {'unknown', now} end
local record = cjson.decode(kept)
for _, x in ipairs(record.t) do
  local bucket, rate = prefix .. 't:' .. x[1], tonumber(x[2])
  local was = missing(bucket)
  local units = math.max(0, was + (tokens - tonumber(x[3])) * 60000)
  units = math.min(units, math.max(was, 2 * rate * 60000))
  if units ~= was then keep(bucket, units, rate) end
end
release(id, record, ARGV[5])
return {'settled', now}`;

/** ARGV: prefix, epoch, lease, grace, calls … Sweeps too. */
const renewBody = `
local lease, grace = tonumber(ARGV[3]), tonumber(ARGV[4])
for i = 5, #ARGV do
  local kept = redis.call('GET', money .. 'k:' .. ARGV[i])
  if kept and kept ~= 'done' then
    local record = cjson.decode(kept)
    for _, name in ipairs(record.c) do
      redis.call('ZADD', prefix .. 'c:' .. name, text(now + lease), ARGV[i])
      redis.call('PEXPIRE', prefix .. 'c:' .. name, text(lease * 2))
    end
    redis.call('PEXPIRE', money .. 'k:' .. ARGV[i], 86400000)
    redis.call('ZADD', leases, text(now + lease + grace), ARGV[i])
  end
end
sweep(200)
return {'renewed', now}`;

/** ARGV: prefix, epoch, `counter|window`. */
const balanceBody = `
local h = redis.call('HMGET', money .. 'b:' .. ARGV[3], 's', 'o')
return {'balance', now, h[1] or '0', h[2] or '0'}`;

/** ARGV: prefix, epoch, `counter|window`, what was read as settled, what it is by the ledger. */
const repairBody = `
local key = money .. 'b:' .. ARGV[3]
if (redis.call('HGET', key, 's') or '0') ~= ARGV[4] then return {'changed', now} end
local left = redis.call('PTTL', key)
redis.call('HSET', key, 's', ARGV[5])
if left < 0 then redis.call('PEXPIRE', key, 86400000) end
return {'repaired', now}`;

/**
 * Fills an epoch that nobody counts in yet. ARGV: prefix, epoch, the epoch before ('' = unknown), then
 * `counter|window`, settled, ms to keep, … Nobody asks for the keys of the epoch before any more.
 */
export const loadScript = `
local money, old = ARGV[1] .. ARGV[2] .. ':b:', ARGV[1] .. ARGV[3] .. ':b:'
for i = 4, #ARGV, 3 do
  redis.call('HSET', money .. ARGV[i], 's', ARGV[i + 1])
  redis.call('PEXPIRE', money .. ARGV[i], ARGV[i + 2])
  if ARGV[3] ~= '' then redis.call('PEXPIRE', old .. ARGV[i], 60000) end
end
return {'loaded'}`;

export interface CounterScripts {
  readonly draw: string;
  readonly settle: string;
  readonly renew: string;
  readonly balance: string;
  readonly repair: string;
}

/** @param time Lua that puts the time in ms into `now` */
export function counterScripts(time: string): CounterScripts {
  const begin = common(time);
  return {
    draw: begin + drawBody,
    settle: begin + settleBody,
    renew: begin + renewBody,
    balance: begin + balanceBody,
    repair: begin + repairBody,
  };
}
