/**
 * Values that stores keep as JSON text. What cannot be read is damage, never "no limit": reading it as
 * empty would open what a policy closed.
 */
import type { Json, JsonObject } from '../core/conversation.ts';
import { isObject, tryParse } from '../core/json.ts';
import type { Budget, Policy, RateLimit } from '../core/policy.ts';
import type { Price, Rates } from '../core/price.ts';
import type { BudgetWindow } from './calls.ts';
import type { PreviousSecret } from './records.ts';
import { StoreError } from './store-error.ts';

/** A JSON value that is already parsed (PostgreSQL), or its text (SQLite). */
export type Kept = Json;

export function readTexts(kept: Kept): readonly string[] {
  return listOf(kept, 'a list of texts').map((item) => {
    if (typeof item !== 'string') throw unreadable('a text');
    return item;
  });
}

export function readPolicy(kept: Kept): Policy {
  const policy = objectOf(parsed(kept), 'a policy');
  return {
    limits: listOf(policy['limits'], 'limits').map(readLimit),
    budgets: listOf(policy['budgets'], 'budgets').map(readBudget),
  };
}

function readLimit(value: Json): RateLimit {
  const limit = objectOf(value, 'a limit');
  const kind = limit['kind'];
  if (kind !== 'requests' && kind !== 'tokens' && kind !== 'concurrent') {
    throw unreadable('the kind of a limit');
  }
  const model = optionalText(limit, 'model');
  return { kind, amount: number(limit, 'amount'), ...(model === undefined ? {} : { model }) };
}

function readBudget(value: Json): Budget {
  const budget = objectOf(value, 'a budget');
  const per = budget['per'];
  if (per !== 'day' && per !== 'week' && per !== 'month' && per !== 'ever') {
    throw unreadable('the period of a budget');
  }
  return { nanodollars: number(budget, 'nanodollars'), per, timeZone: textOf(budget, 'timeZone') };
}

export function readPrevious(kept: Kept): readonly PreviousSecret[] {
  return listOf(kept, 'previous secrets').map((value): PreviousSecret => {
    const secret = objectOf(value, 'a previous secret');
    return {
      digest: textOf(secret, 'digest'),
      ...(secret['peppered'] === true ? { peppered: true } : {}),
      replacedAt: number(secret, 'replacedAt'),
      validUntil: number(secret, 'validUntil'),
    };
  });
}

export function readBudgets(kept: Kept): readonly BudgetWindow[] {
  return listOf(kept, 'budgets of a call').map((value) => {
    const budget = objectOf(value, 'a budget of a call');
    const endsAt = optionalNumber(budget, 'endsAt');
    return {
      counter: textOf(budget, 'counter'),
      window: textOf(budget, 'window'),
      ...(endsAt === undefined ? {} : { endsAt }),
    };
  });
}

export function readPrice(kept: Kept): Price {
  const price = objectOf(parsed(kept), 'a price');
  return {
    ...numbersOf(price, optionalAmounts),
    rates: readRates(price['rates']),
    tiers: listOf(price['tiers'], 'tiers of a price').map((value) => {
      const tier = objectOf(value, 'a tier');
      return { above: number(tier, 'above'), rates: readRates(tier['rates']) };
    }),
    source: textOf(price, 'source'),
  };
}

// All optional members: the types make a forgotten one an error here.
const optionalAmounts: {
  readonly [K in Exclude<keyof Price, 'rates' | 'tiers' | 'service' | 'source'>]: K;
} = {
  call: 'call',
  webSearch: 'webSearch',
  perImage: 'perImage',
};
const optionalRates: { readonly [K in Exclude<keyof Rates, 'input' | 'output'>]: K } = {
  cacheRead: 'cacheRead',
  cacheWrite: 'cacheWrite',
  cacheWriteLong: 'cacheWriteLong',
  reasoning: 'reasoning',
  audioInput: 'audioInput',
  imageInput: 'imageInput',
  videoInput: 'videoInput',
  audioCacheRead: 'audioCacheRead',
  audioOutput: 'audioOutput',
  imageOutput: 'imageOutput',
};

function readRates(value: Json | undefined): Rates {
  const rates = objectOf(value, 'rates');
  return {
    input: number(rates, 'input'),
    output: number(rates, 'output'),
    ...numbersOf(rates, optionalRates),
  };
}

/** Those of the named members that are there. */
function numbersOf<K extends string>(
  object: JsonObject,
  names: { readonly [N in K]: N },
): { [N in K]?: number } {
  const found: { [N in K]?: number } = {};
  for (const name of Object.values<K>(names)) {
    const value = optionalNumber(object, name);
    if (value !== undefined) found[name] = value;
  }
  return found;
}

function parsed(kept: Kept): Json | undefined {
  return typeof kept === 'string' ? tryParse(kept) : kept;
}

function listOf(kept: Json | undefined, what: string): readonly Json[] {
  const value = kept === undefined ? undefined : parsed(kept);
  if (!Array.isArray(value)) throw unreadable(what);
  return value;
}

function objectOf(value: Json | undefined, what: string): JsonObject {
  if (!isObject(value)) throw unreadable(what);
  return value;
}

function textOf(object: JsonObject, name: string): string {
  const value = optionalText(object, name);
  if (value === undefined) throw unreadable(name);
  return value;
}

function optionalText(object: JsonObject, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' ? value : undefined;
}

function number(object: JsonObject, name: string): number {
  const value = optionalNumber(object, name);
  if (value === undefined) throw unreadable(name);
  return value;
}

function optionalNumber(object: JsonObject, name: string): number | undefined {
  const value = object[name];
  return typeof value === 'number' ? value : undefined;
}

function unreadable(what: string): StoreError {
  return new StoreError('corrupt', `The store holds something that is not ${what}.`);
}
