/** Real calls of every kind, so that the pages have something to show: none of it is written by hand. */
import type { JsonObject } from '../../src/json/value.ts';
import { requestBody } from '../support/requests.ts';
import { errorIn, plainUsage, replying } from '../upstream/reply.ts';
import type { Scripted } from '../upstream/scripted.ts';
import { oddText, xss, xssText } from './names.ts';
import type { Stage } from './stage.ts';
import { longest } from './stretched.ts';

/** Config of a stage whose world is played: routes with dangerous names, prices, teams. */
export const worldConfig: JsonObject = {
  models: Object.fromEntries(
    [...xss('model'), longest('model')].map((name) => [name, 'up-chat/odd']),
  ),
  prices: {
    'up-chat/*': { input: 2.5, output: 10, cache_read: 0.25 },
    'up-messages/*': { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
  },
  teams: {
    research: { budget: 50, per: 'month' },
    [xssText('team').slice(0, 200)]: { rpm: 100 },
    [longest('team')]: { rpm: 100 },
  },
};

/** Names under which the calls of the world were made. */
export interface World {
  /** How many calls, refused ones included. */
  readonly calls: number;
  /** Of the key whose name, team and users are the corpus. */
  readonly oddKey: string;
}

/** Fails over: the first target has no room. */
const overloaded = errorIn('chat', 503, `no room ${xssText('upstream-error')}`);

/**
 * Plays the world on a stage that has `worldConfig`: real generation by `local/tiny`, both dialects,
 * streams, translations, fallbacks, failures, cut streams, refusals, and the corpus in every place
 * that takes a text.
 */
export async function playWorld(stage: Stage): Promise<World> {
  const { chat, messages } = stage.upstreams;
  const text = (said: string, output = 120): Scripted =>
    replying('chat', { text: said, usage: { ...plainUsage, fresh: 900, output } });
  chat.script('steady', text('All is well.'));
  chat.script('odd', text(`${xssText('answer')} ${oddText}`));
  chat.script('primary', overloaded);
  chat.script('cut', {
    body: ['data: {"choices":[{"index":0,"delta":{"content":"half'],
    ending: 'reset',
  });
  chat.script('refusing', errorIn('chat', 400, xssText('refusal')));
  messages.script('spare', replying('messages', { text: 'The spare one says hello.' }));
  const { keys, calls } = await playKeys(stage);
  const plain: readonly Asked[] = [
    ...['local/tiny', 'steady', 'steady', 'fast', 'fast', 'up-messages/spare'].flatMap((model) => [
      { model, stream: false },
      { model, stream: true },
    ]),
    { model: 'up-chat/cut', stream: true },
    { model: 'up-chat/refusing', stream: false },
    { model: `nobody-has-${xss('unknown')[0]}`, stream: false },
  ];
  const odd = [...xss('model'), longest('model')].map((model) => ({ model, stream: false }));
  for (const asked of plain) await ask(stage, asked);
  await ask(stage, { model: 'local/tiny', stream: true, messages: true });
  await ask(stage, { model: 'steady', stream: true, messages: true });
  for (const [index, asked] of odd.entries()) {
    const user = xss('user')[index] ?? longest('user');
    await ask(stage, { ...asked, user, key: keys.odd });
  }
  await ask(stage, { model: 'steady', stream: false, user: oddText, key: keys.odd });
  return { calls: calls + plain.length + 2 + odd.length + 1, oddKey: keys.oddId };
}

interface Asked {
  readonly model: string;
  readonly stream: boolean;
  readonly messages?: true;
  readonly user?: string;
  readonly key?: string;
}

async function ask(stage: Stage, { model, stream, messages, user, key }: Asked): Promise<void> {
  const dialect = messages === true ? 'messages' : 'chat';
  const path = messages === true ? '/v1/messages' : '/v1/chat/completions';
  const more = {
    max_tokens: 64,
    ...(user === undefined ? {} : { user }),
    messages: [
      { role: 'user', content: `Say hello. ${user === undefined ? '' : xssText('prompt')}` },
    ],
  };
  await stage.call(path, requestBody(dialect, { model, stream, more }), {
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      'x-gateway-tags': 'nightly',
    },
  });
}

/** Keys with dangerous names, a rate limit that is hit, a budget that is used, one that is revoked. */
async function playKeys({ gateway }: Stage): Promise<{
  readonly keys: { readonly odd: string; readonly oddId: string };
  readonly calls: number;
}> {
  const odd = await gateway.makeKey({
    name: xssText('key').slice(0, 200),
    team: xssText('team').slice(0, 200),
    owner: xss('owner')[0] ?? '',
    tags: [xss('tag')[0] ?? ''],
  });
  await gateway.makeKey({
    name: longest('key'),
    team: longest('team'),
    owner: longest('owner'),
    tags: [longest('tag')],
  });
  const slow = await gateway.makeKey({ name: 'one a minute', rpm: 1, team: 'research' });
  const paying = await gateway.makeKey({
    name: 'nightly batch',
    team: 'research',
    budget: 20,
    per: 'month',
    models: ['steady', 'fast'],
  });
  const gone = await gateway.makeKey({ name: 'left the company', expires_in: '30d' });
  await gateway.admin('POST', `/api/keys/${gone.id}/revoke`);
  let calls = 0;
  for (const { key, model } of [
    { key: slow.key, model: 'steady' },
    { key: slow.key, model: 'steady' },
    { key: paying.key, model: 'steady' },
    { key: paying.key, model: 'fast' },
    { key: paying.key, model: 'local/tiny' },
  ]) {
    await gateway.chat(key, { model, max_tokens: 64 });
    calls += 1;
  }
  return { keys: { odd: odd.key, oddId: odd.id }, calls };
}
