/** D3: a translated answer has no note of members that chat vendors send in every answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoteList } from '../../../src/core/notes.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { openaiChatUpstream } from '../../../src/dialects/openai-chat/upstream.ts';
import type { JsonObject } from '../../../src/json/value.ts';

/** What a vendor adds to an answer, by object. `said` is added to the message of a document and to the delta of a chunk. */
interface Additions {
  readonly top?: JsonObject;
  readonly choice?: JsonObject;
  readonly said?: JsonObject;
  readonly chunkOnly?: Omit<Additions, 'chunkOnly'>;
}

const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
const filtered = {
  hate: { filtered: false, severity: 'safe' },
  jailbreak: { filtered: false, detected: false },
};
const call = { index: 0, id: 'call_1', type: 'function' };

const vendors: { readonly [vendor: string]: Additions } = {
  Mistral: {
    said: { tool_calls: null, prefix: false },
    chunkOnly: { top: { p: 'abcdefghijk' } },
  },
  Together: {
    top: { prompt: [], service_tier: null },
    choice: { seed: 7_163_902_713_650_211, text: 'Hello' },
    said: { tool_calls: [], reasoning: '' },
    chunkOnly: { said: { token_id: 9906 } },
  },
  Moonshot: { choice: { usage: { ...usage, cached_tokens: 1 } } },
  LiteLLM: {
    top: { provider_specific_fields: { traffic_type: 'ON_DEMAND' } },
    choice: { provider_specific_fields: { citations: [{ a: 1 }] } },
    said: {
      provider_specific_fields: { refusal: null, thinking_blocks: [{ type: 'thinking' }] },
      function_call: null,
      tool_calls: [
        {
          ...call,
          provider_specific_fields: { thought_signature: 'c2ln' },
          function: {
            name: 'weather',
            arguments: '{}',
            provider_specific_fields: { thought_signature: 'c2ln' },
          },
        },
      ],
    },
  },
  'Gemini-compatible': {
    said: { extra_content: { google: { thought_signature: 'c2ln' } } },
  },
  Ollama: { top: { system_fingerprint: 'fp_ollama' }, said: { reasoning: 'Hm.' } },
  vLLM: {
    top: {
      prompt_logprobs: null,
      prompt_token_ids: null,
      kv_transfer_params: null,
      service_tier: null,
      system_fingerprint: null,
    },
    choice: { logprobs: null, stop_reason: null, token_ids: null },
    said: {
      refusal: null,
      annotations: null,
      audio: null,
      function_call: null,
      tool_calls: [],
      reasoning: null,
      reasoning_content: null,
    },
  },
  OpenRouter: {
    top: { provider: 'Novita' },
    choice: { native_finish_reason: 'stop', logprobs: null },
    said: {
      refusal: null,
      reasoning: 'Hm.',
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm.', format: 'unknown', index: 0, signature: null },
      ],
    },
  },
  Groq: {
    top: {
      x_groq: { id: 'req_1', seed: 3 },
      usage_breakdown: null,
      service_tier: 'on_demand',
      system_fingerprint: 'fp_groq',
    },
    choice: { logprobs: null },
  },
  xAI: {
    top: { system_fingerprint: 'fp_xai', citations: ['https://a.example'] },
    said: { refusal: null, reasoning_content: 'Hm.' },
  },
  Azure: {
    top: { prompt_filter_results: [{ prompt_index: 0, content_filter_results: filtered }] },
    choice: { content_filter_results: filtered, logprobs: null },
    said: { annotations: [], refusal: null },
    chunkOnly: { top: { obfuscation: 'abc' } },
  },
  DeepSeek: {
    top: { system_fingerprint: 'fp_deepseek' },
    choice: { logprobs: null },
    said: { reasoning_content: 'Hm.' },
  },
  Fireworks: { choice: { token_ids: [1, 2], raw_output: null }, top: { perf_metrics: null } },
  Cerebras: {
    top: {
      system_fingerprint: 'fp_cerebras',
      time_info: { queue_time: 0.1, prompt_time: 0.1, total_time: 0.3, created: 1 },
    },
  },
  'a server that writes out what it does not have': {
    top: { own: { a: null, b: { c: '', d: [] } } },
    said: { own: [{ a: null }] },
  },
};

