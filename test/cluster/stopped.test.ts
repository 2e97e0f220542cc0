/** A gateway that stood still until others settled its calls: they end, and it gives back what it held (Q1, F81). */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { after, before, it, test } from 'node:test';
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { until } from '../support/postgres-store.ts';
import { chatDocument } from '../upstream/chat.ts';
import { Trio } from './trio.ts';

const server = await startPostgres();
if (server === undefined) test(noPostgres, () => {});
else stopped(server);

const frame = (delta: object): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;

function stopped(postgres: TestPostgres): void {
  let trio: Trio;
  before(async () => {
    trio = await Trio.start(postgres);
  });
  after(async () => {
    await trio.close();
    await postgres.close();
  });

  it('Q1 F81: others spend what it does not hold, its settled streams do not continue, and its return frees the rest', async () => {
    const { instances, upstream } = trio;
    const [stopping, other] = instances;
    assert.ok(stopping !== undefined && other !== undefined);
    const made = await trio.makeKey({ budget: 0.01 });
    const awake = Promise.withResolvers<void>();
    // One word at a time: what was in the sockets when it woke may still get through.
    const paced = Array.from({ length: 400 }, (_, i) => [
      awake.promise.then(() => pause(100 * i, undefined, { ref: false })),
      frame({ content: ' word' }),
    ]);
    const long = upstream.script('long', {
      body: [frame({ role: 'assistant', content: 'abc' }), ...paced.flat()],
      ending: 'hang',
    });
    const usage = { prompt_tokens: 9, completion_tokens: 100, total_tokens: 109 };
    upstream.script('whole', { body: JSON.stringify(chatDocument({ text: 'x', usage })) });
    const stream = stopping.chat(made.key, { model: 'up/long', max_tokens: 500, stream: true });
    await until(async () => (await trio.open('up/long')) === 1, 'it is noted');
    stopping.signal('SIGSTOP');
    await until(async () => (await trio.open('up/long')) === 0, 'another one settles it', 240_000);
    // Half of the budget is what its stream may cost, and each of these calls costs a tenth of it.
    const ask = () => other.chat(made.key, { model: 'up/whole', max_tokens: 100 });
    let answered = 0;
    while (answered < 10 && (await ask()).status === 200) answered += 1;
    assert.ok(answered >= 3 && answered <= 5, `${answered} calls beside what it holds`);
    stopping.signal('SIGCONT');
    awake.resolve();
    const { text } = await stream;
    assert.match(text, /store_unavailable/);
    assert.ok(text.split(' word').length < 200, `${text.split(' word').length} words went through`);
    assert.equal(await (await long.request(0)).closed, 'gateway');
    // A row and what it spends are one transaction; it may come between the two questions.
    const agree = async (): Promise<boolean> =>
      (await trio.spent(made)) === (await trio.costs(made));
    await until(agree, 'budgets and rows agree');
    await until(async () => (await ask()).status === 200, 'what it held and did not spend is free');
    await until(agree, 'budgets and rows still agree');
    assert.ok((await trio.spent(made)) <= 10_000_000, 'no more than the budget');
  });
}
