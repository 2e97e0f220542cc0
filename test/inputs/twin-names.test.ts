/**
 * names that another reader of JSON takes for a member that the gateway reads. Go's `encoding/json` matches names
 * without case, and the last one wins: a key for one model would be served by another, with another cap.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Json, JsonObject } from '../../src/json/value.ts';
import type { ClientDialect as Client } from '../../src/core/dialect.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { anthropicMessagesClient } from '../../src/dialects/anthropic-messages/client.ts';
import { openaiChatClient } from '../../src/dialects/openai-chat/client.ts';
import { openaiResponsesClient } from '../../src/dialects/openai-responses/client.ts';
import { expensiveMembers } from '../../src/dialects/shared/body/describe.ts';
import { corpus } from '../corpus/samples.ts';
import { objectsIn, withMember } from '../corpus/objects.ts';
import { isInSample } from '../support/depth.ts';
import { send } from '../support/http.ts';
import { assertErrorBody } from '../support/legality.ts';
import { clientDialects, pairs, type ClientDialect } from '../support/dialects.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { tool } from './bad-row.ts';

const clients: { readonly [D in ClientDialect]: Client } = {
  chat: openaiChatClient,
  messages: anthropicMessagesClient,
  responses: openaiResponsesClient,
};

/** A member as it is written, in an object that the text `at` begins with. */
interface Attack {
  readonly name: string;
  readonly member: string;
  /** Where it is put: before the closing brace of the body, or behind this text. */
  readonly behind?: string;
  readonly named: string;
}

const everywhere: readonly Attack[] = [
  { name: 'an upper-case letter', member: '"Model":"up-chat/big"', named: 'Model' },
  { name: 'all upper case', member: '"MESSAGES":[]', named: 'MESSAGES' },
  { name: 'an escaped letter', member: '"\\u004dodel":"up-chat/big"', named: 'Model' },
  { name: 'a Kelvin sign', member: '"max_to\u212aens":100000', named: 'max_to\u212aens' },
  { name: 'an escaped Kelvin sign', member: '"max_to\\u212aens":1', named: 'max_to\u212aens' },
  { name: 'a long s', member: '"me\u017fſages":[]', named: 'me\u017fſages' },
  { name: 'a dotless i', member: '"serv\u0131ce_tier":"x"', named: 'serv\u0131ce_tier' },
  { name: 'an I with a dot', member: '"SERV\u0130CE_TIER":"x"', named: 'SERV\u0130CE_TIER' },
  { name: 'the camel case of protocol buffers', member: '"maxTokens":9', named: 'maxTokens' },
  { name: 'no underscore', member: '"maxtokens":9', named: 'maxtokens' },
  { name: 'other models', member: '"Models":["a/b"]', named: 'Models' },
  { name: 'fallbacks', member: '"FALLBACKS":["a/b"]', named: 'FALLBACKS' },
  { name: 'plugins', member: '"Plugins":[{"id":"web"}]', named: 'Plugins' },
  { name: 'a stream', member: '"Stream":true', named: 'Stream' },
  { name: 'tools', member: '"toolS":[]', named: 'toolS' },
  { name: 'a live search', member: '"Search_Parameters":{}', named: 'Search_Parameters' },
  {
    name: 'the mode of a live search',
    member: '"search_parameters":{"mode":"off","Mode":"on"}',
    named: 'search_parameters.Mode',
  },
  {
    name: 'the hosts of a model',
    member: '"provider":{"Order":["dearest"]}',
    named: 'provider.Order',
  },
  {
    name: 'a compaction',
    member: '"context_management":{"edits":[{"Type":"compact_1"}]}',
    named: 'context_management.edits.0.Type',
  },
  { name: 'thinking', member: '"Thinking":{"type":"enabled"}', named: 'Thinking' },
  {
    name: 'a budget inside thinking',
    member: '"thinking":{"type":"adaptive","Budget_Tokens":9}',
    named: 'thinking.Budget_Tokens',
  },
  {
    name: 'the content of a message',
    behind: '{"role":"user",',
    member: '"Content":"More","content":"Hello"',
    named: 'messages.0.Content',
  },
  {
    name: 'the kind of a tool',
    member: '"tools":[{"Type":"web_search","name":"f","type":"web_search_20250305"}]',
    named: 'tools.0.Type',
  },
  {
    name: 'a model that a tool asks',
    member: '"tools":[{"type":"advisor_1","name":"f","Model":"big"}]',
    named: 'tools.0.Model',
  },
];

/** What a Responses request calls otherwise, or does not have. */
const renamed: ReadonlySet<string> = new Set([
  'all upper case',
  'a long s',
  'a Kelvin sign',
  'an escaped Kelvin sign',
  'the camel case of protocol buffers',
  'no underscore',
  'thinking',
  'a budget inside thinking',
  'the content of a message',
]);

