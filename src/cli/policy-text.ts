/** Limits and budgets of the admin API's answers, in one line. */
import type { JsonObject } from '../json/value.ts';
import { cell, objectsOf } from './reply.ts';

const units: ReadonlyMap<string, string> = new Map([
  ['requests', 'requests per minute'],
  ['tokens', 'tokens per minute'],
  ['concurrent', 'concurrent calls'],
]);

/** `60 requests per minute; $3.20 of $10 a month`; `-` where there are none. */
export function policyText(holder: JsonObject): string {
  const limits = objectsOf(holder, 'limits').map(({ kind, amount, model }) => {
    const what = units.get(cell(kind)) ?? cell(kind);
    return `${cell(amount)} ${what}${typeof model === 'string' ? ` of ${model}` : ''}`;
  });
  const budgets = objectsOf(holder, 'budgets').map(budgetText);
  return [...limits, ...budgets].join('; ') || '-';
}

function budgetText({ usd, per, time_zone: zone, spent_usd: spent }: JsonObject): string {
  const whole = `$${cell(usd)}`;
  const amount = spent === undefined ? whole : `$${cell(spent)} of ${whole}`;
  if (per === 'ever') return `${amount} in total`;
  return `${amount} a ${cell(per)}${zone === 'UTC' ? '' : ` (${cell(zone)})`}`;
}
