/**
 * Vendors and engines whose address and key variable are customary, one row each. A vendor that
 * speaks a known dialect needs nothing else (docs/adding-a-provider.md).
 */
import type { UpstreamTraits } from '../core/traits.ts';
import { anthropicModelTraits, openaiModelTraits } from './model-traits.ts';

export interface ProviderRow {
  readonly id: string;
  readonly dialect: 'openai-chat' | 'anthropic-messages';
  readonly baseUrl: string;
  /** Environment variable of the key; a row without one is an engine that needs no key. */
  readonly keyVariable?: string;
  /** Environment variable that replaces `baseUrl`, where SDKs of the vendor honour one. */
  readonly baseUrlVariable?: string;
  /** An engine on a customary loopback port, found by asking. */
  readonly probed?: true;
  /** What this vendor does differently from its dialect's usual server. */
  readonly traits?: Partial<UpstreamTraits>;
  /** The same by model, where models of one vendor differ. */
  readonly modelTraits?: (model: string) => Partial<UpstreamTraits>;
}

const noKnobs = { topK: false, efforts: [], endUserField: 'user' } as const;
const engine = {
  topK: true,
  endUserField: undefined,
  prefill: false,
  efforts: ['none', 'low', 'medium', 'high'],
} as const;

export const providerRows: readonly ProviderRow[] = [
  {
    id: 'openai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.openai.com/v1',
    keyVariable: 'OPENAI_API_KEY',
    baseUrlVariable: 'OPENAI_BASE_URL',
    traits: { maxTokensField: 'max_completion_tokens', endUserField: 'safety_identifier' },
    modelTraits: openaiModelTraits,
  },
  {
    id: 'anthropic',
    dialect: 'anthropic-messages',
    baseUrl: 'https://api.anthropic.com',
    keyVariable: 'ANTHROPIC_API_KEY',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    modelTraits: anthropicModelTraits,
  },
  {
    id: 'openrouter',
    dialect: 'openai-chat',
    baseUrl: 'https://openrouter.ai/api/v1',
    keyVariable: 'OPENROUTER_API_KEY',
    traits: { topK: true, cacheMarks: true, reasoningDetails: true },
  },
  {
    id: 'groq',
    dialect: 'openai-chat',
    baseUrl: 'https://api.groq.com/openai/v1',
    keyVariable: 'GROQ_API_KEY',
    traits: {
      ...noKnobs,
      maxTokensField: 'max_completion_tokens',
      efforts: ['none', 'low', 'medium', 'high'],
    },
  },
  {
    id: 'mistral',
    dialect: 'openai-chat',
    baseUrl: 'https://api.mistral.ai/v1',
    keyVariable: 'MISTRAL_API_KEY',
    // Unknown fields are a 422 there, `stream_options` and `seed` (its name is random_seed) included.
    traits: {
      ...noKnobs,
      usageOption: false,
      seed: false,
      endUserField: undefined,
      prefill: false,
      nineCharacterToolIds: true,
    },
  },
  {
    id: 'deepseek',
    dialect: 'openai-chat',
    baseUrl: 'https://api.deepseek.com',
    keyVariable: 'DEEPSEEK_API_KEY',
    traits: {
      ...noKnobs,
      responseFormat: 'object',
      reasoningReplay: true,
      endUserField: undefined,
    },
  },
  {
    id: 'xai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.x.ai/v1',
    keyVariable: 'XAI_API_KEY',
    traits: {
      ...noKnobs,
      maxTokensField: 'max_completion_tokens',
      completionExcludesReasoning: true,
      efforts: ['low', 'high'],
    },
  },
  {
    id: 'together',
    dialect: 'openai-chat',
    baseUrl: 'https://api.together.xyz/v1',
    keyVariable: 'TOGETHER_API_KEY',
    traits: { ...noKnobs, topK: true },
  },
  {
    id: 'fireworks',
    dialect: 'openai-chat',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    keyVariable: 'FIREWORKS_API_KEY',
    traits: { topK: true, efforts: ['none', 'low', 'medium', 'high'] },
  },
  {
    id: 'moonshot',
    dialect: 'openai-chat',
    baseUrl: 'https://api.moonshot.ai/v1',
    keyVariable: 'MOONSHOT_API_KEY',
    traits: { ...noKnobs, reasoningReplay: true, endUserField: undefined },
  },
  {
    id: 'cerebras',
    dialect: 'openai-chat',
    baseUrl: 'https://api.cerebras.ai/v1',
    keyVariable: 'CEREBRAS_API_KEY',
    traits: {
      ...noKnobs,
      maxTokensField: 'max_completion_tokens',
      efforts: ['low', 'medium', 'high'],
    },
  },
  {
    id: 'gemini',
    dialect: 'openai-chat',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keyVariable: 'GEMINI_API_KEY',
    traits: {
      ...noKnobs,
      seed: false,
      endUserField: undefined,
      efforts: ['none', 'low', 'medium', 'high'],
    },
  },
  {
    id: 'ollama',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:11434/v1',
    probed: true,
    traits: {
      ...engine,
      topK: false,
      toolChoice: false,
      parallelFlag: false,
      imageInput: 'base64',
    },
  },
  {
    id: 'vllm',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:8000/v1',
    probed: true,
    traits: engine,
  },
  {
    id: 'lm-studio',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:1234/v1',
    probed: true,
    traits: { ...engine, imageInput: 'base64' },
  },
  {
    id: 'llama-cpp',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:8080/v1',
    probed: true,
    traits: { ...engine, imageInput: 'base64', prefill: true },
  },
];

/** The row of a known vendor, or undefined. */
export function providerRow(id: string): ProviderRow | undefined {
  return providerRows.find((row) => row.id === id);
}
