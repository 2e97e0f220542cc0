/**
 * Vendors and engines whose address and key variable are customary, one row each. A vendor that
 * speaks a known dialect needs nothing else (docs/adding-a-provider.md).
 */
import { allEfforts, type UpstreamTraits } from '../core/traits.ts';
import type { CounterKind } from './counters.ts';
import {
  anthropicModelTraits,
  cerebrasModelTraits,
  deepseekModelTraits,
  geminiModelTraits,
  groqModelTraits,
  mistralModelTraits,
  moonshotModelTraits,
  openaiModelTraits,
  openrouterModelTraits,
  qwenModelTraits,
  togetherModelTraits,
  xaiModelTraits,
} from './model-traits.ts';

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
  /** Name of the vendor's list in the price package; engines have none. */
  readonly prices?: string;
  /** What OpenTelemetry calls the vendor, where it has another word than the row. */
  readonly telemetry?: string;
  /** How an engine counts the tokens of a prompt. */
  readonly counter?: CounterKind;
  /** What this vendor does differently from its dialect's usual server. */
  readonly traits?: Partial<UpstreamTraits>;
  /** The same by model, where models of one vendor differ. */
  readonly modelTraits?: (model: string) => Partial<UpstreamTraits>;
  /** The same by the path of the base address, where a vendor has beta features behind another one. */
  readonly pathTraits?: (path: string) => Partial<UpstreamTraits>;
}

/** Engines: any stop strings, `top_k`, and a switch of the chat template for reasoning. */
const engine = {
  topK: true,
  stopMax: undefined,
  endUserField: undefined,
  reasoningControl: 'template',
} as const;

