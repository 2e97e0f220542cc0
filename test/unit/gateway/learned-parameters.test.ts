/** B9 C5 X-7 D9: what the refusals of real servers say about a model, in their own words, and for whom it is learned. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import type { UpstreamDialect } from '../../../src/core/dialect.ts';
import type { Target } from '../../../src/core/provider.ts';
import {
  chatTraits,
  converseTraits,
  geminiTraits,
  messagesTraits,
  responsesTraits,
  type UpstreamTraits,
} from '../../../src/core/traits.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { bedrockConverseUpstream } from '../../../src/dialects/bedrock-converse/upstream.ts';
import { geminiUpstream } from '../../../src/dialects/gemini/upstream.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { openaiResponsesUpstream } from '../../../src/dialects/openai-responses/upstream.ts';
import { correctionFor, LearnedParameters } from '../../../src/gateway/learned-parameters.ts';
import {
  readComplaint,
  repairs,
  repairsOf,
  wordings,
} from '../../../src/dialects/shared/refusals.ts';
import { createHttpProvider } from '../../../src/providers/http-provider.ts';
import { chatRows, openai, type Row } from './chat-refusals.ts';
import { converseRows } from './converse-refusals.ts';
import { geminiRows } from './gemini-refusals.ts';
import { messagesRows } from './messages-refusals.ts';
import { responsesRows } from './responses-refusals.ts';

function assertLearns(dialect: UpstreamDialect, base: UpstreamTraits, row: Row): void {
  const error = dialect.readError(row.status ?? 400, JSON.stringify(row.body));
  const traits = { ...base, ...row.traits };
  const correction = correctionFor({ error, sent: row.sent, traits, asked: row.sent });
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
      learned: { maxTokensField: 'max_completion_tokens', oneCapField: true },
    });
  });
});

describe('messages upstreams', () => {
  for (const row of messagesRows) {
    test(`B9 ${row.name}`, () => assertLearns(anthropicMessagesUpstream, messagesTraits, row));
  }
});

describe('responses upstreams', () => {
  for (const row of responsesRows) {
    test(`B9 ${row.name}`, () => assertLearns(openaiResponsesUpstream, responsesTraits, row));
  }
});

describe('gemini upstreams', () => {
  for (const row of geminiRows) {
    test(`B9 ${row.name}`, () => assertLearns(geminiUpstream, geminiTraits, row));
  }
});

describe('converse upstreams', () => {
  for (const row of converseRows) {
    test(`B9 ${row.name}`, () => assertLearns(bedrockConverseUpstream, converseTraits, row));
  }
});

test('B9 each row of the table of repairs has a refusal that it reads', () => {
  const used = new Set<unknown>();
  const fixtures = [
    ...chatRows.map((row) => ({ row, dialect: openaiChatUpstream, base: chatTraits })),
    ...messagesRows.map((row) => ({
      row,
      dialect: anthropicMessagesUpstream,
      base: messagesTraits,
    })),
    ...responsesRows.map((row) => ({
      row,
      dialect: openaiResponsesUpstream,
      base: responsesTraits,
    })),
    ...geminiRows.map((row) => ({ row, dialect: geminiUpstream, base: geminiTraits })),
    ...converseRows.map((row) => ({
      row,
      dialect: bedrockConverseUpstream,
      base: converseTraits,
    })),
  ];
  for (const { row, dialect, base } of fixtures) {
    const complaint = readComplaint(dialect.readError(row.status ?? 400, JSON.stringify(row.body)));
    if (complaint === undefined || row.learned === undefined) continue;
    const request = { sent: row.sent, traits: { ...base, ...row.traits } };
    for (const found of repairsOf(complaint, request)) used.add(found.row);
  }
  const unused = repairs.filter((row) => !used.has(row));
  assert.deepEqual(
    unused.map(({ field, repair }) => ({ field, repair })),
    [],
  );
});

/** A sentence of a real server for each row of `wordings`, and the name in it that no other row reads. */
const sentences: { readonly [W in keyof typeof wordings]: readonly [text: string, name: string] } =
  {
    quoted: ["Unsupported member at 'user'.", 'user'],
    leading: ['stop: Extra inputs are not permitted', 'stop'],
    announced: ['Unknown parameter stop', 'stop'],
    supplied: ['Unrecognized request argument supplied: user', 'user'],
    onThisModel: ['Argument not supported on this model: stop', 'stop'],
    subject: ['Invalid request, as seed not allowed here', 'seed'],
    object: ['This model does not support temperature', 'temperature'],
    snakeCase: ['Unsupported value, lower your max_tokens', 'max_tokens'],
    bracketed: ['Malformed input request: #: extraneous key [user] is not permitted', 'user'],
  };

