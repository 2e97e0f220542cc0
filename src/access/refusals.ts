/**
 * The error for a call that a limit or a budget refuses: which one, whose, how much, and when it is free again
 * (E8, E9).
 */
import type { GatewayError } from '../core/errors.ts';
import { LimitError, type Standings } from '../core/policy.ts';
import { dollarsText } from '../core/money.ts';
import type { Refused } from '../store/counters/counters.ts';
import type { HeldBudget, HeldLimit } from './held-limits.ts';
import type { Holder } from './policies.ts';
import type { Reservation } from './reservation.ts';
import { tightest } from './call-grant.ts';

/** Random addition to the wait of a refused caller, so that not all retry at once. */
const jitterMs = 500;
/** Clients that would wait longer are told not to retry (E8). */
const longestWaitMs = 60_000;

export interface RefusalFacts {
  readonly refused: Pick<Refused, 'state' | 'waitMs' | 'open' | 'requests' | 'tokens'>;
  readonly reservation: Reservation;
  /** Ms since the epoch, by the clock of the counters. */
  readonly now: number;
  /** The same moment by the gateway's own clock, which headers use. */
  readonly toldAt: number;
  /** In [0, 1). */
  random(): number;
}

/** A rate limit is exhausted. */
export function rateRefusal(held: HeldLimit, facts: RefusalFacts): GatewayError {
  const { waitMs } = facts.refused;
  const retryAfterMs =
    waitMs === undefined ? undefined : jittered(waitMs, facts.random() * jitterMs);
  return new LimitError('rate_limited', rateText(held, facts), {
    standings: standingsOf(held, facts),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Jitter alone never makes a wait too long. */
function jittered(waitMs: number, jitter: number): number {
  const later = Math.ceil(waitMs + jitter);
  return waitMs <= longestWaitMs ? Math.min(later, longestWaitMs) : later;
}

/** The limit that refused; of the other kinds the one that will refuse first. */
function standingsOf(held: HeldLimit | undefined, { refused, toldAt }: RefusalFacts): Standings {
  const { limit, remaining, resetMs } = refused.state;
  const own = { limit, remaining, fullAt: toldAt + resetMs };
  const kind = held?.limit.kind;
  const requests = kind === 'requests' ? own : tightest(refused.requests, toldAt);
  const tokens = kind === 'tokens' ? own : tightest(refused.tokens, toldAt);
  return {
    ...(requests === undefined ? {} : { requests }),
    ...(tokens === undefined ? {} : { tokens }),
  };
}

function rateText(held: HeldLimit, { refused, reservation }: RefusalFacts): string {
  const { amount, kind } = held.limit;
  const { remaining } = refused.state;
  const whose = `${scopeText(held)}:`;
  const when = refused.waitMs === undefined ? '' : ` Try again in ${waitText(refused.waitMs)}.`;
  switch (kind) {
    case 'requests':
      return `Rate limit of ${whose} ${counted(amount, 'request')} per minute, ${remaining} left.${when}`;
    case 'tokens':
      return `Rate limit of ${whose} ${amount} tokens per minute, ${remaining} left; ${sizeText(reservation)}.${when}`;
    case 'concurrent':
      return `Limit of ${whose} ${counted(amount, 'call')} at a time, ${amount === 1 ? 'and it runs' : 'all of them running'}. Try again when one is over.`;
    default:
      return kind satisfies never;
  }
}

/** A prompt that is larger than the whole bucket: waiting does not help, and the SDKs are told so. */
export function neverFits(held: HeldLimit, facts: RefusalFacts): GatewayError {
  const { reservation } = facts;
  const why =
    `Rate limit of ${scopeText(held)}: ${held.limit.amount} tokens per minute; the prompt alone has about ` +
    `${reservation.prompt}, so this call can never fit. Send a shorter prompt.`;
  const retryAfterMs = Number.POSITIVE_INFINITY;
  return new LimitError('rate_limited', why, {
    standings: standingsOf(undefined, facts),
    retryAfterMs,
  });
}

/** A budget is too small for the call. */
export function budgetRefusal(held: HeldBudget, facts: RefusalFacts): GatewayError {
  const { budget, holder } = held;
  const { refused, reservation, now } = facts;
  const { remaining } = refused.state;
  const left = remaining <= 0 ? 'nothing' : `$${dollarsText(remaining)}`;
  const { open = 0 } = refused;
  const running = open > 0 ? `, $${dollarsText(open)} reserved by running calls` : '';
  const why =
    `The budget of ${holderText(holder)} has no room for this call: $${dollarsText(budget.nanodollars)} ` +
    `${periodText[budget.per]}, ${left} left${running}; the call may cost up to $${dollarsText(reservation.cost())} ` +
    `(${sizeText(reservation)}).${renewalText(held, now)}`;
  return new LimitError('budget_exhausted', why, { standings: standingsOf(undefined, facts) });
}

const periodText = { day: 'a day', week: 'a week', month: 'a month', ever: 'in total' } as const;

function renewalText(held: HeldBudget, now: number): string {
  const { endsAt } = held.window(now);
  if (endsAt === undefined) return ' It does not reset.';
  const at = new Date(endsAt).toISOString().slice(0, 16);
  return ` It resets at ${at}Z, in ${waitText(endsAt - now)}.`;
}

function scopeText({ holder, limit }: HeldLimit): string {
  const models = limit.model === undefined ? '' : ` for models ${limit.model}`;
  return `${holderText(holder)}${models}`;
}

function holderText({ kind, name }: Holder): string {
  return `${kind} ${name}`;
}

function sizeText({ prompt, output, choices }: Reservation): string {
  const times = choices === 1 ? '' : ` times ${choices}`;
  return `about ${prompt} prompt tokens and up to ${output}${times} output tokens`;
}

function counted(amount: number, what: string): string {
  return amount === 1 ? `1 ${what}` : `${amount} ${what}s`;
}

/** Long waits in the two largest units: `2 d 3 h`, `4 min 5 s`, `0.3 s`. */
function waitText(ms: number): string {
  if (ms < 10_000) return `${Math.ceil(ms / 100) / 10} s`;
  const seconds = Math.ceil(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(' ');
}