export const providerRows: readonly ProviderRow[] = [
  {
    id: 'openai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.openai.com/v1',
    keyVariable: 'OPENAI_API_KEY',
    prices: 'openai',
    baseUrlVariable: 'OPENAI_BASE_URL',
    traits: {
      maxTokensField: 'max_completion_tokens',
      endUserField: 'safety_identifier',
      serviceTiers: true,
    },
    modelTraits: openaiModelTraits,
  },
  {
    id: 'anthropic',
    dialect: 'anthropic-messages',
    baseUrl: 'https://api.anthropic.com',
    keyVariable: 'ANTHROPIC_API_KEY',
    prices: 'anthropic',
    baseUrlVariable: 'ANTHROPIC_BASE_URL',
    traits: { dropsBillingHeader: false },
    modelTraits: anthropicModelTraits,
  },
  {
    id: 'openrouter',
    dialect: 'openai-chat',
    baseUrl: 'https://openrouter.ai/api/v1',
    keyVariable: 'OPENROUTER_API_KEY',
    prices: 'openrouter',
    traits: {
      topK: true,
      cacheMarks: true,
      reasoningDetails: true,
      reasoningField: 'reasoning',
      webSearch: 'plugin',
      // All words are taken for all models and brought to what each knows.
      reasoningControl: 'openrouter',
      efforts: allEfforts,
      reasoningBudget: true,
    },
    modelTraits: openrouterModelTraits,
  },
  {
    id: 'groq',
    dialect: 'openai-chat',
    baseUrl: 'https://api.groq.com/openai/v1',
    keyVariable: 'GROQ_API_KEY',
    prices: 'groq',
    traits: { maxTokensField: 'max_completion_tokens', reasoningField: 'reasoning' },
    modelTraits: groqModelTraits,
  },
  {
    id: 'mistral',
    telemetry: 'mistral_ai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.mistral.ai/v1',
    keyVariable: 'MISTRAL_API_KEY',
    prices: 'mistral',
    // Unknown fields are a 422 there, `stream_options` and `seed` (its name is random_seed) included.
    traits: {
      usageOption: false,
      seed: false,
      stopMax: undefined,
      endUserField: undefined,
      prefill: true,
      prefillSwitch: 'prefix',
      nineCharacterToolIds: true,
      schemaRules: 'resolved',
    },
    modelTraits: mistralModelTraits,
  },
  {
    id: 'deepseek',
    dialect: 'openai-chat',
    baseUrl: 'https://api.deepseek.com',
    keyVariable: 'DEEPSEEK_API_KEY',
    prices: 'deepseek',
    traits: {
      responseFormat: 'object',
      reasoningReplay: true,
      reasoningFiller: '',
      endUserField: undefined,
      stopMax: 16,
      // Words between the known ones are brought to those by the vendor.
      reasoningControl: 'thinking-type',
      efforts: allEfforts,
    },
    modelTraits: deepseekModelTraits,
    pathTraits: (path) =>
      path.endsWith('/beta') ? { prefill: true, prefillSwitch: 'prefix' } : {},
  },
  {
    id: 'xai',
    telemetry: 'x_ai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.x.ai/v1',
    keyVariable: 'XAI_API_KEY',
    prices: 'x-ai',
    traits: {
      maxTokensField: 'max_completion_tokens',
      completionExcludesReasoning: true,
      schemaRules: 'resolved',
    },
    modelTraits: xaiModelTraits,
  },
  {
    id: 'together',
    dialect: 'openai-chat',
    baseUrl: 'https://api.together.xyz/v1',
    keyVariable: 'TOGETHER_API_KEY',
    prices: 'together',
    traits: { topK: true },
    modelTraits: togetherModelTraits,
  },
  {
    id: 'fireworks',
    dialect: 'openai-chat',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    keyVariable: 'FIREWORKS_API_KEY',
    prices: 'fireworks',
    traits: { topK: true, efforts: ['none', 'low', 'medium', 'high'] },
  },
  {
    id: 'moonshot',
    telemetry: 'moonshot_ai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.moonshot.ai/v1',
    keyVariable: 'MOONSHOT_API_KEY',
    prices: 'moonshotai',
    traits: { reasoningReplay: true, reasoningFiller: ' ', endUserField: undefined, efforts: [] },
    modelTraits: moonshotModelTraits,
  },
  {
    id: 'zai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.z.ai/api/paas/v4',
    keyVariable: 'ZAI_API_KEY',
    prices: 'zai',
    traits: {
      usageOption: false,
      toolChoice: false,
      parallelFlag: false,
      seed: false,
      stopMax: 1,
      responseFormat: 'object',
      endUserField: undefined,
      reasoningControl: 'thinking-type',
      efforts: [],
      reasoningReplay: true,
    },
  },
  {
    id: 'qwen',
    dialect: 'openai-chat',
    baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    keyVariable: 'DASHSCOPE_API_KEY',
    traits: {
      topK: true,
      responseFormat: 'object',
      endUserField: undefined,
      reasoningControl: 'qwen',
      efforts: [],
      reasoningBudget: true,
    },
    modelTraits: qwenModelTraits,
  },
  {
    id: 'cerebras',
    dialect: 'openai-chat',
    baseUrl: 'https://api.cerebras.ai/v1',
    keyVariable: 'CEREBRAS_API_KEY',
    prices: 'cerebras',
    traits: { maxTokensField: 'max_completion_tokens', reasoningField: 'reasoning' },
    modelTraits: cerebrasModelTraits,
  },
  {
    id: 'gemini',
    telemetry: 'gcp.gemini',
    dialect: 'openai-chat',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keyVariable: 'GEMINI_API_KEY',
    prices: 'google',
    traits: {
      seed: false,
      stopMax: 5,
      endUserField: undefined,
      reasoningControl: 'gemini',
      callSignatures: true,
      schemaRules: 'openapi',
    },
    modelTraits: geminiModelTraits,
  },
  {
    id: 'ollama',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:11434/v1',
    probed: true,
    traits: {
      ...engine,
      reasoningField: 'reasoning',
      topK: false,
      toolChoice: false,
      parallelFlag: false,
      imageInput: 'base64',
      schemaRules: 'resolved',
      reasoningControl: 'effort',
      efforts: ['none', 'low', 'medium', 'high'],
    },
  },
  {
    id: 'vllm',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:8000/v1',
    probed: true,
    counter: 'vllm',
    traits: {
      ...engine,
      prefill: true,
      prefillSwitch: 'continue_final_message',
      reasoningField: 'reasoning',
      bufferToolArguments: true,
    },
  },
  {
    id: 'lm-studio',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:1234/v1',
    probed: true,
    traits: {
      ...engine,
      imageInput: 'base64',
      reasoningControl: 'effort',
      schemaRules: 'resolved',
      bufferToolArguments: true,
    },
  },
  {
    id: 'llama-cpp',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:8080/v1',
    probed: true,
    counter: 'llama-cpp',
    traits: { ...engine, imageInput: 'base64', prefill: true },
  },
];

/** The row of a known vendor, or undefined. */
export function providerRow(id: string): ProviderRow | undefined {
  return providerRows.find((row) => row.id === id);
}