const complaintOf = (status: number, message: string) =>
  readComplaint(openaiChatUpstream.readError(status, JSON.stringify({ error: { message } })));

describe('how refusals are worded', () => {
  for (const [row, [text, name]] of Object.entries(sentences)) {
    test(`C5 ${row}: ${text}`, () => {
      assert.ok(complaintOf(400, text)?.names.has(name));
      const others = Object.entries(wordings).filter(([other]) => other !== row);
      const read = others.flatMap(([, pattern]) => [...text.matchAll(pattern)].map(([, n]) => n));
      assert.ok(!read.includes(name), 'another row reads it as well: one of them is not needed');
    });
  }

  test('C5 several members in one sentence', () => {
    const names = complaintOf(400, 'Unrecognized request arguments supplied: user, seed')?.names;
    assert.ok(names?.has('user') === true && names.has('seed'));
  });

  for (const text of [
    'messages[1].role: unknown variant `developer`, expected one of `system`, `user`, `tool`',
    "Unsupported value: 'role' must be one of 'user' or 'stop'.",
    "Invalid value: 'x'. Supported values are: 'user', 'stop' and 'seed'.",
    "Invalid value: 'x'. Supported values are: 'message.user', 'user', 'tools.stop', 'stop' and 'seed'.",
  ]) {
    test(`C5 what is allowed is not refused: ${text}`, () => {
      const { names } = complaintOf(400, text) ?? assert.fail();
      for (const allowed of ['user', 'stop', 'seed']) assert.ok(!names.has(allowed), allowed);
    });
  }

  for (const [status, text] of [
    [400, 'System message must be at the beginning.'],
    [400, 'Chat template error: System message must be at the beginning.'],
    [
      500,
      'While executing CallExpression at line 85, column 32 in source:\n…\nError: Jinja Exception: System message must be at the beginning.',
    ],
    [400, 'The system message should come first.'],
  ] as const) {
    test(`C1 ${status} of a chat template: ${text.slice(-40)}`, () => {
      const body = JSON.stringify({ error: { message: text, code: status } });
      const error = openaiChatUpstream.readError(status, body);
      const sent = {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'system', content: 'y' },
        ],
      };
      const traits = { ...chatTraits, systemAnywhere: true };
      const correction = correctionFor({ error, sent, traits, asked: sent });
      assert.deepEqual(correction?.traits, { systemAnywhere: false });
    });
  }
});

/** Error bodies with the sentence at every place where servers put it. */
const shapes: readonly unknown[] = [
  { error: { message: 'why' } },
  { error: 'why' },
  { message: 'why' },
  { message: { detail: 'why' } },
  { message: { detail: [{ loc: ['body', 'x'], msg: 'why' }] } },
  { error: { message: { detail: [{ msg: 'why' }] } } },
  { detail: 'why' },
  { detail: [{ loc: ['body', 'x'], msg: 'why' }] },
  { detail: { message: 'why' } },
  { error: { detail: 'why' } },
  { errors: [{ message: 'why' }] },
  { error: { errors: ['why'] } },
  [{ error: { message: 'why' } }],
  { error: [{ message: 'why' }] },
  { error_message: 'why' },
  { msg: 'why' },
];

describe('what a refusal says', () => {
  for (const { id, readError } of [openaiChatUpstream, anthropicMessagesUpstream]) {
    for (const shape of shapes) {
      test(`D9 ${id} ${JSON.stringify(shape)}`, () => {
        assert.match(readError(422, JSON.stringify(shape)).message, /(^|: )why$/);
      });
    }
  }
});

