/** Gemini: what is written of any conversation is taken, and an answer says the same whole and streamed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, Part } from '../../src/core/conversation.ts';
import { collect, type Generation } from '../../src/core/generation.ts';
import { NoteList } from '../../src/core/notes.ts';
import { geminiTraits } from '../../src/core/traits.ts';
import { geminiUpstream } from '../../src/dialects/gemini/upstream.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { knownModels, type KnownModel } from '../decisions/known-models.ts';
import { listAt, objectAt } from '../support/reading.ts';
import { assertTaken, geminiDocument, streamOf, type GeminiAnswer } from '../upstream/gemini.ts';
import { conversation, generation } from './arbitraries.ts';
import { check } from './checking.ts';
import { countingIds } from './dialect-halves.ts';

const { writeRequest, readResponse, streamReader, promptOf } = geminiUpstream;

function written(asked: Conversation, { model, traits }: KnownModel): JsonObject {
  const ask = { model, stream: true, traits, newId: countingIds() };
  return writeRequest(asked, ask, new NoteList());
}

/** All texts of a conversation, in their order. */
function textsOf(parts: readonly Part[]): readonly string[] {
  return parts.flatMap((part) => {
    if (part.type === 'text') return [part.text];
    return part.type === 'tool-result' ? textsOf(part.parts) : [];
  });
}

/** What a content says, the results of calls among it. */
function said(content: JsonObject): readonly string[] {
  return listAt(content, 'parts').flatMap((part) => {
    const { output, error } = objectAt(objectAt(part, 'functionResponse'), 'response');
    return [part['text'], output, error].filter((text) => typeof text === 'string');
  });
}

describe('requests', () => {
  for (const known of knownModels('gemini')) {
    test(`${known.model}: what is written is taken, the same each time, and every text is in it`, (context) => {
      check(context, conversation, (asked) => {
        const body = written(asked, known);
        assert.equal(JSON.stringify(body), JSON.stringify(written(asked, known)));
        const json = tryParseObject(JSON.stringify(body)) ?? {};
        assertTaken({ json, path: `/v1beta/models/${known.model}:generateContent` });
        const contents = [objectAt(json, 'systemInstruction'), ...listAt(json, 'contents')];
        const all = contents.flatMap(said);
        for (const text of textsOf([
          ...asked.system,
          ...asked.turns.flatMap(({ parts }) => parts),
        ])) {
          assert.ok(
            all.some((each) => each.includes(text)),
            text,
          );
        }
        // What is counted of a prompt holds them, too.
        assert.ok(promptOf(body).texts.length >= all.length);
      });
    });
  }
});

/** The answer that Gemini would give: reasoning is in separate parts, a call is whole. */
function answerOf({ parts, finish, usage }: Generation): GeminiAnswer {
  const told = parts.flatMap((part): readonly JsonObject[] => {
    switch (part.type) {
      case 'text':
        return [{ text: part.text }];
      case 'reasoning':
        return [{ text: part.text, thought: true }];
      case 'tool-call': {
        const args = tryParseObject(part.argumentsJson) ?? {};
        return [{ functionCall: { id: part.id, name: part.name, args } }];
      }
      default:
        return [];
    }
  });
  return {
    parts: told,
    finishReason: finish.kind === 'length' ? 'MAX_TOKENS' : 'STOP',
    usage: {
      promptTokenCount: (usage?.freshInputTokens ?? 0) + (usage?.cacheReadTokens ?? 0),
      cachedContentTokenCount: usage?.cacheReadTokens ?? 0,
      candidatesTokenCount: (usage?.outputTokens ?? 0) - (usage?.reasoningTokens ?? 0),
      thoughtsTokenCount: usage?.reasoningTokens ?? 0,
    },
  };
}

function joined(found: Pick<Generation, 'parts'>, type: 'text' | 'reasoning'): string {
  // Neighbours of one kind are one part, those of reasoning with a blank line between them.
  return found.parts
    .flatMap((part) => (part.type === type ? [part.text] : []))
    .join('')
    .replaceAll(/\s/g, '');
}

function plain(found: Generation): unknown {
  const calls = found.parts.flatMap((part) =>
    part.type === 'tool-call'
      ? [
          {
            id: part.id,
            name: part.name,
            input: JSON.stringify(tryParseObject(part.argumentsJson)),
          },
        ]
      : [],
  );
  const { freshInputTokens, cacheReadTokens, outputTokens, reasoningTokens } = found.usage ?? {};
  return {
    calls,
    text: joined(found, 'text'),
    reasoning: joined(found, 'reasoning'),
    kind: found.finish.kind,
    usage: { freshInputTokens, cacheReadTokens, outputTokens, reasoningTokens },
  };
}

describe('answers', () => {
  test('whole and streamed are the same, and what was said', (context) => {
    check(context, generation, (wanted) => {
      const answer = answerOf(wanted);
      const whole = readResponse(geminiDocument(answer), geminiTraits);
      const reader = streamReader(geminiTraits);
      const frames = [streamOf(answer).body]
        .flat()
        .map((frame) => String(frame).slice('data: '.length));
      const events = frames.flatMap((data) =>
        reader.read({ bytes: Buffer.alloc(0), event: undefined, data }),
      );
      const streamed = collect([...events, ...reader.end()]);
      assert.ok(streamed !== undefined);
      assert.deepEqual(plain(whole), plain(wanted));
      assert.deepEqual(plain(streamed), plain(wanted));
    });
  });
});
