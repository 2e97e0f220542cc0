/** Models of all known vendors, at least one for each way in which models differ (src/providers). */
import type { UpstreamDialect } from '../../src/core/dialect.ts';
import type { UpstreamTraits } from '../../src/core/traits.ts';
import {
  providerRow,
  providerRows,
  rowIn,
  type ProviderRow,
} from '../../src/providers/compatible.ts';
import { createHttpProvider } from '../../src/providers/http-provider.ts';
import { upstreamOnlyDialects, type UpstreamDialect as Spoken } from '../support/dialects.ts';

type UpstreamOnly = (typeof upstreamOnlyDialects)[number];

export interface KnownModel {
  /** `vendor/model`. */
  readonly name: string;
  readonly vendor: string;
  readonly model: string;
  readonly speaks: Spoken;
  readonly dialect: UpstreamDialect;
  readonly traits: UpstreamTraits;
}

const models: { readonly [vendor: string]: readonly string[] } = {
  openai: [
    'gpt-4.1',
    'gpt-4o-search-preview',
    'o1',
    'o3',
    'gpt-5',
    'gpt-5-pro',
    'gpt-5.1',
    'gpt-5.2',
    'gpt-5.6',
  ],
  anthropic: [
    'claude-3-5-haiku-20241022',
    'claude-3-7-sonnet-20250219',
    'claude-opus-4-1-20250805',
    'claude-sonnet-4-5-20250929',
    'claude-opus-4-6',
    'claude-opus-4-8',
    'claude-sonnet-5',
    'claude-sonnet-5-5',
    'claude-opus-5-5',
  ],
  openrouter: ['anthropic/claude-opus-4.8', 'openai/gpt-5.2', 'google/gemini-3-pro'],
  groq: ['openai/gpt-oss-120b', 'qwen/qwen3-32b', 'llama-3.3-70b-versatile'],
  mistral: ['mistral-large-latest', 'mistral-small-latest', 'magistral-medium-latest'],
  deepseek: ['deepseek-chat', 'deepseek-v4-pro'],
  xai: ['grok-3', 'grok-3-mini', 'grok-4', 'grok-4.3', 'grok-4.1-fast-non-reasoning'],
  together: ['openai/gpt-oss-20b', 'meta-llama/Llama-3.3-70B-Instruct-Turbo'],
  fireworks: ['accounts/fireworks/models/glm-4p6'],
  moonshot: ['kimi-k2.6', 'kimi-k2.7-code', 'kimi-k3'],
  zai: ['glm-4.7'],
  qwen: ['qwen3-max', 'qwen3-coder-plus'],
  minimax: ['MiniMax-M2.5', 'MiniMax-M3'],
  cerebras: ['gpt-oss-120b', 'zai-glm-4.7', 'llama3.1-8b'],
  gemini: ['gemini-3-pro-preview'],
  vertex: ['gemini-2.5-pro', 'meta/llama-3.3-70b-instruct-maas'],
  'gemini-compatible': ['gemini-2.5-flash', 'gemini-2.5-pro', 'gemini-3-pro-preview'],
  azure: ['gpt-4.1', 'gpt-5-mini', 'DeepSeek-V4', 'Llama-3.3-70B-Instruct', 'my-deployment'],
  foundry: ['gpt-5.1', 'grok-4'],
  bedrock: ['claude-sonnet-4-5-20250929', 'claude-opus-4-8'],
  'bedrock-mantle': ['openai.gpt-oss-120b', 'mistral.mistral-large-3'],
  ollama: ['qwen3'],
  vllm: ['Qwen/Qwen3-32B'],
  'lm-studio': ['qwen3-8b'],
  'llama-cpp': ['gemma-3'],
};

const dialects = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
  gemini: 'gemini',
  converse: 'bedrock-converse',
} as const;

/** The models of clouds, by the dialect that the name decides. */
const ofClouds: {
  readonly [D in UpstreamOnly]: readonly [vendor: string, models: readonly string[]];
} = {
  gemini: ['gemini', ['gemini-2.0-flash', 'gemini-2.5-pro', 'gemini-3-pro-preview']],
  converse: [
    'bedrock',
    [
      'claude-sonnet-4-5-20250929',
      'claude-opus-4-8',
      'amazon.nova-pro',
      'amazon.nova-2-lite',
      'mistral.mistral-large-2407',
      'mistral.voxtral-small-24b-2507',
      'meta.llama3-3-70b-instruct',
      'openai.gpt-oss-120b-1',
    ],
  ],
};

function modelsOfCloud(speaks: UpstreamOnly): readonly KnownModel[] {
  const [vendor, names] = ofClouds[speaks];
  const row = providerRow(vendor)?.cloud?.rowOf(dialects[speaks]);
  if (row === undefined) throw new Error(`${vendor} is no cloud`);
  return modelsOf({ ...row, id: vendor }, speaks, names);
}

/** The known models that are asked in a dialect. */
export function knownModels(speaks: Spoken): readonly KnownModel[] {
  if (speaks === 'gemini' || speaks === 'converse') return modelsOfCloud(speaks);
  return providerRows.flatMap((row) => {
    const spoken = rowIn(row, dialects[speaks]);
    return spoken === undefined ? [] : modelsOf(spoken, speaks);
  });
}

function modelsOf(
  row: ProviderRow,
  speaks: KnownModel['speaks'],
  names: readonly string[] = models[row.id] ?? ['some-model'],
): readonly KnownModel[] {
  const { id: vendor, dialect, baseUrl } = row;
  const provider = createHttpProvider({ id: vendor, dialect, baseUrl, row });
  return names.map((model) => ({
    name: `${vendor}/${model}`,
    vendor,
    model,
    speaks,
    dialect: provider.dialect,
    traits: provider.traits(model),
  }));
}

/** Vendors without a model here. */
export function vendorsWithoutModels(): readonly string[] {
  return providerRows.map(({ id }) => id).filter((id) => models[id] === undefined);
}
