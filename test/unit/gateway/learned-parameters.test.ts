/** B9: what the 400s of real servers say about a model, in their own words. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/core/conversation.ts';
import type { UpstreamDialect } from '../../../src/core/dialect.ts';
import type { Target } from '../../../src/core/provider.ts';
import { chatTraits, messagesTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { correctionFor, LearnedParameters } from '../../../src/gateway/learned-parameters.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { chatRows, openai, type Row } from './chat-refusals.ts';
import { messagesRows } from './messages-refusals.ts';

function assertLearns(dialect: UpstreamDialect, base: UpstreamTraits, row: Row): void {
  const error = dialect.readError(row.status ?? 400, JSON.stringify(row.body));
  const traits = { ...base, ...row.traits };
  const correction = correctionFor({ error, sent: row.sent, traits, relayed: undefined });
  assert.deepEqual(correction?.traits, row.learned);
}

describe('chat upstreams', () => {
  for (const row of chatRows) {
    test(`B9 ${row.name}`, () => assertLearns(openaiChatUpstream, chatTraits, row));
  }

  const file = join(
    import.meta.dirname,
    '../../../../shared/recordings/openai-chat/reasoning-model-legacy-parameter-error.json',
  );
  test('B9 as it was recorded', { skip: existsSync(file) ? false : 'no recordings' }, () => {
    assertLearns(openaiChatUpstream, chatTraits, {
      name: 'recorded',
      body: JSON.parse(readFileSync(file, 'utf8')),
      sent: { max_tokens: 10 },
      learned: { maxTokensField: 'max_completion_tokens' },
    });
  });
});

describe('messages upstreams', () => {
  for (const row of messagesRows) {
    test(`B9 ${row.name}`, () => assertLearns(anthropicMessagesUpstream, messagesTraits, row));
  }
});

describe('what is relayed', () => {
  const unknown = JSON.stringify(openai('Unrecognized request argument: stream_options', null, ''));
  const sent = { max_tokens: 5, stream: true, stream_options: { include_usage: true } };
  const refused = (relayed: JsonObject, body: string) =>
    correctionFor({
      error: openaiChatUpstream.readError(400, body),
      sent,
      traits: chatTraits,
      relayed,
    })?.traits;

  test('B9 the member that the gateway added is corrected', () => {
    assert.deepEqual(refused({ max_tokens: 5, stream: true }, unknown), { usageOption: false });
  });

  test('B9 what the client wrote is not', () => {
    assert.equal(refused(sent, unknown), undefined);
    const [row] = chatRows;
    assert.equal(refused({ max_tokens: 5 }, JSON.stringify(row?.body)), undefined);
  });
});

describe('memory', () => {
  const provider = createHttpProvider({ id: 'p', dialect: 'openai-chat', baseUrl: 'http://h/v1' });
  const timeouts = { connectMs: 1, firstEventMs: 1, documentMs: 1, idleMs: 1, totalMs: 1 };
  const target = (model: string): Target => ({ provider, model, weight: 1, timeouts });

  test('B9 facts are kept per model, add up, and nothing else is touched', () => {
    const learned = new LearnedParameters();
    learned.remember(target('a'), { seed: false });
    learned.remember(target('a'), { stopMax: 0 });
    assert.deepEqual(learned.traits(target('a')), {
      ...provider.traits('a'),
      seed: false,
      stopMax: 0,
    });
    assert.equal(learned.traits(target('b')), provider.traits('b'));
  });

  test('B9 the memory is bounded: the model that taught least lately goes', () => {
    const learned = new LearnedParameters();
    for (let i = 0; i <= 500; i++) learned.remember(target(`m${i}`), { seed: false });
    assert.equal(learned.traits(target('m0')).seed, true);
    assert.equal(learned.traits(target('m1')).seed, false);
  });
});
