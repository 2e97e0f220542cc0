/** Questions: nothing vanishes in translation except where a note says so. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, Part, Turn } from '../../src/core/conversation.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParse, tryParseObject } from '../../src/json/parse.ts';
import { parseBody } from '../../src/core/client-body.ts';
import { NoteList, type Note } from '../../src/core/notes.ts';
import { allDialects, type AnyDialect } from '../support/reading.ts';
import { conversation } from './arbitraries.ts';
import { check } from './checking.ts';
import { ask, halves } from './dialect-halves.ts';

/** Parts by their meaning: arguments are JSON, however it is spelled; extras are what one dialect alone has. */
function plainParts(parts: readonly Part[]): readonly unknown[] {
  return parts.map(({ extras: _own, ...part }) => {
    switch (part.type) {
      case 'tool-call':
        return { ...part, argumentsJson: tryParse(part.argumentsJson) };
      case 'tool-result':
        return { ...part, parts: plainParts(part.parts) };
      default:
        return part;
    }
  });
}

function plainTurns(turns: readonly Turn[]): readonly unknown[] {
  return turns.map((turn) => ({ ...turn, parts: plainParts(turn.parts) }));
}

/** The members that must survive, by the word that a note of their loss begins with. */
function membersOf(value: Conversation): { readonly [member: string]: unknown } {
  const { temperature, topP, stop, maxOutputTokens } = value.sampling;
  return {
    // Chat servers take one text (translation.md §3.2); what it says must be the same.
    system: value.system.map((part) => (part.type === 'text' ? part.text : part)).join('\n\n'),
    messages: plainTurns(value.turns),
    tools: value.tools.map(({ extras: _own, ...tool }) => tool),
    // With tools, no choice is the choice "auto" in all dialects.
    tool_choice: value.toolChoice?.type ?? (value.tools.length > 0 ? 'auto' : undefined),
    parallel: value.parallelTools,
    temperature,
    top_p: topP,
    stop,
    max_tokens: maxOutputTokens,
    output: value.output,
    user: value.endUser,
  };
}

const notedUnder: { readonly [member: string]: RegExp } = {
  system: /^(system|messages)/,
  messages: /^messages/,
  tools: /^tools/,
  tool_choice: /^tool_choice/,
  parallel: /^(parallel_tool_calls|tool_choice)/,
  temperature: /^temperature/,
  top_p: /^top_p/,
  stop: /^stop/,
  max_tokens: /^max_/,
  output: /^(response_format|output)/,
  user: /^(user|metadata|safety_identifier)/,
};

/** Responses servers know no stop sequences: the gateway watches for them itself (stop-sequences.test.ts). */
const watchedHere: { readonly [D in AnyDialect]?: string } = { responses: 'stop' };

/** @param through the dialects that the conversation was written in. */
function assertConserved(
  actual: Conversation,
  expected: Conversation,
  notes: readonly Note[],
  through: readonly AnyDialect[],
): void {
  const found = membersOf(actual);
  for (const [member, value] of Object.entries(membersOf(expected))) {
    if (through.some((dialect) => watchedHere[dialect] === member)) continue;
    if (notes.some((note) => notedUnder[member]?.test(note.path))) continue;
    assert.deepEqual(found[member], value, `${member} without a note: ${JSON.stringify(notes)}`);
  }
}

for (const dialect of allDialects) {
  const both = halves[dialect];
  describe(dialect, () => {
    test('conservation: read(write(c)) = c except at noted paths', (context) => {
      let unnoted = 0;
      let runs = 0;
      check(context, conversation, (asked) => {
        const notes = new NoteList();
        const body = both.upstream.writeRequest(asked, ask(both), notes);
        const sent = tryParseObject(JSON.stringify(body)) ?? {};
        const head = both.client.readHead(sent);
        assert.equal(head.model, 'model');
        const back = both.client.readRequest(sent, new NoteList());
        assertConserved(back, asked, notes.all, [dialect]);
        runs += 1;
        if (notes.all.length === 0) unnoted += 1;
      });
      assert.ok(unnoted * 2 > runs, `only ${unnoted} of ${runs} conversations needed no note`);
    });

    test('G2 the same conversation is the same bytes each time', (context) => {
      check(context, conversation, (asked) => {
        const write = (): string =>
          JSON.stringify(both.upstream.writeRequest(asked, ask(both), new NoteList()));
        assert.equal(write(), write());
      });
    });

    test('A2 G2 a conversation grown by a turn keeps the bytes of its beginning', (context) => {
      check(context, conversation, (asked) => {
        const messagesOf = (value: Conversation): string => {
          const body = both.upstream.writeRequest(value, ask(both), new NoteList());
          return JSON.stringify(body['messages'] ?? body['input']).slice(0, -1);
        };
        const grown: Conversation = {
          ...asked,
          turns: [
            ...asked.turns,
            { role: 'assistant', parts: [{ type: 'text', text: 'And so on.' }] },
            { role: 'user', parts: [{ type: 'text', text: 'Go on.' }] },
          ],
        };
        assert.ok(messagesOf(grown).startsWith(messagesOf(asked)));
      });
    });

    for (const other of allDialects.filter((each) => each !== dialect)) {
      test(`there and back: ${dialect} body → ${other} upstream keeps what was said`, (context) => {
        check(context, conversation, (asked) => {
          const notes = new NoteList();
          const body: JsonObject = both.upstream.writeRequest(asked, ask(both), notes);
          const read = both.client.readRequest(tryParseObject(JSON.stringify(body)) ?? {}, notes);
          const further = halves[other].upstream.writeRequest(read, ask(halves[other]), notes);
          const sent = tryParseObject(JSON.stringify(further)) ?? {};
          const back = halves[other].client.readRequest(sent, notes);
          assertConserved(back, asked, notes.all, [dialect, other]);
        });
      });
    }

    test('relay sends the client’s bytes with only its own members spliced', (context) => {
      check(context, conversation, (asked) => {
        const body = both.upstream.writeRequest(asked, ask(both), new NoteList());
        const text = JSON.stringify(
          { zebra: { 10: 1, 9: 2 }, ...body, model: 'prefix/model' },
          null,
          1,
        );
        const source = parseBody(Buffer.from(text), both.client.ownedKeys);
        const relayed = both.upstream.relayRequest(source, ask(both)).toString();
        assert.equal(relayed, text.replace('"prefix/model"', '"model"'));
      });
    });
  });
}
