/**
 * The scripts of the counters in Redis or Valkey: one a draw, one a settlement. Lua's numbers are
 * doubles: amounts stay below 2^53 and are written with all their digits.
 *
 * All keys share the hash tag `{tenant}`, so that they lie together in a cluster. Rates and places:
 * `r:`, `t:` hashes of `m` (missing), `a` (at), `p` (per minute); `c:` sorted sets of calls by the end of
 * their lease. Money belongs to an epoch: `b:` hashes of `s` (settled), `o` (open); `k:` what a call holds;
 * `leases` calls by when their gateway is taken for dead. A call that spent something stays there as `d` and
 * its record until the ledger has it; what nobody tells the ledger is booked as spent (lost-calls.ts), since
 * money that is held is never given back by time alone. A new epoch begins with empty keys (redis-counters.ts).
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

local function holding(kept) return kept and string.sub(kept, 1, 1) == '{' end
`;

/**
 * ARGV: prefix, epoch, call, lease, grace, force ('1' = without asking), whose call it is, then for each kind its count and
 * its fields: c (counter, most), r (counter, per minute), t (counter, per minute, amount),
 * b (counter|window, limit, amount, ms to keep).
 * Answer: what became of it, the time, and the readings from before, kind by kind.
 */
const drawBody = `
local id, lease, grace, force = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local at = 8
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
    redis.call('SET', money .. 'k:' .. id, cjson.encode(record), 'PX', 864000000)
  end
elseif not fits and not force then
  answer[1] = 'refused'
else
  answer[1] = 'granted'
  local record = {c = {}, t = {}, b = {}, n = ARGV[7]}
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
  redis.call('SET', money .. 'k:' .. id, cjson.encode(record), 'PX', 864000000)
  redis.call('ZADD', leases, text(now + lease + grace), id)
  redis.call('PEXPIRE', leases, 864000000)
end
return answer`;

/**
 * ARGV: prefix, epoch, grace, then of each call its id, used tokens, used nanodollars. A call is remembered
 * for a minute, so that a draw that comes late takes nothing any more; one that spent something until the
 * ledger has it.
 */
const settleBody = `
local grace = tonumber(ARGV[3])
local function settle(id, tokens, spent)
  local key = money .. 'k:' .. id
  local kept = redis.call('GET', key)
  if kept and not holding(kept) then return end
  redis.call('SET', key, 'done', 'PX', 60000)
  if not kept then return end
  local record = cjson.decode(kept)
  for _, x in ipairs(record.t) do
    local bucket, rate = prefix .. 't:' .. x[1], tonumber(x[2])
    local was = missing(bucket)
    local units = math.max(0, was + (tokens - tonumber(x[3])) * 60000)
    units = math.min(units, math.max(was, 2 * rate * 60000))
    if units ~= was then keep(bucket, units, rate) end
  end
  release(id, record, spent)
  if spent ~= '0' and #record.b > 0 then
    for _, x in ipairs(record.b) do x[2] = spent end
    record.c, record.t = {}, {}
    redis.call('SET', key, 'd' .. cjson.encode(record), 'PX', 864000000)
    redis.call('ZADD', leases, text(now + grace), id)
  end
end
for i = 4, #ARGV, 3 do settle(ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]) end
return {'settled', now}`;

/** ARGV: prefix, epoch, a call that runs on without its places. */
const vacateBody = `
local key = money .. 'k:' .. ARGV[3]
local kept = redis.call('GET', key)
if not holding(kept) then return {'over', now} end
local record = cjson.decode(kept)
for _, name in ipairs(record.c) do redis.call('ZREM', prefix .. 'c:' .. name, ARGV[3]) end
record.c = {}
redis.call('SET', key, cjson.encode(record), 'PX', 864000000)
return {'vacated', now}`;

/**
 * ARGV: prefix, epoch, then of each call that ended and that the ledger has its id and its nanodollars ('' =
 * nobody knows better than what is booked). Where others booked it with another amount, its own counts.
 */
const writtenBody = `
for i = 3, #ARGV, 2 do
  local key, spent = money .. 'k:' .. ARGV[i], tonumber(ARGV[i + 1])
  local kept = redis.call('GET', key)
  local record = kept and string.match(kept, '^[de]({.*)')
  if record then
    for _, b in ipairs(cjson.decode(record).b) do
      local name = money .. 'b:' .. b[1]
      if spent and spent ~= tonumber(b[2]) and redis.call('EXISTS', name) == 1 then
        redis.call('HINCRBY', name, 's', text(spent - tonumber(b[2])))
      end
    end
    redis.call('SET', key, 'done', 'PX', 60000)
    redis.call('ZREM', leases, ARGV[i])
  end
end
return {'written', now}`;

/**
 * ARGV: prefix, epoch, call, nanodollars that the ledger has of it. What it and its further draws (call+,
 * call+2, …) held is spent as the ledger says; what was settled already stays so. What was spent for it is
 * remembered for as long as its own row may wait on a disk.
 */
const bookedBody = `
local id, n = ARGV[3], 1
local name, spent = id, ARGV[4]
while n < 100 do
  local key = money .. 'k:' .. name
  local kept = redis.call('GET', key)
  if holding(kept) then
    local record = cjson.decode(kept)
    release(name, record, spent)
    for _, x in ipairs(record.b) do x[2] = spent end
    record.c, record.t = {}, {}
    kept = 'd' .. cjson.encode(record)
  end
  if kept and n == 1 and string.sub(kept, 1, 2) == 'd{' then
    redis.call('SET', key, 'e' .. string.sub(kept, 2), 'PX', 604800000)
  elseif kept and string.sub(kept, 1, 2) ~= 'e{' then
    redis.call('SET', key, 'done', 'PX', 60000)
  end
  redis.call('ZREM', leases, name)
  if not kept and n > 1 then break end
  name, spent, n = id .. '+' .. (n > 1 and text(n) or ''), '0', n + 1
end
return {'booked', now}`;

