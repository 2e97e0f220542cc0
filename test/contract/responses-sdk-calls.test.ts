/** Each call of the official OpenAI SDK on `/v1/responses`, onto an upstream of each dialect, and answers that break. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI, { APIError } from 'openai';
import OpenAIOld from 'openai-4';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { answerOf, brokenDocumentIn, brokenIn, slowIn } from '../agents/answers.ts';
import { startStage, type FullStage } from '../agents/stage.ts';
import { reported, wires, type Turn, type Wire } from '../agents/turn.ts';
import { clientKey } from '../support/keys.ts';
import { objectAt } from '../support/reading.ts';
import type { Played } from '../support/rig.ts';
import type { Answer, Received, Scripted } from '../upstream/scripted.ts';

const city = z.object({ city: z.string(), degrees: z.number() });
const broken = /before its end|premature close/;

let stage: FullStage;
let client: OpenAI;
let old: OpenAIOld;
before(async () => {
  stage = await startStage({ clients: { keep_alive: { responses: '50ms' } } });
  const settings = { apiKey: clientKey, baseURL: `${stage.gateway.url}/v1`, maxRetries: 0 };
  client = new OpenAI(settings);
  old = new OpenAIOld(settings);
});
after(() => stage.stop());

function turning(upstream: Wire, turn: Turn): Scripted {
  return (request: Received): Answer => {
    if (request.path.endsWith('/count_tokens')) return { body: '{"input_tokens":12}' };
    return answerOf(upstream, turn, request.json['stream'] === true);
  };
}

function play(upstream: Wire, ...turns: readonly Turn[]): Played {
  return stage.play(upstream, ...turns.map((turn) => turning(upstream, turn)));
}

async function statusOf(asking: Promise<unknown>): Promise<readonly unknown[]> {
  const error = await asking.then(
    () => assert.fail('it was answered'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof APIError, String(error));
  return [error.status, error.code];
}

function suite(upstream: Wire): void {
  const prefix = upstream === 'messages' ? 'toolu_' : 'call_';

  test('R-51 parse gives the value of a zod schema, and asks the upstream for it', async () => {
    const { model, script } = play(upstream, { text: '{"city":"Paris","degrees":7}' });
    const text = { format: zodTextFormat(city, 'weather') };
    const answer = await client.responses.parse({ model, input: 'Weather?', text });
    assert.deepEqual(answer.output_parsed, { city: 'Paris', degrees: 7 });
    assert.match(JSON.stringify(script.requests[0]?.json), /"degrees"/);
  });

  test('R-51 parse gives the arguments of a zod function', async () => {
    const call = { id: `${prefix}one`, name: 'weather', input: { city: 'Paris', degrees: 7 } };
    const { model } = play(upstream, { calls: [call] });
    const tools = [zodResponsesFunction({ name: 'weather', parameters: city })];
    const answer = await client.responses.parse({ model, input: 'Weather?', tools });
    const [item] = answer.output;
    assert.ok(item?.type === 'function_call');
    assert.deepEqual(item.parsed_arguments, { city: 'Paris', degrees: 7 });
  });

  test('R-51 the stream helper parses, too', async () => {
    const { model } = play(upstream, { text: '{"city":"Paris","degrees":7}' });
    const text = { format: zodTextFormat(city, 'weather') };
    const stream = client.responses.stream({ model, input: 'Weather?', text });
    const answer = await stream.finalResponse();
    assert.deepEqual(answer.output_parsed, { city: 'Paris', degrees: 7 });
    assert.equal(answer.usage?.input_tokens, reported.fresh + reported.cacheRead);
    assert.equal(answer.usage.input_tokens_details.cached_tokens, reported.cacheRead);
    assert.equal(answer.usage.output_tokens, reported.output);
  });

  test('R-34 R-35 R-37 retrieve, inputItems, inputTokens, cancel, delete', async () => {
    const { model, script } = play(upstream, { text: 'Sunny.' });
    const one = await client.responses.create({ model, input: 'Weather?' });
    assert.deepEqual(plain(await client.responses.retrieve(one.id)), plain(one));
    const items = await client.responses.inputItems.list(one.id);
    assert.equal(objectAt({ item: plain(items.data[0]) }, 'item')['role'], 'user');
    const counted = await client.responses.inputTokens.count({
      model,
      input: 'And?',
      previous_response_id: one.id,
    });
    assert.equal(counted.object, 'response.input_tokens');
    assert.ok(counted.input_tokens > 0);
    assert.deepEqual(await statusOf(client.responses.cancel(one.id)), [400, null]);
    await client.responses.delete(one.id);
    assert.deepEqual(await statusOf(client.responses.retrieve(one.id)), [404, null]);
    const asked = script.requests.filter(({ path }) => !path.endsWith('/count_tokens'));
    assert.equal(asked.length, 1);
  });

  for (const [what, turn] of [
    ['text', { text: 'Half an answer' }],
    ['call', { calls: [{ id: `${prefix}one`, name: 'weather', input: { city: 'Paris' } }] }],
  ] as const) {
    test(`R-26 a stream that breaks in a ${what} fails in the iterator and in the helper`, async () => {
      const { model } = stage.play(upstream, brokenIn(upstream, turn));
      const asked = { model, input: 'Weather?' };
      for (const events of [
        client.responses.create({ ...asked, stream: true }),
        old.responses.create({ ...asked, stream: true }),
      ]) {
        const types: string[] = [];
        const iterated = async (): Promise<void> => {
          for await (const { type } of await events) types.push(type);
        };
        await assert.rejects(iterated(), broken);
        assert.ok(!types.includes('response.completed'), types.join());
      }
      await assert.rejects(client.responses.stream(asked).finalResponse(), broken);
      await assert.rejects(old.responses.stream(asked).finalResponse(), broken);
    });
  }

  test('R-17 silence is filled with events, as often as keep_alive says', async () => {
    const { model } = stage.play(upstream, slowIn(upstream, { text: 'Half an answer' }, 150));
    const asked = { model, input: 'Weather?', stream: true } as const;
    let signs = 0;
    let text = '';
    for await (const event of await client.responses.create(asked)) {
      if (event.type === 'response.in_progress') signs += 1;
      if (event.type !== 'response.output_text.delta') continue;
      if (event.delta === '') signs += 1;
      text += event.delta;
    }
    assert.equal(text, 'Half an answer');
    assert.ok(signs > 1, 'one is there in any case');
  });

  test('R-26 a document that breaks is an error', async () => {
    const { model } = stage.play(upstream, brokenDocumentIn(upstream, { text: 'Half an answer' }));
    const asking = client.responses.create({ model, input: 'Weather?' });
    assert.deepEqual((await statusOf(asking))[0], 502);
  });

  test('R-24 the oldest major in use reads documents and streams', async () => {
    const { model } = play(upstream, { text: 'Sunny.' });
    const answer = await old.responses.create({ model, input: 'Weather?' });
    assert.equal(answer.output_text, 'Sunny.');
    const streamed = await old.responses.stream({ model, input: 'Weather?' }).finalResponse();
    const [item] = streamed.output;
    assert.ok(item?.type === 'message' && item.content[0]?.type === 'output_text');
    assert.equal(item.content[0].text, 'Sunny.');
  });
}

/** Without the SDK's own members and methods. */
function plain(value: unknown) {
  return JSON.parse(JSON.stringify(value));
}

for (const upstream of wires) {
  describe(`openai SDK on a ${upstream} upstream`, () => suite(upstream));
}
