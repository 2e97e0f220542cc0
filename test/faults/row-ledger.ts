/** What the ledger must have of the calls of a fault row (reliability.md §2C). */
import assert from 'node:assert/strict';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { listAt, numberAt, objectAt, textAt } from '../support/reading.ts';
import type { Rig } from '../support/rig.ts';
import { errorTable } from './fault-row.ts';
import {
  attemptsOf,
  ledgerCodeOf,
  nanodollarsOfToken,
  outcomeOf,
  type Case,
  type PlayedCase,
} from './row-case.ts';

/** The one row of a call, with its tries. */
export function assertRow(at: Case, row: JsonObject): void {
  const code = ledgerCodeOf(at);
  const told = `${code}: ${JSON.stringify(row)}`;
  assert.equal(row['outcome'], outcomeOf(at).kind === 'served' ? 'ok' : 'failed', told);
  if (code === 'L0') assertFree(row, told);
  else assertCharged(row, told);
  if (code === 'LX') assert.equal(row['usage_source'], 'reported', told);
  if (code === 'LE') assert.equal(row['usage_source'], 'estimated', told);
  if (code === 'L0' || code === 'LP') assert.notEqual(textAt(row, 'error'), '', told);
  assertTries(at, row);
}

function assertTries(at: Case, row: JsonObject): void {
  const tries = listAt(row, 'attempt_list');
  const told = JSON.stringify(tries);
  assert.equal(row['attempts'], attemptsOf(at), told);
  assert.equal(tries.length, attemptsOf(at), told);
  tries.forEach((each, index) => {
    const last = index === tries.length - 1;
    assert.equal(each['outcome'], last ? row['outcome'] : 'failed', told);
    if (each['outcome'] === 'ok') return;
    assert.notEqual(textAt(each, 'error'), '', told);
    if (at.row.maybeBilled !== undefined)
      assert.equal(each['maybe_billed'], at.row.maybeBilled, told);
  });
}

/** L0: a call that no upstream answered costs nothing. */
function assertFree(row: JsonObject, told: string): void {
  assert.equal(row['cost_usd'], 0, told);
  const charged = objectAt(row, 'charged');
  assert.equal(numberAt(charged, 'output_tokens'), 0, told);
  assert.equal(numberAt(charged, 'fresh_input_tokens'), 0, told);
}

/** What was received is charged, by estimate where it was not reported. */
function assertCharged(row: JsonObject, told: string): void {
  assert.ok(isObject(row['charged']), told);
  const charged = objectAt(row, 'charged');
  assert.ok(numberAt(charged, 'output_tokens') > 0, told);
  assert.ok(numberAt(charged, 'fresh_input_tokens') > 0, told);
}

/**
 * All calls of a case: a row each, and the budget has what they cost, once. A call that left a place or money
 * behind would have refused the next one.
 */
export async function assertSettled(
  rig: Rig,
  at: Case,
  { calls, model, spent }: PlayedCase & { readonly calls: number },
): Promise<void> {
  const rows = await rig.gateway.callRows(model, calls);
  assert.equal(rows.length, calls, 'one row a call');
  const outcome = outcomeOf(at);
  // Behind a 429 the target is left alone for a while, and a spent budget pays for nothing more.
  const cools = outcome.kind === 'refused' && outcome.as.includes(errorTable.e8);
  const refusedHere = cools || at.row.budget !== undefined;
  let cost = 0;
  for (const row of rows) {
    const told = JSON.stringify(row);
    assert.equal(row['outcome'], outcome.kind === 'served' ? 'ok' : 'failed', told);
    if (!refusedHere) assert.ok(numberAt(row, 'attempts') > 0, told);
    const nanodollars = Math.round(numberAt(row, 'cost_usd') * 1e9);
    cost += nanodollars;
    if (at.row.pricedPrompt) continue;
    const output = numberAt(objectAt(row, 'charged'), 'output_tokens');
    assert.equal(nanodollars, output * nanodollarsOfToken, told);
  }
  assert.equal(await spent(), cost, 'settled once');
}
