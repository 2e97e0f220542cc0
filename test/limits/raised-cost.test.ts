/**
 * many calls at once, each with a member that raises its cost, and an upstream that bills the worst of it: all of
 * them together never cost more than the budget, or the member is refused.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { isInSample } from '../support/depth.ts';
import { until } from '../support/postgres-store.ts';
import type { ClientDialect } from '../support/dialects.ts';
import { requestBody } from '../support/requests.ts';
import { answerIn } from '../upstream/reply.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import { errorOf, nanodollarsOfOutput, startLimitedRig, type LimitedRig } from './limited-rig.ts';

let rig: LimitedRig;
before(async () => {
  const price = { input: 0, output: 10 };
  rig = await startLimitedRig({
    prices: {
      'up-chat/*': { ...price, web_search: 0.01 },
      'up-messages/*': { ...price, web_search: 0.01 },
      'up-responses/*': { ...price, web_search: 0.01 },
    },
  });
});
after(() => rig.stop());

const cap = 100;
const calls = 16;
const predicted = 'const answer = await ask(question); // and so on\n'.repeat(40);

type Worst = (sent: JsonObject, cap: number) => number;

interface Raising {
  readonly dialect: ClientDialect;
  readonly more: JsonObject;
  /** Output tokens that the vendor bills for what it was sent. */
  readonly worst: Worst;
}

const at = (sent: JsonObject, ...path: readonly string[]): number => {
  let value: Json | undefined = sent;
  for (const name of path) value = isObject(value) ? value[name] : undefined;
  return Number(value ?? 0);
};
const beside =
  (...path: readonly string[]): Worst =>
  (sent, own) =>
    own + at(sent, ...path);
const instead =
  (...path: readonly string[]): Worst =>
  (sent, own) =>
    Math.max(own, at(sent, ...path));
const times =
  (...path: readonly string[]): Worst =>
  (sent, own) =>
    own * Math.max(1, at(sent, ...path));

const raising: readonly Raising[] = [
  {
    dialect: 'chat',
    more: { prediction: { type: 'content', content: predicted } },
    // By OpenAI's own count of tokens of such a text: it has one for four characters.
    worst: (_, own) => own + Math.ceil(predicted.length / 4),
  },
  {
    dialect: 'chat',
    more: { reasoning: { max_tokens: 20_000 } },
    worst: beside('reasoning', 'max_tokens'),
  },
  {
    dialect: 'chat',
    more: { thinking: { type: 'enabled', budget_tokens: 9000 } },
    worst: beside('thinking', 'budget_tokens'),
  },
  { dialect: 'chat', more: { thinking_budget: 9000 }, worst: beside('thinking_budget') },
  {
    dialect: 'chat',
    more: { chat_template_kwargs: { thinking_budget: '9000' } },
    worst: beside('chat_template_kwargs', 'thinking_budget'),
  },
  {
    dialect: 'chat',
    more: { extra_body: { google: { thinking_config: { thinking_budget: 9000 } } } },
    worst: beside('extra_body', 'google', 'thinking_config', 'thinking_budget'),
  },
  { dialect: 'chat', more: { n: 5 }, worst: times('n') },
  { dialect: 'chat', more: { best_of: 9 }, worst: times('best_of') },
  { dialect: 'chat', more: { n: 3, best_of: 9 }, worst: times('best_of') },
  { dialect: 'chat', more: { num_return_sequences: 4 }, worst: times('num_return_sequences') },
  { dialect: 'chat', more: { candidateCount: 4 }, worst: times('candidateCount') },
  { dialect: 'chat', more: { num_predict: 5000 }, worst: instead('num_predict') },
  {
    dialect: 'chat',
    more: { options: { num_predict: 5000 } },
    worst: instead('options', 'num_predict'),
  },
  { dialect: 'chat', more: { max_new_tokens: 5000 }, worst: instead('max_new_tokens') },
  { dialect: 'chat', more: { max_output_tokens: 5000 }, worst: instead('max_output_tokens') },
  { dialect: 'chat', more: { min_tokens: 5000 }, worst: instead('min_tokens') },
  {
    dialect: 'chat',
    more: { generationConfig: { maxOutputTokens: 5000 } },
    worst: instead('generationConfig', 'maxOutputTokens'),
  },
  {
    dialect: 'messages',
    more: { thinking: { type: 'enabled', budget_tokens: 5000 } },
    worst: instead('thinking', 'budget_tokens'),
  },
  { dialect: 'messages', more: { n: 5 }, worst: times('n') },
  { dialect: 'messages', more: { best_of: 5 }, worst: times('best_of') },
  {
    dialect: 'messages',
    more: { max_completion_tokens: 50 },
    worst: instead('max_completion_tokens'),
  },
  {
    dialect: 'messages',
    more: { max_completion_tokens: 5000 },
    worst: instead('max_completion_tokens'),
  },
  { dialect: 'messages', more: { max_output_tokens: 5000 }, worst: instead('max_output_tokens') },
  {
    dialect: 'messages',
    more: { context_management: { edits: [{ type: 'compact_20260112' }] } },
    worst: (_, own) => 2 * own,
  },
  // A cap of another format; that of a Responses request is its own.
  {
    dialect: 'responses',
    more: { max_completion_tokens: 5000 },
    worst: instead('max_completion_tokens'),
  },
  {
    dialect: 'responses',
    more: { reasoning: { max_tokens: 20_000 } },
    worst: beside('reasoning', 'max_tokens'),
  },
  {
    dialect: 'responses',
    more: { context_management: [{ type: 'compaction', compact_threshold: 1000 }] },
    worst: (_, own) => 2 * own,
  },
];