describe('who wrote what is refused', () => {
  const unknown = JSON.stringify(openai('Unrecognized request argument: stream_options', null, ''));
  const sent = { max_tokens: 5, stream: true, stream_options: { include_usage: true } };
  const byClient = (asked: JsonObject): boolean | undefined =>
    correctionFor({
      error: openaiChatUpstream.readError(400, unknown),
      sent,
      traits: chatTraits,
      asked,
    })?.byClient;

  test('X-7 the gateway, where the client did not', () => {
    assert.equal(byClient({ max_tokens: 5, stream: true }), false);
    assert.equal(byClient(sent), true);
  });
});

describe('memory', () => {
  const provider = createHttpProvider({ id: 'p', dialect: 'openai-chat', baseUrl: 'http://h/v1' });
  const timeouts = { connectMs: 1, firstEventMs: 1, documentMs: 1, idleMs: 1, totalMs: 1 };
  const target = (model: string): Target => ({ provider, model, weight: 1, timeouts });
  const clock = { at: 0, now: () => clock.at };
  const noSeed = { byGateway: { seed: false }, byClient: {} };

  test('B9 facts are kept per model, add up, and nothing else is touched', () => {
    const learned = new LearnedParameters(clock);
    learned.remember({ target: target('a'), tenant: 't', ...noSeed });
    learned.remember({ target: target('a'), tenant: 't', byGateway: { stopMax: 0 }, byClient: {} });
    const facts = { ...provider.traits('a'), seed: false, stopMax: 0 };
    assert.deepEqual(learned.traits(target('a'), 'other'), facts);
    assert.equal(learned.traits(target('b'), 't'), provider.traits('b'));
  });

  test('B9 the memory is bounded: the model that taught least lately goes', () => {
    const learned = new LearnedParameters(clock);
    for (let i = 0; i <= 500; i++) {
      learned.remember({ target: target(`m${i}`), tenant: 't', ...noSeed });
    }
    assert.equal(learned.traits(target('m0'), 't').seed, true);
    assert.equal(learned.traits(target('m1'), 't').seed, false);
  });

  test('X-7 a refusal of what a client wrote holds for its tenant, and for all when two had it', () => {
    const learned = new LearnedParameters(clock);
    const taught = { byGateway: {}, byClient: { samplingAllowed: false } };
    const allowed = (tenant: string): boolean =>
      learned.traits(target('a'), tenant).samplingAllowed;
    learned.remember({ target: target('a'), tenant: 'one', ...taught });
    learned.remember({ target: target('a'), tenant: 'one', ...taught });
    assert.deepEqual([allowed('one'), allowed('two'), allowed('three')], [false, true, true]);
    learned.remember({
      target: target('a'),
      tenant: 'two',
      byGateway: {},
      byClient: { seed: false },
    });
    assert.deepEqual([allowed('two'), allowed('three')], [true, true], 'another lesson');
    learned.remember({ target: target('a'), tenant: 'two', ...taught });
    assert.deepEqual([allowed('one'), allowed('two'), allowed('three')], [false, false, false]);
  });

  test('X-7 different lessons of two tenants stay their own', () => {
    const learned = new LearnedParameters(clock);
    const stops = (tenant: string): number | undefined =>
      learned.traits(target('a'), tenant).stopMax;
    learned.remember({
      target: target('a'),
      tenant: 'one',
      byGateway: {},
      byClient: { stopMax: 1 },
    });
    learned.remember({
      target: target('a'),
      tenant: 'two',
      byGateway: {},
      byClient: { stopMax: 2 },
    });
    assert.deepEqual([stops('one'), stops('two'), stops('three')], [1, 2, chatTraits.stopMax]);
  });

  test('bedrock 50 a model without a counter is asked again after an hour, others at once', () => {
    const learned = new LearnedParameters(clock);
    learned.rememberCounterless(target('a'));
    assert.deepEqual(
      ['a', 'b'].map((model) => learned.lacksCounter(target(model))),
      [true, false],
    );
    assert.equal(learned.lacksApi(target('a')), false);
    clock.at += 3_600_000;
    assert.equal(learned.lacksCounter(target('a')), false);
  });

  test('X-7 a lesson ends after an hour', () => {
    const learned = new LearnedParameters(clock);
    learned.remember({ target: target('a'), tenant: 't', ...noSeed });
    clock.at += 3_599_999;
    assert.equal(learned.traits(target('a'), 't').seed, false);
    clock.at += 1;
    assert.equal(learned.traits(target('a'), 't').seed, true);
  });
});
