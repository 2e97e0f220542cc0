/** Converse: what is written of any conversation is taken, and an answer says the same whole and streamed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Conversation, Part } from '../../src/core/conversation.ts';
import { collect, type Generation } from '../../src/core/generation.ts';
import { NoteList } from '../../src/core/notes.ts';
import { converseTraits, type UpstreamTraits } from '../../src/core/traits.ts';
import { bedrockConverseUpstream } from '../../src/dialects/bedrock-converse/upstream.ts';
import { truncatedInput } from '../../src/dialects/shared/request/tools.ts';
import { EventStreamSplitter } from '../../src/wire/event-stream.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { converseModelTraits } from '../../src/providers/clouds/aws/models.ts';
import { listAt, objectAt } from '../support/reading.ts';
import {
  assertTaken,
  converseDocument,
  eventsOf,
  streamOf,
  type ConverseAnswer,
} from '../upstream/converse.ts';
import { conversation, generation } from './arbitraries.ts';
import { check } from './checking.ts';
import { countingIds } from './dialect-halves.ts';

const { writeRequest, readResponse, streamReader, promptOf } = bedrockConverseUpstream;

const models = [
  'claude-sonnet-4-5-20250929',
  'claude-opus-4-8',
  'amazon.nova-pro',
  'amazon.nova-2-lite',
  'amazon.titan-text',
  'mistral.mistral-large-2407',
  'meta.llama3-3-70b-instruct',
  'openai.gpt-oss-120b-1',
  'writer.palmyra-x5',
];

function written(
  asked: Conversation,
  traits: UpstreamTraits,
): { readonly body: JsonObject; readonly notes: NoteList } {
  const notes = new NoteList();
  const ask = { model: 'm', stream: true, traits, newId: countingIds() };
  return { body: writeRequest(asked, ask, notes), notes };
}

/** All texts of a conversation, in their order. */
function textsOf(parts: readonly Part[]): readonly string[] {
  return parts.flatMap((part) => {
    if (part.type === 'text') return [part.text];
    return part.type === 'tool-result' ? textsOf(part.parts) : [];
  });
}

function blockTexts(blocks: readonly JsonObject[]): readonly string[] {
  return blocks.flatMap((block) => {
    if (typeof block['text'] === 'string') return [block['text']];
    return isObject(block['toolResult'])
      ? blockTexts(listAt(objectAt(block, 'toolResult'), 'content'))
      : [];
  });
}

describe('requests', () => {
  for (const model of models) {
    const traits = { ...converseTraits, ...converseModelTraits(model) };

    test(`${model}: what is written is taken, the same each time, and every text is in it`, (context) => {
      check(context, conversation, (asked) => {
        const seen = traits.imageInput === 'none' ? withoutImages(asked) : asked;
        const { body } = written(seen, traits);
        assert.equal(JSON.stringify(body), JSON.stringify(written(seen, traits).body));
        assertTaken({ json: tryParseObject(JSON.stringify(body)) ?? {} });
        const told = listAt(body, 'messages').flatMap((message) =>
          blockTexts(listAt(message, 'content')),
        );
        const all = [...told, ...blockTexts(listAt(body, 'system'))];
        const wanted = [...seen.system, ...seen.turns.flatMap(({ parts }) => parts)];
        for (const text of textsOf(wanted)) {
          // One that ends a prefill is trimmed.
          assert.ok(
            all.some((each) => each === text || each === text.trimEnd()),
            text,
          );
        }
        // What is counted of a prompt holds them, too.
        assert.ok(promptOf(body).texts.length >= all.length);
      });
    });
  }
});

function withoutImages(asked: Conversation): Conversation {
  const turns = asked.turns.map((turn) => ({
    ...turn,
    parts: turn.parts.map((part): Part =>
      part.type === 'media' ? { type: 'text', text: 'picture' } : part,
    ),
  }));
  return { ...asked, turns };
}

/** The answer that a model behind Converse would give. */
function answerOf({ parts, finish, usage }: Generation): ConverseAnswer {
  const content = parts.flatMap((part): readonly JsonObject[] => {
    switch (part.type) {
      case 'text':
        return [{ text: part.text }];
      case 'reasoning': {
        const { text, signature } = part;
        return [{ reasoningContent: { reasoningText: { text, signature } } }];
      }
      case 'tool-call': {
        const input = tryParseObject(part.argumentsJson) ?? {};
        return [{ toolUse: { toolUseId: part.id, name: part.name, input } }];
      }
      default:
        return [];
    }
  });
  const stopReason = { length: 'max_tokens', 'tool-calls': 'tool_use', stop: 'end_turn' };
  return {
    content,
    stopReason: stopReason[finish.kind as keyof typeof stopReason],
    usage: {
      inputTokens: usage?.freshInputTokens ?? 0,
      outputTokens: usage?.outputTokens ?? 0,
      cacheReadInputTokens: usage?.cacheReadTokens ?? 0,
      cacheWriteInputTokens: usage?.cacheWriteTokens ?? 0,
    },
  };
}

function argumentsOf(json: string): JsonObject | undefined {
  return tryParseObject(json) ?? truncatedInput(json === '' ? '{' : json);
}

/** A document whose end was cut does not tell whether its last call is whole: its members are the same. */
function plain(found: Generation | undefined): unknown {
  const parts = found?.parts.map((part) =>
    part.type === 'tool-call'
      ? { ...part, argumentsJson: JSON.stringify(argumentsOf(part.argumentsJson)) }
      : part,
  );
  const { raw: _, reasoningTokens: __, ...usage } = found?.usage ?? {};
  return { parts, kind: found?.finish.kind, usage };
}

describe('answers', () => {
  test('whole and streamed are the same, and what was said', (context) => {
    check(context, generation, (said) => {
      const answer = answerOf(said);
      const whole = readResponse(converseDocument(answer), converseTraits);
      const reader = streamReader(converseTraits);
      const events = eventsOf(answer).flatMap((each) => {
        const [[event, payload] = ['', {}]] = Object.entries(each);
        return reader.read({ bytes: Buffer.alloc(0), event, data: JSON.stringify(payload) });
      });
      const streamed = collect([...events, ...reader.end()]);
      assert.deepEqual(plain(whole), plain(said));
      assert.deepEqual(plain(streamed), plain(said));
    });
  });

  test('frames are the same however their bytes are cut', (context) => {
    check(context, generation, (said) => {
      const bytes = Buffer.concat(streamOf(answerOf(said)).body as readonly Buffer[]);
      const all = new EventStreamSplitter().push(bytes);
      const splitter = new EventStreamSplitter();
      const step = 1 + (bytes.length % 7);
      const cut = [];
      for (let at = 0; at < bytes.length; at += step) {
        cut.push(...splitter.push(bytes.subarray(at, at + step)));
      }
      assert.deepEqual(
        cut.map(({ payload }) => payload.toString()),
        all.map(({ payload }) => payload.toString()),
      );
    });
  });
});