const attacks: { readonly [D in ClientDialect]: readonly Attack[] } = {
  chat: [
    ...everywhere,
    { name: 'the newer cap', member: '"Max_Completion_Tokens":9', named: 'Max_Completion_Tokens' },
    { name: 'choices', member: '"N":8', named: 'N' },
    {
      name: 'asked usage',
      member: '"stream_options":{"Include_Usage":true}',
      named: 'stream_options.Include_Usage',
    },
    {
      name: 'a budget of reasoning',
      member: '"reasoning":{"Max_Tokens":9}',
      named: 'reasoning.Max_Tokens',
    },
    {
      name: 'an address',
      behind: '{"role":"user",',
      member:
        '"content":[{"type":"image_url","image_url":{"url":"https://a.example/a.png","URL":"http://127.0.0.1"}}]',
      named: 'messages.0.content.0.image_url.URL',
    },
  ],
  messages: [
    ...everywhere,
    { name: 'instructions', member: '"System":"Be bad."', named: 'System' },
    {
      name: 'an address',
      behind: '{"role":"user",',
      member:
        '"content":[{"type":"image","source":{"type":"url","url":"https://a.example/a.png","Url":"http://127.0.0.1"}}]',
      named: 'messages.0.content.0.source.Url',
    },
  ],
  responses: [
    ...everywhere.filter(({ name }) => !renamed.has(name)),
    { name: 'the input', member: '"INPUT":[]', named: 'INPUT' },
    { name: 'a long s', member: '"in\u017ftructions":"Be bad."', named: 'in\u017ftructions' },
    {
      name: 'a Kelvin sign',
      member: '"max_output_to\u212aens":9',
      named: 'max_output_to\u212aens',
    },
    { name: 'camel case', member: '"maxOutputTokens":9', named: 'maxOutputTokens' },
    { name: 'what is kept', member: '"Store":true', named: 'Store' },
    {
      name: 'what it goes on from',
      member: '"Previous_Response_Id":"resp_1"',
      named: 'Previous_Response_Id',
    },
    { name: 'effort', member: '"reasoning":{"Effort":"high"}', named: 'reasoning.Effort' },
    {
      name: 'the content of a message',
      behind: '{"role":"user",',
      member: '"Content":"More","content":"Hello"',
      named: 'input.0.Content',
    },
    {
      name: 'an address',
      behind: '{"role":"user",',
      member:
        '"content":[{"type":"input_image","image_url":"https://a.example/a.png","Image_URL":"http://127.0.0.1"}]',
      named: 'input.0.content.0.Image_URL',
    },
  ],
};

/** By the readers of bodies: at once, outlined, in the worker thread. */
const sizes = { short: 0, outlined: 20_000, long: 1_200_000 } as const;

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

function attacked(body: JsonObject, { member, behind }: Attack, size: keyof typeof sizes): string {
  const padded = {
    ...body,
    ...(sizes[size] === 0 ? {} : { stop: undefined, padding: 'x'.repeat(sizes[size]) }),
  };
  const text = JSON.stringify(padded);
  if (behind === undefined) return `${text.slice(0, -1)},${member}}`;
  const at = text.indexOf(behind) + behind.length;
  const end = text.indexOf('}', at);
  return text.slice(0, at) + member + text.slice(end);
}

for (const [i, { client: dialect, upstream }] of pairs.entries()) {
  for (const [j, size] of (['short', 'outlined', 'long'] as const).entries()) {
    describe(`${dialect} on ${upstream}, ${size}`, () => {
      // `npm test` plays one in thirteen, at another size with the next pair and the next attack.
      for (const attack of attacks[dialect].filter((_, k) => isInSample(i + j + k, 13))) {
        test(`X-1 ${attack.name}`, async () => {
          const { model, script } = rig.play(upstream, replying(upstream, { text: 'Hello' }));
          const legal = requestBody(dialect, { model, stream: false });
          const reply = await ask(rig, dialect, attacked(legal, attack, size));
          assert.equal(reply.status, 400, reply.text);
          assert.equal(script.requests.length, 0, 'no upstream call');
          const { message } = assertErrorBody(dialect, reply.json);
          assert.match(String(message), /is read as/);
          const named = attack.named.split('.').at(-1) ?? '';
          assert.ok(String(message).includes(`"${named}"`), reply.text);
          const spelled = attack.named.replace(/\.(\d+)/g, dialect === 'messages' ? '.$1' : '[$1]');
          assert.ok(reply.text.includes(JSON.stringify(spelled).slice(1, -1)), reply.text);
        });
      }
    });
  }
}

test('X-1 a count of tokens is refused alike', async () => {
  const { model } = rig.play('messages', { body: '{"input_tokens":7}' });
  const { max_tokens: _, ...asked } = requestBody('messages', { model, stream: false });
  const url = `${rig.gateway.url}/v1/messages/count_tokens`;
  const reply = await send(url, `${JSON.stringify(asked).slice(0, -1)},"Model":"big"}`);
  assert.equal(reply.status, 400, reply.text);
});

const harmless: JsonObject = {
  tools: [],
  parallelToolCalls: true,
  promptCacheKey: 'a',
  num_ctx: 8,
  Other: { Model: 'x', model: 'y' },
  metadata: { Model: 'a', user_id: 'b' },
};

