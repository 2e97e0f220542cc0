/**
 * Q1 as an observer over HTTP sees it: while calls of random size come and go, the worst that the admitted
 * ones may cost and what the settled ones did cost never exceed the budget together, at any moment that
 * the recorded history allows.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { requestBody } from '../support/requests.ts';
import { answerIn } from '../upstream/reply.ts';
import type { Received, Scripted } from '../upstream/scripted.ts';
import { nanodollarsOfOutput, startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  rig = await startLimitedRig();
});
after(() => rig.stop());

const clients = 40;
const callsEach = 12;
const budgetTokens = 4000;

interface Step {
  /** Tokens that may be spent more from here on; below 0 = given back. */
  readonly tokens: number;
}

/** The same numbers in each run. */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
}

test('Q1 the history of 480 calls holds the budget at every moment', async () => {
  const roll = dice(7);
  const history: Step[] = [];
  let admitted = 0;
  let refused = 0;
  let spent = 0;
  // The upstream sees a call behind its admission, and its end before it is settled: between the two its
  // whole cap is at stake.
  const script: Scripted = (request: Received) => {
    const cap = Number(request.json['max_tokens']);
    // An answer with text has a token at least: a report of none is not believed (F57).
    const output = 1 + Math.floor(cap * roll() * 0.3);
    admitted += 1;
    history.push({ tokens: cap });
    const gate = new Promise<void>((resolve) => {
      setTimeout(() => {
        history.push({ tokens: output - cap });
        spent += output;
        resolve();
      }, roll() * 20);
    });
    const usage = { fresh: 0, cacheRead: 0, cacheWrite: 0, output, reasoning: 0 };
    const { body, ...rest } = answerIn('chat', { text: 'x', usage }, false);
    const headers = { 'content-type': 'application/json' };
    return { ...rest, framing: 'close', headers, body: [gate, String(body)] };
  };
  const { model } = rig.play('chat', script);
  const key = await rig.key({ budget: '0.04', per: 'ever', shrink: false });
  const client = async (): Promise<void> => {
    for (let i = 0; i < callsEach; i++) {
      const more = { max_tokens: 50 + Math.floor(roll() * 600) };
      const reply = await rig.call(
        key,
        'chat',
        requestBody('chat', { model, stream: false, more }),
      );
      if (reply.status !== 200) refused += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  let atStake = 0;
  let most = 0;
  for (const { tokens } of history) {
    atStake += tokens;
    most = Math.max(most, atStake);
    assert.ok(atStake <= budgetTokens, `${atStake} of ${budgetTokens} tokens were at stake`);
  }
  assert.equal(admitted + refused, clients * callsEach);
  assert.ok(admitted > 8 && refused > 8, `${admitted} admitted, ${refused} refused`);
  assert.ok(most > budgetTokens / 2, 'the budget was never pressed');
  await rig.gateway.callRows(model, admitted);
  assert.equal(await rig.spent(key), spent * nanodollarsOfOutput);
});