/** The first `ask` of the body, as the gateway sent it on. */
function billed({ worst, dialect }: Raising, { json }: Received, stream: boolean): Answer {
  const own =
    dialect === 'responses'
      ? at(json, 'max_output_tokens')
      : at(json, 'max_tokens') || at(json, 'max_completion_tokens');
  const output = worst(json, own);
  const usage = { fresh: 5, cacheRead: 0, cacheWrite: 0, output, reasoning: 0 };
  return answerIn(dialect, { text: 'Yes.', usage }, stream);
}

// `npm test` plays half of the rows, each with one length.
for (const [i, row] of raising.entries()) {
  for (const [j, [length, padding]] of (
    [
      ['short', ''],
      ['long', ' and so on'.repeat(5000)],
    ] as const
  ).entries()) {
    if (!isInSample(i + j, 4)) continue;
    const stream = length === 'short';
    const what = `${row.dialect} ${length} ${JSON.stringify(row.more).slice(0, 90)}`;
    test(`X-4 Q1 ${calls} calls at once never cost more than the budget: ${what}`, async () => {
      const { promise: all, resolve: release } = Promise.withResolvers<string>();
      const { model, script } = rig.play(row.dialect, (request: Received) => {
        const answer = billed(row, request, stream);
        const type = stream ? 'text/event-stream' : 'application/json';
        const body = [all, ...[answer.body ?? []].flat()];
        return { ...answer, body, headers: { 'content-type': type } };
      });
      const most = row.worst({ ...row.more, max_tokens: cap }, cap);
      // The guess of a prediction is above what it has.
      const nanodollars = Math.ceil(5.5 * most) * nanodollarsOfOutput;
      const budget = (nanodollars / 1e9).toFixed(9);
      const key = await rig.key({ budget, per: 'day', shrink: stream });
      const messages = [{ role: 'user', content: `What is it?${padding}` }];
      const asked = { max_tokens: cap, ...row.more, messages };
      const body = requestBody(row.dialect, { model, stream, more: asked });
      let over = 0;
      const replies = Array.from({ length: calls }, async () => {
        const reply = await rig.call(key, row.dialect, body);
        over += 1;
        return reply;
      });
      await until(() => over + script.requests.length >= calls, 'all have come');
      release('\n');
      const statuses = (await Promise.all(replies)).map(({ status }) => status);
      await rig.gateway.noneLeft();
      const served = statuses.filter((status) => status === 200).length;
      assert.ok(served >= 2 && served < calls, statuses.join(' '));
      const refusal = row.dialect === 'messages' ? 402 : 429;
      assert.ok(statuses.every((status) => status === 200 || status === refusal));
      assert.ok((await rig.spent(key)) <= nanodollars, `${await rig.spent(key)} of ${nanodollars}`);
    });
  }
}