for (const dialect of clientDialects) {
  test(`X-1 ${dialect}: names of others, and names in schemas and inputs, pass`, async () => {
    const { model, script } = rig.play(dialect, replying(dialect, { text: 'Hello' }));
    const schema = {
      type: 'object',
      properties: { Model: { type: 'string' }, Type: { type: 'string' } },
    };
    const tools = [tool(dialect, 'f', schema)];
    const body = requestBody(dialect, { model, stream: false, more: { ...harmless, tools } });
    for (const padding of ['', 'x'.repeat(sizes.outlined), 'x'.repeat(sizes.long)]) {
      const reply = await ask(rig, dialect, { ...body, padding });
      assert.equal(reply.status, 200, reply.text);
    }
    assert.equal(script.requests.length, 3);
  });
}

/** Objects that nothing is decided by: who reads their names otherwise gets what is carried on anyway. */
const carried =
  /citations|^(thread|billing_policy|prediction|audio|prompt_cache_options|moderation|container|mcp_servers|fallback_credit_token|context_management|compaction|diagnostics|logit_bias)\.|messages\.\d+\.audio\.|(approximate|grammar|input_examples|block_binding|task_budget)\b/;
/** The same of the Responses API: templates, and tools that the provider runs. */
const hosted =
  /^(prompt|image|client_metadata|access_programs)\b|^tools\.\d+\.(output_schema|container|environment|async|vector_store_ids|server_url|server_label|display_(width|height))\b/;
/** Known to their vendor only. */
const foreign: ReadonlySet<string> = new Set([
  'made_up',
  'toolset_name',
  'max_characters',
  'allowed_domains',
  'response_inclusion',
  'use_cache',
  'mcp_server_name',
  'display_height_px',
  'display_width_px',
]);

function refused(dialect: ClientDialect, body: JsonObject): boolean {
  try {
    clients[dialect].names.check({ skeleton: body, spans: new Map(), lacks: () => false });
    return false;
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return true;
  }
}

/** Blocks that vendors wrote themselves, and blocks inside of them. */
function isForeignBlock(
  dialect: ClientDialect,
  body: JsonObject,
  path: readonly (string | number)[],
): boolean {
  if (dialect !== 'messages' || path[0] !== 'messages' || path[2] !== 'content') return false;
  let block: unknown = body;
  for (const step of path.slice(0, 4)) block = Reflect.get(Object(block), step);
  const type = String(Reflect.get(Object(block), 'type'));
  const inner = String(Reflect.get(Object(at(body, path)), 'type'));
  return (
    /_tool_use$|.+_tool_result$|upload$|listing$|^fallback$|browser_state/.test(`${type}`) ||
    inner === 'browser_state' ||
    path.includes('tabs')
  );
}

function at(body: JsonObject, path: readonly (string | number)[]): unknown {
  let value: unknown = body;
  for (const step of path) value = Reflect.get(Object(value), step);
  return value;
}

for (const dialect of clientDialects) {
  test(`X-1 ${dialect}: every field of the API has no twin, in every object of every sample`, () => {
    let seen = 0;
    for (const [id, { sends }] of Object.entries(corpus[dialect])) {
      const more: JsonObject = { ...sends };
      const body = requestBody(dialect, { model: 'm', stream: false, more });
      assert.ok(!refused(dialect, body), id);
      for (const { path, value } of objectsIn(body)) {
        for (const key of Object.keys(value)) {
          const name = [...path, key].join('.');
          if (carried.test(name) || foreign.has(key) || isForeignBlock(dialect, body, path))
            continue;
          if (dialect === 'responses' && hosted.test(name)) continue;
          seen += 1;
          const twin = withMember(body, path, [key.toUpperCase(), 1]);
          assert.ok(refused(dialect, twin), `${id}: ${name}`);
        }
      }
    }
    assert.ok(seen > 500, String(seen));
  });
}

/** What the shared readers look for and no server of this dialect has. */
const elsewhere: { readonly [D in ClientDialect]: readonly string[] } = {
  chat: ['prompt'],
  messages: ['prompt'],
  responses: ['messages', 'thinking'],
};

for (const dialect of clientDialects) {
  test(`X-1 ${dialect}: whatever the gateway reads at the top has no twin`, () => {
    const read = new Set<string>();
    const watched = (body: JsonObject): JsonObject =>
      new Proxy(body, {
        get: (target, key): Json | undefined => {
          read.add(String(key));
          return typeof key === 'string' ? target[key] : undefined;
        },
      });
    const body = requestBody(dialect, { model: 'm', stream: true });
    const client = clients[dialect];
    client.readHead(watched(body));
    client.readRequest(watched(body), { lost: () => undefined, changed: () => undefined });
    const request = client.describe({ value: watched(body), skeleton: watched(body) });
    request.prompt();
    request.otherModels();
    request.endUser();
    request.metadata();
    request.serviceTier();
    request.expensiveTierMember();
    request.searches(true);
    const twinless = [...read, ...expensiveMembers].filter(
      (name) => !refused(dialect, { ...body, [name.toUpperCase()]: 1 }),
    );
    assert.deepEqual(twinless, elsewhere[dialect]);
    assert.ok(read.size > 20, String(read.size));
  });
}
