/** Flags of keys, teams and tags as the admin API takes them. What is wrong with a value the API says. */
import type { Json } from '../json/value.ts';
import { UsageError, type Arguments } from './arguments.ts';

type Members = { readonly [name: string]: Json };

/** Takes a value away, in `update`. */
const none = 'none';

export const policyFlags = ['rpm', 'tpm', 'concurrent', 'limits', 'budget', 'per', 'zone'] as const;

export const policyHelp = `  --rpm N             requests per minute
  --tpm N             tokens per minute, input and output
  --concurrent N      concurrent calls
  --limits LIST       more limits, each for models that match a glob:
                      rpm=10:openai/*,tpm=50000:anthropic/*
  --budget USD        dollars that may be spent per period
  --per PERIOD        day, week, month or ever
  --zone ZONE         time zone of its days, e.g. Europe/Berlin; default: UTC
`;

/** Limits and budget of the flags that were given. @throws UsageError */
export function policyMembers(given: Arguments): Members {
  return {
    ...numberOf(given, 'rpm'),
    ...numberOf(given, 'tpm'),
    ...numberOf(given, 'concurrent'),
    ...member(given, 'limits', readLimits),
    ...member(given, 'budget', (text) => text.replace(/^\$/, '')),
    ...member(given, 'per', (text) => text),
    ...named(
      'time_zone',
      member(given, 'zone', (text) => text),
    ),
  };
}

/** Of tags, besides. */
export const namedByFlags = ['keys', 'teams'] as const;

export const namedByHelp = `  --keys LIST         ids of keys that may set the tag by x-gateway-tags, in
                      addition to keys that have it; * means all
  --teams LIST        teams whose keys may set it, too
`;

/** Keys and teams that may set a tag. @throws UsageError */
export function namedByMembers(given: Arguments): Members {
  return { ...member(given, 'keys', splitList), ...member(given, 'teams', splitList) };
}

export const scopeFlags = [
  'endpoints',
  'expires',
  'team',
  'owner',
  'tags',
  'cidr',
  'cache',
] as const;
export const scopeSwitches = [
  'strict',
  'no-strict',
  'shrink',
  'no-shrink',
  'log-content',
  'no-log-content',
] as const;

export const scopeHelp = `  --endpoints LIST    chat, messages, responses, count_tokens, models;
                      default: all
  --expires WHEN      30d, 24h, 2w, or a date such as 2026-12-31; default: never
  --team NAME         team that the key belongs to
  --owner NAME        owner of the key
  --tags LIST         tags that its calls count for
  --cidr LIST         client addresses that may use it, e.g.
                      10.0.0.0/8,2001:db8::/32; default: all
  --strict            refuse requests that translation would change or drop
                      parts of
  --cache auto        set cache marks in its prompts if the client sets none
                      (docs/user/routing.md); default: as the route sets
  --log-content       store its requests and answers for the dashboard
                      (docs/user/content.md)
  --no-shrink         refuse calls that do not fit the budget, instead of
                      lowering their output limit
`;

/** What a key may be used for. @throws UsageError */
export function scopeMembers(given: Arguments): Members {
  return {
    ...member(given, 'endpoints', splitList),
    ...expiry(given.value('expires')),
    ...member(given, 'team', (text) => text),
    ...member(given, 'owner', (text) => text),
    ...member(given, 'tags', splitList),
    ...named('cidrs', member(given, 'cidr', splitList)),
    ...toggled(given, 'strict'),
    ...member(given, 'cache', (text) => text),
    ...toggled(given, 'shrink'),
    ...named('log_content', toggled(given, 'log-content')),
  };
}

export function splitList(text: string): readonly string[] {
  return text.split(',').map((item) => item.trim());
}

function member(given: Arguments, name: string, read: (text: string) => Json): Members {
  const text = given.value(name);
  if (text === undefined) return {};
  return { [name]: text === none ? null : read(text) };
}

function named(name: string, members: Members): Members {
  return Object.fromEntries(Object.values(members).map((value) => [name, value]));
}

function numberOf(given: Arguments, name: string): Members {
  return member(given, name, (text) => readWhole(`--${name}`, text));
}

function readWhole(flag: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${flag}: ${text} is not a whole number.`);
  return Number(text);
}

/** `30d` is a span, `2026-12-31` a date; which of them is wrong is for the API to say. */
function expiry(text: string | undefined): Members {
  if (text === undefined) return {};
  if (text === 'never' || text === none) return { expires_at: null };
  return /^\d{4}-/.test(text) ? { expires_at: text } : { expires_in: text };
}

function toggled(given: Arguments, name: 'strict' | 'shrink' | 'log-content'): Members {
  if (given.has(name) && given.has(`no-${name}`)) {
    throw new UsageError(`--${name} and --no-${name} cannot be combined.`);
  }
  if (given.has(name)) return { [name]: true };
  return given.has(`no-${name}`) ? { [name]: false } : {};
}

const limitKinds: ReadonlyMap<string, string> = new Map([
  ['rpm', 'requests'],
  ['tpm', 'tokens'],
  ['concurrent', 'concurrent'],
]);

function readLimits(text: string): readonly Json[] {
  return splitList(text).map((item) => {
    const [, name = '', amount = '', model] = /^(\w+)=([^:]*)(?::(.+))?$/.exec(item) ?? [];
    const kind = limitKinds.get(name);
    if (kind === undefined) {
      throw new UsageError(`--limits: ${item} is not a limit; write it like rpm=10:openai/*.`);
    }
    return {
      kind,
      amount: readWhole('--limits', amount),
      ...(model === undefined ? {} : { model }),
    };
  });
}
