/** What the config says of an address: whose ways hold there, which betas go there, where it runs. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { requestBody } from '../support/requests.ts';
import { startVendors, type Asked, type Vendors } from '../support/vendors.ts';

const fastMode = 'fast-mode-2026-02-01';
let vendors: Vendors;
before(async () => {
  const chat = { dialect: 'openai-chat' };
  const messages = { dialect: 'anthropic-messages' };
  vendors = await startVendors({
    'team-vllm': { speaks: 'chat', config: { ...chat, like: 'vllm' } },
    plain: { speaks: 'chat', config: chat },
    frankfurt: { speaks: 'chat', config: { ...chat, region: 'eu' } },
    openai: { speaks: 'chat' },
    anthropic: { speaks: 'messages' },
    choosy: { speaks: 'messages', config: { ...messages, betas: ['known', fastMode] } },
    proxy: { speaks: 'messages', config: { ...messages, like: 'anthropic' } },
  });
});
after(() => vendors.stop());

function fromMessages(model: string, more: JsonObject, betas?: string): Promise<Asked> {
  const headers = betas === undefined ? {} : { headers: { 'anthropic-beta': betas } };
  return vendors.ask('messages', requestBody('messages', { model, stream: false, more }), headers);
}

function fromChat(model: string, more: JsonObject): Promise<Asked> {
  return vendors.ask('chat', requestBody('chat', { model, stream: false, more }));
}

describe('like: the ways of a known vendor at an address of one’s own', () => {
  test('§4.2 an engine gets the switch in its template, an unknown server in words', async () => {
    const off = { thinking: { type: 'disabled' }, top_k: 4 };
    const engine = (await fromMessages('team-vllm/qwen3', off)).received?.json;
    assert.deepEqual(engine?.['chat_template_kwargs'], { enable_thinking: false });
    assert.equal(engine['top_k'], 4);
    const unknown = (await fromMessages('plain/qwen3', off)).received?.json;
    assert.equal(unknown?.['reasoning_effort'], 'low');
    assert.equal(unknown['top_k'], undefined);
  });

  test('A6 what is like Anthropic gets the billing line', async () => {
    const system = [{ type: 'text', text: 'x-anthropic-billing-header: cch=1' }];
    const { received } = await fromMessages('proxy/any-name', { system });
    assert.deepEqual(received?.json['system'], system);
  });
});

describe('A5 anthropic-beta', () => {
  test('all values go to Anthropic, and to addresses that say nothing', async () => {
    for (const model of ['anthropic/claude-opus-5', 'proxy/m']) {
      const { received } = await fromMessages(model, {}, 'known,unknown-2099-01-01');
      assert.equal(received?.header('anthropic-beta'), 'known,unknown-2099-01-01');
    }
  });

  test('only those that an address takes, where it says so', async () => {
    const { received } = await fromMessages('choosy/m1', {}, 'unknown-2099-01-01, known');
    assert.equal(received?.header('anthropic-beta'), 'known');
    const { received: none } = await fromMessages('choosy/m1', {}, 'unknown-2099-01-01');
    assert.equal(none?.header('anthropic-beta'), undefined);
  });

  test('none goes to upstreams of the other dialect', async () => {
    const { reply, received } = await fromMessages('plain/m2', {}, 'known');
    assert.equal(received?.header('anthropic-beta'), undefined);
    assert.equal(reply.headers['x-gateway-notes'], undefined);
  });
});

describe('§1.1 §2.1 tiers and speed', () => {
  test('fast is fast where the account has it, with the beta that it needs', async () => {
    const open = (await fromChat('choosy/claude-opus-5', { service_tier: 'fast' })).received;
    assert.equal(open?.json['speed'], 'fast');
    assert.equal(open.header('anthropic-beta'), fastMode);
    const { reply, received } = await fromChat('anthropic/claude-opus-5-5', {
      service_tier: 'fast',
    });
    assert.equal(received?.json['speed'], undefined);
    assert.equal(received?.json['service_tier'], 'auto');
    assert.equal(received?.header('anthropic-beta'), undefined);
    assert.match(String(reply.headers['x-gateway-notes']), /^service_tier: dropped/);
  });

  test('speed fast is the fast tier of OpenAI', async () => {
    const { received } = await fromMessages('openai/gpt-5', { speed: 'fast' });
    assert.equal(received?.json['service_tier'], 'fast');
  });
});

describe('§2.1 inference_geo is a promise', () => {
  test('kept where the address is declared to be there, refused elsewhere', async () => {
    const kept = await fromMessages('frankfurt/m3', { inference_geo: 'eu' });
    assert.equal(kept.reply.status, 200, kept.reply.text);
    const refused = await fromMessages('frankfurt/m3', { inference_geo: 'us' });
    assert.equal(refused.reply.status, 400);
    assert.match(refused.reply.text, /inference_geo/);
    assert.equal(refused.received, undefined);
  });
});

test('G2 prompt_cache_key is passed on to a chat upstream and means nothing to a messages one', async () => {
  const relayed = await fromChat('plain/m4', { prompt_cache_key: 'k' });
  assert.equal(relayed.received?.json['prompt_cache_key'], 'k');
  const translated = await fromChat('anthropic/claude-haiku-4-5', { prompt_cache_key: 'k' });
  assert.equal(translated.received?.json['prompt_cache_key'], undefined);
  assert.equal(translated.reply.headers['x-gateway-notes'], undefined);
});
