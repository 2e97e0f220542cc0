/** Sources and runs of tools that chat vendors list beside the text, in streams whose order differs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoteList } from '../../../src/core/notes.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { answerContext, halves } from '../../property/dialect-halves.ts';

interface Read {
  readonly events: readonly GenerationEvent[];
  readonly notes: NoteList;
}

function read(chunks: readonly JsonObject[]): Read {
  const notes = new NoteList();
  const reader = openaiChatUpstream.streamReader(chatTraits, notes);
  const frame = (data: string) => reader.read({ bytes: Buffer.alloc(0), event: undefined, data });
  const events = chunks.flatMap((chunk) => frame(JSON.stringify({ id: 'x', ...chunk })));
  return { events: [...events, ...frame('[DONE]')], notes };
}

function says(delta: JsonObject, more: JsonObject = {}): JsonObject {
  return { choices: [{ index: 0, delta }], ...more };
}

const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
const listed = { citations: ['https://a.example'] };

function cited({ events }: Read): readonly (readonly [number, string | undefined])[] {
  return events.flatMap((event) =>
    event.type === 'part-citation' ? [[event.index, event.citation.url] as const] : [],
  );
}

test('D3 sources in the chunk after the finish are those of the text', () => {
  const found = read([says({ content: 'Yes.' }), end, { choices: [], ...listed }]);
  assert.deepEqual(cited(found), [[0, 'https://a.example']]);
  assert.deepEqual(
    found.events.map(({ type }) => type),
    ['start', 'part-start', 'part-delta', 'part-citation', 'part-end', 'finish'],
  );
});

test('D3 sources that each chunk repeats, and that are annotated, are read once', () => {
  const annotations = [{ type: 'url_citation', url_citation: { url: 'https://b.example' } }];
  const both = { citations: ['https://a.example', 'https://b.example'] };
  const found = read([
    says({ content: 'Yes' }, listed),
    says({ content: '.' }, both),
    says({ content: '!' }, both),
    says({ annotations }, both),
    { ...end, ...both },
  ]);
  assert.deepEqual(cited(found), [
    [0, 'https://b.example'],
    [0, 'https://a.example'],
  ]);
});

test('D3 annotations before the text wait for it', () => {
  const annotations = [{ type: 'url_citation', url_citation: { url: 'https://a.example' } }];
  assert.deepEqual(cited(read([says({ annotations }), says({ content: 'Yes.' }), end])), [
    [0, 'https://a.example'],
  ]);
});

test('D3 sources that no text can have are noted', () => {
  const late = read([
    says({ content: 'I look.' }),
    says({ tool_calls: [call] }),
    { ...end, ...listed },
  ]);
  const none = read([says({ tool_calls: [call] }), { ...end, ...listed }]);
  for (const { notes } of [late, none]) {
    assert.equal(
      notes.header(),
      'citations: dropped, sources without a text have no place elsewhere',
    );
  }
});

test('D3 sources without an address are noted, and fail nothing', () => {
  for (const citations of [[{ title: 'A' }], 'a', 1, [null]]) {
    const { notes, events } = read([says({ content: 'Yes.' }, { citations }), end]);
    const isAddress = citations === 'a';
    assert.equal(notes.header() === '', isAddress, notes.header());
    assert.equal(events.at(-1)?.type, 'finish');
  }
});

test('D3 a run of a tool is one part, before the text, though its result comes later and is repeated', () => {
  const begun = { index: 0, type: 'search', arguments: '{"query":"q"}' };
  const run = { ...begun, search_results: { results: [{ url: 'https://a.example', title: 'A' }] } };
  const found = read([
    says({ executed_tools: [begun] }),
    says({ executed_tools: [run] }),
    says({ content: 'Yes.' }),
    says({ executed_tools: [run] }),
    end,
  ]);
  const parts = found.events.flatMap((event) => (event.type === 'part-start' ? [event.part] : []));
  assert.deepEqual(parts, [
    { type: 'opaque', dialect: 'openai-chat', value: run },
    { type: 'text', text: '' },
  ]);
  const writer = halves.responses.client.streamWriter(answerContext());
  const written = found.events.map((event) => writer.write(event)).join('') + writer.end();
  assert.match(written, /"type":"web_search_call"/);
  assert.match(written, /"sources":\[\{"type":"url","url":"https:\/\/a\.example"\}\]/);
  assert.match(written, /"text":"Yes\."/);
});

test('D3 a run that never got its result is a part, too', () => {
  const run = { index: 0, type: 'python', arguments: '{"code":"1"}' };
  const { events } = read([says({ content: 'Yes.' }), says({ executed_tools: [run] }), end]);
  const parts = events.flatMap((event) => (event.type === 'part-start' ? [event.part.type] : []));
  assert.deepEqual(parts, ['text', 'opaque']);
});

function runsOf({ events }: Read): readonly JsonObject[] {
  return events.flatMap((event) =>
    event.type === 'part-start' && event.part.type === 'opaque' ? [event.part.value] : [],
  );
}

test('D3 runs without an index are runs of their own, each once', () => {
  const [one, other] = ['a', 'b'].map((code) => ({ type: 'python', arguments: code }));
  assert.ok(one && other);
  const found = read([
    says({ executed_tools: [one, other] }),
    says({ executed_tools: [one] }),
    says({ content: 'Yes.' }),
    says({ executed_tools: [one, other] }),
    end,
  ]);
  assert.deepEqual(runsOf(found), [one, other]);
});

test('D3 runs of another form are noted, and fail nothing', () => {
  const run = { index: 0, type: 'python' };
  for (const executed_tools of ['python', 1, ['python', run], [1], run, {}, [null], true]) {
    const isNoted = JSON.stringify(executed_tools).match(/^(?:"|1|true|\["|\[1)/) !== null;
    const chunks = [says({ executed_tools }), says({ content: 'Yes.', executed_tools }), end];
    const { notes, events } = read(chunks);
    assert.equal(events.at(-1)?.type, 'finish');
    const message = { content: 'Yes.', executed_tools };
    const document = { choices: [{ index: 0, message, finish_reason: 'stop' }] };
    const whole = new NoteList();
    openaiChatUpstream.readResponse(document, chatTraits, whole);
    for (const { all } of [notes, whole]) {
      assert.deepEqual(
        all.map(({ path }) => path),
        isNoted ? ['executed_tools'] : [],
        JSON.stringify(executed_tools),
      );
    }
    // A relayed answer is read without notes.
    openaiChatUpstream.readResponse(document, chatTraits);
  }
});

test('D3 a title that comes after its address is kept', () => {
  const search_results = [{ url: 'https://a.example', title: 'A' }];
  const { events } = read([
    says({ content: 'Yes' }, listed),
    says({ content: '.' }, { ...listed, search_results }),
    { ...end, ...listed, search_results },
  ]);
  const titles = events.flatMap((event) =>
    event.type === 'part-citation' ? [event.citation.title] : [],
  );
  assert.deepEqual(titles, ['A']);
});

test('D3 lists of one length with other sources are all read', () => {
  const chunks = ['a', 'b', 'b', 'c'].map((name) =>
    says({ content: name }, { citations: [`https://${name}.example`] }),
  );
  assert.deepEqual(
    cited(read([...chunks, end])).map(([, url]) => url),
    ['https://a.example', 'https://b.example', 'https://c.example'],
  );
});

test('D3 another answer than the first is noted', () => {
  const other = { choices: [{ index: 1, delta: { content: 'No.' } }] };
  const ended = { choices: [{ index: 1, delta: {}, finish_reason: 'stop' }] };
  const { notes, events } = read([says({ content: 'Yes.' }), other, other, end, ended]);
  assert.equal(events.at(-1)?.type, 'finish');
  const document = {
    choices: [0, 1].map((index) => ({
      index,
      message: { content: 'Yes.' },
      finish_reason: 'stop',
    })),
  };
  const whole = new NoteList();
  openaiChatUpstream.readResponse(document, chatTraits, whole);
  for (const { all } of [notes, whole]) {
    assert.deepEqual(all, [
      { path: 'choices', what: 'lost', why: 'only the first answer is carried' },
    ]);
  }
});