const unbounded: readonly (readonly [ClientDialect, JsonObject])[] = [
  ['chat', { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }],
  ['chat', { modalities: ['image', 'text'] }],
  ['chat', { modalities: ['video'] }],
  ['chat', { generationConfig: { responseModalities: ['AUDIO'] } }],
  ['chat', { plugins: [{ id: 'file-parser' }] }],
  ['chat', { tools: [{ type: 'code_interpreter' }] }],
  ['chat', { tools: [{ type: 'browser_search' }] }],
  ['chat', { tools: [{ type: 'image_generation' }] }],
  ['chat', { tools: [{ type: 'mcp', server_url: 'https://example.com' }] }],
  ['chat', { provider: { order: ['dear'] } }],
  ['chat', { provider: { sort: 'throughput' } }],
  ['chat', { service_tier: 'priority' }],
  ['chat', { service_tier: 'performance' }],
  ['chat', { num_predict: -1 }],
  ['chat', { options: { num_predict: -2 } }],
  ['chat', { deep: Array.from({ length: 2000 }, (_, i) => ({ max_tokens: i })) }],
  ['messages', { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }],
  ['messages', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 3 }] }],
  ['messages', { tools: [{ type: 'mcp_toolset', mcp_server_name: 'x' }] }],
  ['messages', { mcp_servers: [{ type: 'url', url: 'https://example.com', name: 'x' }] }],
  ['messages', { inference_geo: 'us' }],
  ['messages', { speed: 'fast' }],
  ['messages', { speed: 'faster' }],
  ['messages', { fallbacks: [{ model: 'dear' }] }],
  ['responses', { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }],
  ['responses', { tools: [{ type: 'file_search', vector_store_ids: ['v'] }] }],
  ['responses', { tools: [{ type: 'image_generation' }] }],
  ['responses', { prompt: { id: 'pmpt_1', variables: { city: 'Paris' } } }],
  [
    'responses',
    { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'image_generation' }] }] },
  ],
  ['responses', { service_tier: 'priority' }],
];
for (const [i, [dialect, more]] of unbounded.entries()) {
  if (!isInSample(i, 4)) continue;
  for (const padding of ['', ' and so on'.repeat(5000)]) {
    const what = `${dialect} ${padding === '' ? 'short' : 'long'} ${JSON.stringify(more).slice(0, 90)}`;
    test(`X-4 F6 what has no bound is refused for a budget, and for no other key: ${what}`, async () => {
      const reply = answerIn(dialect, { text: 'Yes.' }, false);
      const { model, script } = rig.play(dialect, reply);
      const messages = [{ role: 'user', content: `What is it?${padding}` }];
      const asked = { max_tokens: cap, ...more, messages };
      const body = requestBody(dialect, { model, stream: false, more: asked });
      const paid = await rig.call(await rig.key({ budget: 100, per: 'day' }), dialect, body);
      assert.equal(paid.status, 400, paid.text);
      const [member] = Object.keys(more);
      assert.match(String(errorOf(paid)['message']), new RegExp(`"${member}"`));
      assert.equal(script.requests.length, 0);
      const free = await rig.call(await rig.key(), dialect, body);
      assert.equal(free.status, 200, free.text);
    });
  }
}

const harmless: readonly (readonly [ClientDialect, JsonObject])[] = [
  [
    'chat',
    {
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'a',
          schema: { type: 'object', properties: { text: { type: 'string', maxLength: 90_000 } } },
        },
      },
    },
  ],
  ['chat', { guided_json: { type: 'object', properties: { a: { maxLength: 90_000 } } } }],
  ['chat', { stop_token_ids: [128_001, 128_009], truncate_prompt_tokens: 9000, length_penalty: 3 }],
  ['chat', { options: { num_ctx: 32_768 }, context_length: 32_768, keep_alive: 300 }],
  ['chat', { reasoning: { effort: 'high' }, usage: { include: true }, transforms: ['middle-out'] }],
  ['chat', { provider: { data_collection: 'deny', zdr: true }, repetition_penalty: 1.1 }],
  ['chat', { modalities: ['text'], service_tier: 'flex', logit_bias: { 50_256: -100 } }],
  ['messages', { thinking: { type: 'enabled', budget_tokens: 50 } }],
  ['messages', { output_config: { effort: 'low' }, inference_geo: 'global', speed: 'standard' }],
  [
    'messages',
    {
      context_management: {
        edits: [{ type: 'clear_tool_uses_20250919', keep: { type: 'tool_uses', value: 90_000 } }],
      },
    },
  ],
  [
    'messages',
    {
      tools: [
        { type: 'bash_20250124', name: 'bash' },
        { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
        { type: 'memory_20250818', name: 'memory' },
      ],
    },
  ],
  [
    'responses',
    {
      instructions: 'Answer in a word.',
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: { type: 'text' }, verbosity: 'low' },
      include: ['reasoning.encrypted_content'],
      truncation: 'auto',
      tools: [
        { type: 'custom', name: 'apply' },
        {
          type: 'namespace',
          name: 'n',
          description: 'Some.',
          tools: [{ type: 'function', name: 'f' }],
        },
      ],
    },
  ],
  // A conversation of an agent: its prompt is reserved as a prompt.
  [
    'responses',
    {
      input: Array.from({ length: 400 }, (_, i) => ({
        role: i % 2 === 0 ? 'user' : 'assistant',
        content: [{ type: i % 2 === 0 ? 'input_text' : 'output_text', text: `Word ${i}` }],
      })),
    },
  ],
];
for (const [i, [dialect, more]] of harmless.entries()) {
  if (!isInSample(i, 4)) continue;
  test(`X-4 what costs nothing reserves nothing: ${dialect} ${JSON.stringify(more).slice(0, 90)}`, async () => {
    const { model } = rig.play(dialect, answerIn(dialect, { text: 'Yes.' }, false));
    const key = await rig.key({ budget: 100, per: 'day' });
    const body = requestBody(dialect, { model, stream: false, more: { max_tokens: cap, ...more } });
    const reply = await rig.call(key, dialect, body);
    assert.equal(reply.status, 200, reply.text);
    const [row] = await rig.gateway.callRows(model, 1);
    assert.equal(Math.round(Number(row?.['reserved_usd']) * 1e9), cap * nanodollarsOfOutput);
  });
}
