/** Calls as a team makes them, for pictures of the pages: plain names, several models, a few failures. */
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { requestBody } from '../support/requests.ts';
import { errorIn, plainUsage, replying } from '../upstream/reply.ts';
import type { Stage } from './stage.ts';

export const dayConfig: JsonObject = {
  models: {
    assistant: { targets: ['up-messages/large', 'up-chat/medium'] },
    summaries: 'up-chat/small',
  },
  prices: {
    'up-chat/*': { input: 0.4, output: 1.6, cache_read: 0.1 },
    'up-messages/*': { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
  },
  teams: { research: { budget: 50, per: 'month' } },
};

const keys = [
  { name: 'support-bot', team: 'support', models: ['*'], rpm: 600, budget: 20, per: 'month' },
  { name: 'nightly-summaries', team: 'research', models: ['summaries'], budget: 5, per: 'day' },
  { name: 'notebooks', team: 'research', models: ['*'], tpm: 500_000 },
  { name: 'ci', models: ['local/*'], expires_in: '30d' },
] as const;

const rounds = 40;

/** Plays it: the calls of all keys beside each other. */
export async function playDay(stage: Stage): Promise<void> {
  const { chat, messages } = stage.upstreams;
  const usage = { ...plainUsage, fresh: 1800, cacheRead: 4200, output: 420 };
  const said = 'The order was shipped on Monday and arrives within two days.';
  messages.script(
    'large',
    ...Array.from({ length: rounds }, (_, index) =>
      index % 9 === 4
        ? errorIn('messages', 529, 'Overloaded')
        : replying('messages', { text: said, usage }),
    ),
  );
  chat.script('medium', replying('chat', { text: said, usage }));
  chat.script(
    'small',
    replying('chat', { text: 'Three points matter.', usage: { ...usage, output: 90 } }),
  );
  const made = [];
  for (const input of keys)
    made.push(await stage.gateway.makeKey({ ...input, models: [...input.models] }));
  const [support = stage.key, nightly = stage.key, notebooks = stage.key, ci = stage.key] = made;
  for (let round = 0; round < rounds; round += 1) {
    const stream = round % 3 !== 0;
    await Promise.all([
      ask(stage, support.key, { model: 'assistant', stream, user: `customer-${round % 7}` }),
      ask(stage, notebooks.key, { model: 'assistant', stream: true, messages: true }),
      ask(stage, nightly.key, { model: 'summaries', stream: false }),
      round % 8 === 0 ? ask(stage, ci.key, { model: 'local/tiny', stream }) : undefined,
      round % 13 === 0 ? ask(stage, ci.key, { model: 'assistant', stream }) : undefined,
    ]);
  }
}

interface Asked {
  readonly model: string;
  readonly stream: boolean;
  readonly messages?: true;
  readonly user?: string;
}

async function ask({ gateway }: Stage, key: string, asked: Asked): Promise<void> {
  const { model, stream, user } = asked;
  const dialect = asked.messages === true ? 'messages' : 'chat';
  const path = dialect === 'messages' ? '/v1/messages' : '/v1/chat/completions';
  const more = { max_tokens: 512, ...(user === undefined ? {} : { user }) };
  await send(gateway.url + path, requestBody(dialect, { model, stream, more }), {
    headers: { authorization: `Bearer ${key}` },
  });
}
