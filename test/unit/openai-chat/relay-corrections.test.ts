/** D13 B9: whatever is learned from a refusal changes a relayed request, as it changes a translated one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { parseBody } from '../../../src/core/client-body.ts';
import { chatTraits, type UpstreamTraits } from '../../../src/core/traits.ts';
import { relayRequest } from '../../../src/dialects/openai-chat/relay/request.ts';
import { offersLegacyFunctions } from '../../../src/dialects/openai-chat/relay/tools.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { NoteList, type Notes } from '../../../src/core/notes.ts';
import { chatRows } from '../gateway/chat-refusals.ts';

const messages: JsonObject['messages'] = [
  { role: 'developer', content: 'Be brief.' },
  { role: 'user', content: 'Hi' },
  { role: 'system', content: 'Use UTC.' },
  { role: 'user', content: 'Hi' },
];

function relayed(sent: JsonObject, traits: UpstreamTraits, notes: Notes = new NoteList()): string {
  const body = { model: 'm', ...sent, messages };
  const source = parseBody(Buffer.from(JSON.stringify(body)), new Set());
  const wanted = sent['stream'] === true || traits.streams === 'only';
  const stream = wanted && traits.streams !== 'never';
  const ask = { model: 'm', stream, traits, newId: () => 'id' };
  return relayRequest(source, ask, notes).toString();
}

/** Only a translated request has a breakpoint. */
const translatedOnly = new Set(['prompt_cache_breakpoint']);

for (const { name, sent, traits, learned } of chatRows) {
  if (learned === undefined || translatedOnly.has(name)) continue;
  test(`D13 relay: ${name}`, () => {
    const developerRole = traits?.systemRole === 'developer';
    const base = { ...chatTraits, known: true, developerRole, ...traits } as const;
    assert.notEqual(relayed(sent, { ...base, ...learned }), relayed(sent, base));
  });
}

test('D13 C1 a relayed system message goes as a developer message to a model that refuses system', () => {
  const roles = { systemRole: 'developer', developerRole: true, systemAnywhere: true } as const;
  const known = { ...chatTraits, known: true, ...roles } as const;
  const base = JSON.stringify({ model: 'm', messages });
  assert.equal(relayed({}, known), base);
  const refusing = { ...known, refusesSystemRole: true } as const;
  assert.equal(relayed({}, refusing), base.replace('"system"', '"developer"'));
});

test('D3 what a document lacks that is put together of a stream is refused or noted', () => {
  const only = { ...chatTraits, streams: 'only' } as const;
  const notes = new NoteList();
  const sent = relayed({ logprobs: true, top_logprobs: 2, n: 1 }, only, notes);
  assert.doesNotMatch(sent, /logprobs/);
  assert.deepEqual(lost(notes), ['logprobs', 'top_logprobs']);
  assert.throws(() => relayed({ n: 2 }, only), /several answers in streams only/);
  assert.throws(
    () => relayed({ modalities: ['text', 'audio'] }, only),
    /spoken answers in streams only/,
  );
  const stream = { stream: true, logprobs: true, n: 2, modalities: ['text', 'audio'] };
  assert.match(
    relayed(stream, only, notes),
    /"logprobs":true,"n":2,"modalities":\["text","audio"\]/,
  );
  assert.equal(lost(notes).length, 2);
});

test('deprecated functions in a request that no translation carries are sent to a known vendor as tools', () => {
  const known = { ...chatTraits, known: true } as const;
  const functions = [{ name: 'weather', parameters: { type: 'object', properties: {} } }];
  const sent = { functions, function_call: { name: 'weather' } };
  const read = (more: JsonObject) => parseBody(Buffer.from(JSON.stringify(more)), new Set());
  const translates = (more: JsonObject) =>
    offersLegacyFunctions(read({ ...sent, ...more }), known, new NoteList());
  assert.equal(translates({}), true);
  for (const more of [{ n: 2 }, { logprobs: true }, { modalities: ['audio'] }]) {
    assert.equal(translates(more), false);
  }
  const notes = new NoteList();
  const written = tryParseObject(relayed({ ...sent, n: 2 }, known, notes)) ?? {};
  assert.deepEqual(written['tools'], [{ type: 'function', function: functions[0] }]);
  assert.deepEqual(written['tool_choice'], { type: 'function', function: { name: 'weather' } });
  assert.equal(written['functions'], undefined);
  assert.equal(written['n'], 2);
  const noted = notes.all.filter(({ path }) => path.startsWith('function'));
  assert.deepEqual(
    noted.map(({ path }) => path),
    ['functions', 'function_call'],
  );
});

function lost({ all }: NoteList): readonly string[] {
  return all.filter(({ what }) => what === 'lost').map(({ path }) => path);
}