/**
 * ARGV: prefix, epoch, most. Answer: calls whose lease is over, and behind each its records, joined: its own
 * and those of its further draws.
 */
const lostBody = `
local answer, seen = {'lost', now}, {}
for _, name in ipairs(redis.call('ZRANGE', leases, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, tonumber(ARGV[3]))) do
  local id = string.match(name, '^[^+]*')
  local own = redis.call('ZSCORE', leases, id)
  if not seen[id] and (not own or tonumber(own) <= now) then
    seen[id] = true
    local records, next, n = {}, id, 1
    while n < 100 do
      local kept = redis.call('GET', money .. 'k:' .. next)
      if kept and string.match(kept, '^d?{') then records[#records + 1] = string.match(kept, '{.*') end
      if not kept and n > 1 then break end
      next, n = id .. '+' .. (n > 1 and text(n) or ''), n + 1
    end
    answer[#answer + 1] = id
    answer[#answer + 1] = '[' .. table.concat(records, ',') .. ']'
  end
end
return answer`;

/** ARGV: prefix, epoch, lease, grace, calls … */
const renewBody = `
local lease, grace = tonumber(ARGV[3]), tonumber(ARGV[4])
for i = 5, #ARGV do
  local kept = redis.call('GET', money .. 'k:' .. ARGV[i])
  if holding(kept) then
    local record = cjson.decode(kept)
    for _, name in ipairs(record.c) do
      redis.call('ZADD', prefix .. 'c:' .. name, text(now + lease), ARGV[i])
      redis.call('PEXPIRE', prefix .. 'c:' .. name, text(lease * 2))
    end
    redis.call('PEXPIRE', money .. 'k:' .. ARGV[i], 864000000)
    redis.call('ZADD', leases, text(now + lease + grace), ARGV[i])
  end
end
return {'renewed', now}`;

/** ARGV: prefix, epoch, `counter|window` … */
const balanceBody = `
local answer = {'balance', now}
for i = 3, #ARGV do
  local h = redis.call('HMGET', money .. 'b:' .. ARGV[i], 's', 'o')
  answer[#answer + 1] = h[1] or '0'
  answer[#answer + 1] = h[2] or '0'
end
return answer`;

/** ARGV: prefix, epoch, `counter|window`, what was read as settled, what it is by the ledger. */
const repairBody = `
local key = money .. 'b:' .. ARGV[3]
if (redis.call('HGET', key, 's') or '0') ~= ARGV[4] then return {'changed', now} end
local left = redis.call('PTTL', key)
redis.call('HSET', key, 's', ARGV[5])
if left < 0 then redis.call('PEXPIRE', key, 86400000) end
return {'repaired', now}`;

/**
 * Makes room for an epoch. ARGV: prefix, epoch, what is there ('' = none). Answer: 1, or 0 where something else is.
 * From now on `loading` names who fills: one that stood still since before writes nothing any more. `before` names
 * the epoch that ended last until another one is filled, whoever ended it.
 */
export const beginFillScript = `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[3] then return 0 end
if ARGV[3] ~= '' then redis.call('RENAME', KEYS[1], ARGV[1] .. 'before') end
redis.call('SET', ARGV[1] .. 'loading', ARGV[2])
return 1`;

/**
 * Fills an epoch that nobody counts in yet. ARGV: prefix, epoch, then `counter|window`, settled, ms to keep, …
 * Nobody asks for the keys of the epoch before any more.
 */
export const loadScript = `
if redis.call('GET', ARGV[1] .. 'loading') ~= ARGV[2] then return {'overtaken'} end
local money, before = ARGV[1] .. ARGV[2] .. ':b:', redis.call('GET', ARGV[1] .. 'before')
for i = 3, #ARGV, 3 do
  redis.call('HSET', money .. ARGV[i], 's', ARGV[i + 1])
  redis.call('PEXPIRE', money .. ARGV[i], ARGV[i + 2])
  if before then redis.call('PEXPIRE', ARGV[1] .. before .. ':b:' .. ARGV[i], 60000) end
end
return {'loaded'}`;

/** ARGV: prefix, the epoch that is filled. Answer: 1, or 0 where another one is being filled. */
export const endFillScript = `
if redis.call('GET', ARGV[1] .. 'loading') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('DEL', ARGV[1] .. 'loading', ARGV[1] .. 'before')
return 1`;

/**
 * ARGV: prefix, an epoch that is filled no further, then its keys … Nothing is written into it from now on, and it
 * never begins; one that has begun counts, and stays.
 */
export const dropFillScript = `
if redis.call('GET', KEYS[1]) == ARGV[2] then return {'counts'} end
if redis.call('GET', ARGV[1] .. 'loading') == ARGV[2] then redis.call('DEL', ARGV[1] .. 'loading') end
for i = 3, #ARGV do redis.call('UNLINK', ARGV[1] .. ARGV[2] .. ':' .. ARGV[i]) end
return {'dropped'}`;

/** KEYS: the epoch. ARGV: prefix, which one is to end; another one goes on. */
export const clearScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
redis.call('RENAME', KEYS[1], ARGV[1] .. 'before')
return 1`;

export interface CounterScripts {
  readonly draw: string;
  readonly settle: string;
  readonly vacate: string;
  readonly written: string;
  readonly booked: string;
  readonly lost: string;
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
    vacate: begin + vacateBody,
    written: begin + writtenBody,
    booked: begin + bookedBody,
    lost: begin + lostBody,
    renew: begin + renewBody,
    balance: begin + balanceBody,
    repair: begin + repairBody,
  };
}
