/**
 * D1 D7: a conversation that goes from vendor to vendor and back, with the message objects of the official SDKs as
 * they are. No vendor refuses it, none sees what another one thought, and each gets its own back.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { isInSample } from '../support/depth.ts';
import { clientKey } from '../support/keys.ts';
import { listAt } from '../support/reading.ts';
import { messagesAnswer } from '../upstream/messages.ts';
import type { Received } from '../upstream/scripted.ts';
import type { VendorRules } from './rules.ts';
import { callAnswer, newTurn, type SpokenTurn } from './speakers.ts';
import { said, startStrictVendors, type StrictVendors } from './strict.ts';
import { anthropic, vendors } from './tables.ts';

/** Models that think, one of each vendor. */
const thinkers = [
  ...vendors.filter(({ model }) => !/^(gpt-4o|llama-3|gemini-2)/.test(model)),
  anthropic,
];

let strict: StrictVendors;
/** What each vendor is about to say. */
const spoken = new Map<string, SpokenTurn>();

before(async () => {
  strict = await startStrictVendors((rules, request) => {
    const turn = spoken.get(rules.model);
    if (turn !== undefined) return callAnswer(rules, turn, request);
    if (rules === anthropic) {
      return messagesAnswer({ text: 'ok' }, request.json['stream'] === true);
    }
    return said({ text: 'ok' }, request);
  });
});
after(() => strict.stop());

/** Sends the history and gives the answer as the message object that the next request holds. */
type Asking = (model: string, history: readonly JsonObject[]) => Promise<JsonObject>;

interface Client {
  readonly name: string;
  readonly ask: Asking;
  /** The message that answers the call of an assistant message. */
  result(message: JsonObject): JsonObject;
  /** Reasoning in members that the SDK's types do not know comes back whole. */
  readonly keepsAll: boolean;
}

const parameters = { type: 'object' as const, properties: { zone: { type: 'string' } } };
const tools = [{ type: 'function' as const, function: { name: 'get_time', parameters } }];
const messagesTools = [{ name: 'get_time', input_schema: parameters }];

function asJson(value: object | null | undefined): JsonObject {
  return tryParseObject(JSON.stringify(value ?? {})) ?? {};
}

function chatClient(): OpenAI {
  return new OpenAI({ baseURL: `${strict.gateway.url}/v1`, apiKey: clientKey, maxRetries: 0 });
}

function messagesClient(): Anthropic {
  return new Anthropic({ baseURL: strict.gateway.url, apiKey: clientKey, maxRetries: 0 });
}

/** A history of earlier answers, whatever the SDK's types know of it. */
function given<T>(history: readonly JsonObject[]): T[] {
  const messages: T[] = JSON.parse(JSON.stringify(history));
  return messages;
}

function chatResult(message: JsonObject): JsonObject {
  const [call] = listAt(message, 'tool_calls');
  return { role: 'tool', tool_call_id: call?.['id'] ?? '', content: 'noon' };
}

function messagesResult(message: JsonObject): JsonObject {
  const used = listAt(message, 'content').find(({ type }) => type === 'tool_use');
  const result = { type: 'tool_result', tool_use_id: used?.['id'] ?? '', content: 'noon' };
  return { role: 'user', content: [result] };
}

const clients: readonly Client[] = [
  {
    name: 'openai create',
    keepsAll: true,
    result: chatResult,
    ask: async (model, history) => {
      const messages = given<OpenAI.ChatCompletionMessageParam>(history);
      const answer = await chatClient().chat.completions.create({ model, messages, tools });
      return asJson(answer.choices[0]?.message);
    },
  },
  {
    name: 'openai stream helper',
    keepsAll: false,
    result: chatResult,
    ask: async (model, history) => {
      const messages = given<OpenAI.ChatCompletionMessageParam>(history);
      const stream = chatClient().chat.completions.stream({ model, messages, tools });
      return asJson((await stream.finalChatCompletion()).choices[0]?.message);
    },
  },
  {
    name: '@anthropic-ai/sdk create',
    keepsAll: true,
    result: messagesResult,
    ask: async (model, history) => {
      const messages = given<Anthropic.MessageParam>(history);
      const body = { model, messages, tools: messagesTools, max_tokens: 1000 };
      const { role, content } = await messagesClient().messages.create(body);
      return asJson({ role, content });
    },
  },
  {
    name: '@anthropic-ai/sdk stream helper',
    keepsAll: true,
    result: messagesResult,
    ask: async (model, history) => {
      const messages = given<Anthropic.MessageParam>(history);
      const body = { model, messages, tools: messagesTools, max_tokens: 1000 };
      const { role, content } = await messagesClient().messages.stream(body).finalMessage();
      return asJson({ role, content });
    },
  },
];

interface Turn {
  readonly turn: SpokenTurn;
  readonly message: JsonObject;
  readonly received: Received;
}

async function askVendor(
  client: Client,
  rules: VendorRules,
  history: readonly JsonObject[],
  turn?: SpokenTurn,
): Promise<Omit<Turn, 'turn'>> {
  const script = strict.script(rules);
  const before = script.requests.length;
  if (turn !== undefined) spoken.set(rules.model, turn);
  const message = await client.ask(`${rules.provider}/${rules.model}`, history);
  spoken.delete(rules.model);
  assert.deepEqual(strict.refusals(rules), [], `${rules.provider} refused nothing`);
  assert.equal(script.requests.length, before + 1, `${rules.provider} was asked once`);
  return { message, received: await script.request(before) };
}

/** Both serve models of one maker, which read each other's signatures (D7). */
function isFamily(a: VendorRules, b: VendorRules): boolean {
  return a.reads !== undefined && a.reads === b.reads;
}

/** What one turn thought is not shown to another vendor, sealed or not. */
function assertHidden(turn: SpokenTurn, received: Received): void {
  const body = received.body.toString();
  assert.ok(!body.includes(turn.thought.slice(0, 13)), `${turn.thought} is shown: ${body}`);
  assert.ok(!body.includes(turn.signature), `${turn.signature} is shown`);
}

async function goAndReturn(client: Client, a: VendorRules, b: VendorRules): Promise<void> {
  const question = { role: 'user', content: 'What time is it?' };
  const [mine, others] = [newTurn(a), newTurn(b)];
  const first = await askVendor(client, a, [question], mine);
  const told = [question, first.message, client.result(first.message)];
  const second = await askVendor(client, b, told, others);
  if (!isFamily(a, b)) assertHidden(mine, second.received);
  const all = [...told, second.message, client.result(second.message)];
  const third = await askVendor(client, a, all);
  if (!isFamily(a, b)) assertHidden(others, third.received);
  const back = third.received.body.toString();
  const { wants } = a;
  if (wants === undefined || (!client.keepsAll && wants === 'kept')) return;
  const own = a.provider === 'gemini-compatible' ? mine.signature : mine.thought;
  assert.ok(back.includes(own), `${a.provider} gets ${own} back: ${back}`);
}

for (const [i, a] of thinkers.entries()) {
  describe(`${a.provider}/${a.model}`, () => {
    for (const [j, b] of thinkers.entries()) {
      if (a === b) continue;
      // `npm test` plays half of the pairs of vendors, with a client that changes from pair to pair.
      const now = clients.filter((_, k) => isInSample(i + j + k, 2 * clients.length + 1));
      if (now.length === 0) continue;
      test(`D1 D7 there, at ${b.provider} and back`, async () => {
        for (const client of now) {
          await assert.doesNotReject(goAndReturn(client, a, b), client.name);
        }
      });
    }
  });
}