const base = { id: 'chatcmpl-1', created: 1, model: 'm', usage };

function answer(member: 'message' | 'delta', additions: Additions): JsonObject {
  const { top, choice, said } = additions;
  const { chunkOnly = {} } = member === 'delta' ? additions : {};
  const text = { role: 'assistant', content: 'Hello', ...said, ...chunkOnly.said };
  const one = { index: 0, ...choice, ...chunkOnly.choice, finish_reason: 'stop', [member]: text };
  return { ...base, ...top, ...chunkOnly.top, choices: [one] };
}

/** The notes of a stream of this chunk. */
function readChunk(chunk: JsonObject): NoteList {
  const notes = new NoteList();
  const reader = openaiChatUpstream.streamReader(chatTraits, notes);
  const events = [JSON.stringify(chunk), '[DONE]'].flatMap((data) => [
    ...reader.read({ bytes: Buffer.alloc(0), event: undefined, data }),
  ]);
  assert.equal(events.at(-1)?.type, 'finish');
  return notes;
}

for (const [vendor, additions] of Object.entries(vendors)) {
  test(`D3 nothing of an answer of ${vendor} is noted`, () => {
    const notes = new NoteList();
    openaiChatUpstream.readResponse(answer('message', additions), chatTraits, notes);
    assert.deepEqual(notes.all, [], 'document');
    assert.deepEqual(readChunk(answer('delta', additions)).all, [], 'chunk');
  });
}

test('D3 a text beside the delta that the delta lacks is noted', () => {
  const { all } = readChunk(answer('delta', { choice: { text: 'Other' } }));
  assert.deepEqual(
    all.map(({ path }) => path),
    ['choices.0.text'],
  );
});

test('the usage of an only choice counts where the answer has no other', () => {
  const { usage: _, ...bare } = answer('message', { choice: { usage } });
  const read = openaiChatUpstream.readResponse(bare, chatTraits);
  assert.equal(read.usage?.outputTokens, 2);
  const other = { ...usage, completion_tokens: 9 };
  const both = openaiChatUpstream.readResponse({ ...bare, usage: other }, chatTraits);
  assert.equal(both.usage?.outputTokens, 9);
});

test('so it does in a stream, unless there are several choices', () => {
  const ended = { index: 0, delta: {}, finish_reason: 'stop', usage };
  const counts = (chunks: readonly JsonObject[]) => {
    const reader = openaiChatUpstream.streamReader(chatTraits);
    const frames = chunks.map((chunk) => JSON.stringify({ id: 'x', ...chunk }));
    return frames.flatMap((data) =>
      reader
        .read({ bytes: Buffer.alloc(0), event: undefined, data })
        .flatMap((event) => (event.type === 'usage' ? [event.usage.outputTokens] : [])),
    );
  };
  const says = (index: number) => ({ choices: [{ index, delta: { content: 'a' } }] });
  assert.deepEqual(counts([says(0), { choices: [ended] }]), [2]);
  assert.deepEqual(counts([says(0), says(1), { choices: [ended] }]), []);
});

test('chunks of Mistral that continue a text are recognised without a parse', () => {
  const reader = openaiChatUpstream.streamReader(chatTraits);
  const plain = ['abc', 'abcdefgh', 'a', 'ab'].map((p) => {
    const chunk = { id: 'x', choices: [{ index: 0, delta: { content: 'a' } }], p };
    const data = JSON.stringify(chunk);
    reader.read({ bytes: Buffer.alloc(0), event: undefined, data });
    return reader.plain;
  });
  assert.deepEqual(plain, [false, true, true, true]);
});
