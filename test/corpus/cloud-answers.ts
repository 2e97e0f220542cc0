/** Answers of Gemini and Converse, each as a document and as a stream, for the golden texts of test/golden. */
import {
  converseAnswer,
  converseStream,
  eventsOf,
  type ConverseAnswer,
} from '../upstream/converse.ts';
import { geminiAnswer, streamOf, type GeminiAnswer } from '../upstream/gemini.ts';
import type { Answer } from '../upstream/scripted.ts';

/** One answer in the two forms in which the upstream sends it. */
export interface CloudAnswer {
  readonly name: string;
  readonly document: () => Answer;
  readonly stream: () => Answer;
}

const weather = { name: 'weather', args: { city: 'Oslo' } };

export const geminiAnswers: { readonly [name: string]: GeminiAnswer } = {
  'a text': { parts: [{ text: 'It is mild.' }] },
  'two texts': { parts: [{ text: 'It is ' }, { text: 'mild.' }] },
  'a text with a signature': { parts: [{ text: 'Mild.', thoughtSignature: 'c2ln' }] },
  'thoughts and a text': {
    parts: [
      { text: 'The coast is warm.', thought: true },
      { text: 'Mild.', thoughtSignature: 'c2ln' },
    ],
    usage: {
      promptTokenCount: 12,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 7,
      totalTokenCount: 24,
    },
  },
  'a call with a signature': {
    parts: [{ functionCall: { id: 'fc-1', ...weather }, thoughtSignature: 'c2ln' }],
  },
  'calls without ids': {
    parts: [
      { functionCall: weather, thoughtSignature: 'c2ln' },
      { functionCall: { name: 'weather', args: { city: 'Bergen' } } },
    ],
  },
  'a text and a call': {
    parts: [{ text: 'I look.' }, { functionCall: { id: 'fc-1', ...weather } }],
  },
  'no part': { parts: [] },
  'the end of the allowed tokens': { parts: [{ text: 'It is' }], finishReason: 'MAX_TOKENS' },
  'a call that was cut by the allowed tokens': {
    parts: [{ functionCall: { id: 'fc-1', ...weather } }],
    finishReason: 'MAX_TOKENS',
  },
  'safety, with ratings': {
    parts: [],
    finishReason: 'SAFETY',
    candidate: {
      safetyRatings: [{ category: 'HARM_CATEGORY_HARASSMENT', probability: 'HIGH', blocked: true }],
    },
  },
  recitation: { parts: [{ text: 'Once' }], finishReason: 'RECITATION' },
  'a blocklist, with a message': {
    parts: [],
    finishReason: 'BLOCKLIST',
    candidate: { finishMessage: 'A term is on the list.' },
  },
  'a malformed call': {
    parts: [],
    finishReason: 'MALFORMED_FUNCTION_CALL',
    candidate: { finishMessage: 'Malformed function call: weather(' },
  },
  'a finish that is not known': { parts: [{ text: 'It is' }], finishReason: 'NEW_REASON' },
  'text from the web': {
    parts: [{ text: 'It is mild in Oslo.' }],
    candidate: {
      groundingMetadata: {
        webSearchQueries: ['weather oslo'],
        searchEntryPoint: { renderedContent: '<div>weather</div>' },
        groundingChunks: [{ web: { uri: 'https://example.com/w', title: 'Weather' } }],
        groundingSupports: [
          {
            segment: { startIndex: 0, endIndex: 19, text: 'It is mild in Oslo.' },
            groundingChunkIndices: [0],
          },
        ],
      },
    },
  },
  'a text with citations': {
    parts: [{ text: 'It is mild.' }],
    candidate: {
      citationMetadata: {
        citationSources: [{ startIndex: 0, endIndex: 11, uri: 'https://example.com/c' }],
      },
    },
  },
  'code that was run': {
    parts: [
      { executableCode: { language: 'PYTHON', code: 'print(1)' } },
      { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
      { text: 'One.' },
    ],
  },
  'an image': { parts: [{ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }] },
  'usage of a cache, of tools and of sound': {
    usage: {
      promptTokenCount: 20,
      cachedContentTokenCount: 8,
      toolUsePromptTokenCount: 3,
      candidatesTokenCount: 5,
      totalTokenCount: 28,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 15 },
        { modality: 'AUDIO', tokenCount: 5 },
      ],
      serviceTier: 'priority',
    },
  },
  'no usage': { usage: null },
};

