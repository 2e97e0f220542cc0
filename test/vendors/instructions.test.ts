/**
 * C1: engines, servers that behave like one, and servers that nothing is known of apply templates of open models. These
 * take one system message, in front, and turns that alternate; what Claude Code sends is answered all the same.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { type ClientDialect, clientDialects } from '../support/dialects.ts';
import { listAt } from '../support/reading.ts';
import { startVendors, type Vendors } from '../support/vendors.ts';

const dialect = { dialect: 'openai-chat' } as const;
const engines = ['vllm', 'llama-cpp', 'lm-studio', 'ollama'] as const;
const hosts = ['together', 'fireworks', 'qwen'] as const;
const likes = Object.fromEntries(
  engines.map((like) => [`my-${like}`, { speaks: 'chat' as const, config: { ...dialect, like } }]),
);
const strictServers = [...engines, ...Object.keys(likes), ...hosts, 'unknown'];
const openServers = ['openai', 'groq', 'deepseek', 'xai', 'cerebras', 'gemini-compatible'];

let vendors: Vendors;
before(async () => {
  const known = [...engines, ...hosts, ...openServers, 'mistral'];
  vendors = await startVendors({
    ...Object.fromEntries(known.map((id) => [id, { speaks: 'chat' as const }])),
    ...likes,
    unknown: { speaks: 'chat', config: dialect },
  });
});
after(() => vendors.stop());

const user = (content: string) => ({ role: 'user', content });
const system = (content: string) => ({ role: 'system', content });
const assistant = (content: string) => ({ role: 'assistant', content });

/** As Claude Code sends them: behind the first question, and behind later ones. */
const conversation = [
  user('Hi.'),
  system('Be brief.'),
  assistant('Hello.'),
  user('What now?'),
  system('Use UTC.'),
  assistant('Noon.'),
  user('And now?'),
];

const agent = 'You are an agent.';

/** The member that has the conversation, and where the instructions between its turns stand in it. */
const places = {
  chat: { member: 'messages', early: 2, late: 5 },
  messages: { member: 'messages', early: 1, late: 4 },
  responses: { member: 'input', early: 1, late: 4 },
} as const;

function requestOf(client: ClientDialect, model: string): JsonObject {
  switch (client) {
    case 'chat':
      return { model, messages: [system(agent), ...conversation] };
    case 'messages':
      return { model, max_tokens: 100, system: agent, messages: conversation };
    case 'responses':
      return { model, instructions: agent, input: conversation };
    default:
      return client satisfies never;
  }
}

/** Whatever form its content has. */
function saidIn({ role, content }: JsonObject): readonly [unknown, string] {
  if (typeof content === 'string') return [role, content];
  const texts = listAt({ content: content ?? null }, 'content').map(({ text }) => String(text));
  return [role, texts.join('\n\n')];
}

for (const client of clientDialects) {
  const { member, early, late } = places[client];
  describe(`${client} client`, () => {
    for (const id of [...strictServers, 'mistral']) {
      test(`C1 ${id}: one system message in front, alternating turns, a note`, async () => {
        const { reply, received } = await vendors.ask(client, requestOf(client, `${id}/c1-${id}`));
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(listAt(received?.json ?? {}, 'messages').map(saidIn), [
          ['system', `${agent}\n\nBe brief.`],
          ['user', 'Hi.'],
          ['assistant', 'Hello.'],
          ['user', 'What now?\n\n<system>\nUse UTC.\n</system>'],
          ['assistant', 'Noon.'],
          ['user', 'And now?'],
        ]);
        const notes = String(reply.headers['x-gateway-notes']);
        assert.match(notes, new RegExp(`${member}\\.${early}: changed, instructions stand`));
        assert.match(notes, new RegExp(`${member}\\.${late}: changed, instructions after`));
      });

      test(`C1 ${id}: what was in front stays there when the conversation grows`, async () => {
        const model = `${id}/grows-${id}`;
        const whole = requestOf(client, model);
        const turns = listAt(whole, member).slice(0, late + 1);
        const first = await vendors.ask(client, { ...whole, [member]: turns });
        const second = await vendors.ask(client, whole);
        const [earlier, later] = [first, second].map(({ received }) =>
          listAt(received?.json ?? {}, 'messages').map(saidIn),
        );
        assert.deepEqual(later?.slice(0, earlier?.length), earlier);
      });
    }

    // OpenAI is asked by its Responses API there, which is another server.
    const asked = openServers.filter((id) => client !== 'responses' || id !== 'openai');
    for (const id of asked) {
      test(`C1 ${id} takes them in place, without a note`, async () => {
        const { reply, received } = await vendors.ask(client, requestOf(client, `${id}/c1-${id}`));
        assert.equal(reply.status, 200, reply.text);
        const roles = listAt(received?.json ?? {}, 'messages').map(({ role }) =>
          role === 'developer' ? 'system' : role,
        );
        assert.deepEqual(roles, ['system', ...conversation.map(({ role }) => role)]);
        assert.doesNotMatch(String(reply.headers['x-gateway-notes'] ?? ''), /instructions/);
      });
    }
  });
}