const calling = { toolUseId: 'tooluse_1', name: 'weather', input: { city: 'Oslo' } };

export const converseAnswers: { readonly [name: string]: ConverseAnswer } = {
  'a text': { content: [{ text: 'It is mild.' }] },
  'two texts': { content: [{ text: 'It is ' }, { text: 'mild.' }] },
  'reasoning with a signature': {
    content: [
      { reasoningContent: { reasoningText: { text: 'The coast is warm.', signature: 'c2ln' } } },
      { text: 'Mild.' },
    ],
  },
  'reasoning without a signature': {
    content: [
      { reasoningContent: { reasoningText: { text: 'The coast is warm.' } } },
      { text: 'Mild.' },
    ],
  },
  'redacted reasoning': {
    content: [{ reasoningContent: { redactedContent: 'c2VjcmV0' } }, { text: 'Mild.' }],
  },
  'a text that cites documents': {
    content: [
      {
        citationsContent: {
          content: [{ text: 'It is mild' }],
          citations: [
            {
              title: 'Weather',
              sourceContent: [{ text: 'Mild.' }],
              location: { documentPage: { documentIndex: 0, start: 1, end: 2 } },
            },
          ],
        },
      },
      { text: '.' },
    ],
  },
  'a call': { content: [{ toolUse: calling }], stopReason: 'tool_use' },
  'a text and two calls': {
    content: [
      { text: 'I look.' },
      { toolUse: calling },
      { toolUse: { ...calling, toolUseId: 'tooluse_2', input: { city: 'Bergen' } } },
    ],
    stopReason: 'tool_use',
  },
  'no block': { content: [] },
  'the end of the allowed tokens': { content: [{ text: 'It is' }], stopReason: 'max_tokens' },
  'a call that was cut by the allowed tokens': {
    content: [{ toolUse: calling }],
    stopReason: 'max_tokens',
  },
  'a stop sequence that is named': {
    content: [{ text: 'It is' }],
    stopReason: 'stop_sequence',
    more: { additionalModelResponseFields: { stop_sequence: 'END' } },
  },
  'a full context window': {
    content: [{ text: 'It is' }],
    stopReason: 'model_context_window_exceeded',
  },
  'a guardrail': {
    content: [{ text: 'I may not say that.' }],
    stopReason: 'guardrail_intervened',
    more: { trace: { guardrail: { modelOutput: ['It is mild.'] } } },
  },
  'filtered content': { content: [], stopReason: 'content_filtered' },
  'a malformed call': { content: [{ text: 'weather(' }], stopReason: 'malformed_tool_use' },
  'a stop reason that is not known': { content: [{ text: 'It is' }], stopReason: 'new_reason' },
  'usage of caches, and a tier': {
    usage: {
      inputTokens: 12,
      outputTokens: 5,
      totalTokens: 31,
      cacheReadInputTokens: 8,
      cacheWriteInputTokens: 6,
      cacheDetails: [{ ttl: '1h', inputTokens: 6 }],
    },
    more: { serviceTier: { type: 'priority' } },
  },
  'no usage': { usage: null },
};

/** Of each cloud, in the order in which the golden has them. */
export const cloudAnswers: {
  readonly [D in 'gemini' | 'converse']: readonly CloudAnswer[];
} = {
  gemini: Object.entries(geminiAnswers).map(([name, answer]) => {
    // Ids of a server, not counted on from one test to the next.
    const named = { ...answer, more: { responseId: 'response-1', ...answer.more } };
    return { name, document: () => geminiAnswer(named), stream: () => streamOf(named) };
  }),
  converse: Object.entries(converseAnswers).map(([name, answer]) => ({
    name,
    document: () => converseAnswer(answer),
    stream: () => converseStream(eventsOf(answer)),
  })),
};
