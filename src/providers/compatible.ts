/**
 * Vendors and engines with a known address and key variable, one row each. A vendor that
 * speaks a known dialect needs nothing else (docs/maintainer/adding-a-provider.md).
 */
import type { DialectId } from '../core/conversation.ts';
import type { Environment } from '../core/cloud.ts';
import type { PriceOrigin } from '../core/money.ts';
import { allEfforts, type UpstreamTraits } from '../core/traits.ts';
import { azureRows } from './clouds/azure.ts';
import { bedrockRow } from './clouds/bedrock.ts';
import { mantleRow } from './clouds/mantle.ts';
import { vertexRow } from './clouds/vertex.ts';
import type { Cloud } from './clouds/cloud.ts';
import { cloudInput } from './clouds/declaration.ts';
import { geminiRow } from './clouds/gemini.ts';
import type { CounterKind } from './http-provider.ts';
import {
  anthropicModelTraits,
  cerebrasModelTraits,
  deepseekModelTraits,
  extensions,
  geminiModelTraits,
  groqModelTraits,
  minimaxModelTraits,
  mistralModelTraits,
  moonshotMessagesTraits,
  moonshotModelTraits,
  openaiModelTraits,
  openrouterModelTraits,
  qwenModelTraits,
  refuses,
  togetherModelTraits,
  xaiModelTraits,
} from './model-traits.ts';
import type { DeclaredProvider } from './registry.ts';

export interface ProviderRow {
  readonly id: string;
  readonly dialect: DialectId;
  readonly baseUrl: string;
  /** Environment variable of the key; a row without one is an engine that needs no key. */
  readonly keyVariable?: string;
  /** The beginning of the vendor's keys, if no other vendor uses it. */
  readonly keyPrefix?: string;
  /** Environment variable that replaces `baseUrl`, if the vendor's SDKs have one. */
  readonly baseUrlVariable?: string;
  /** An engine on its default loopback port, which is probed. */
  readonly probed?: true;
  /** Name of the vendor's list in the price package; engines have none. */
  readonly prices?: string;
  /** The vendor's name in OpenTelemetry, if it differs from the row's id. */
  readonly telemetry?: string;
  /** How an engine counts the tokens of a prompt. */
  readonly counter?: CounterKind;
  /** What this vendor does differently from its dialect's usual server. */
  readonly traits?: Partial<UpstreamTraits>;
  /** The same by model, if models of one vendor differ. */
  readonly modelTraits?: (model: string) => Partial<UpstreamTraits>;
  /** A second address that speaks messages. */
  readonly messages?: MessagesAddress;
  /** What it does differently where it speaks the Responses API, usually at the same address. */
  readonly responses?: ResponsesAddress;
  /** The same by the path of the base address, if a vendor has beta features under another path. */
  readonly pathTraits?: (path: string) => Partial<UpstreamTraits>;
  /** A cloud, whose address the operator's names make; `baseUrl` shows the form of its addresses. */
  readonly cloud?: Cloud;
}

/** Members of messages of servers that refuse unknown ones. */
const strictMembers = ['role', 'content', 'tool_calls', 'tool_call_id'] as const;

/** Takes instructions at any position in the messages, like the servers of most vendors that host their own models. */
const anywhere = { systemAnywhere: true } as const;

/** The messages address of a vendor whose own dialect is another. */
interface MessagesAddress {
  readonly baseUrl: string;
  /** What it does differently from Anthropic's service. */
  readonly traits: Partial<UpstreamTraits>;
  readonly modelTraits?: (model: string) => Partial<UpstreamTraits>;
}

/** The Responses API of a vendor whose own dialect is another. */
interface ResponsesAddress {
  /**
   * Calls of clients of the Responses API go there. Calls of other clients go there if they request reasoning with tools
   * and the model offers that only there. A dialect or an API in the config overrides both.
   */
  readonly preferred?: true;
  /** Absent = the row's address. */
  readonly baseUrl?: string;
  readonly traits?: Partial<UpstreamTraits>;
  /** Absent = the row's traits of models. */
  readonly modelTraits?: (model: string) => Partial<UpstreamTraits>;
}

/**
 * What all messages addresses of other vendors have in common: a switch for thinking whose budget is at most a hint and
 * which is on unless it is switched off, no tools of Anthropic's service, instructions in front only, nothing that
 * holds to a schema.
 */
const foreignMessages = {
  thinking: 'budget',
  thinksByDefault: true,
  efforts: [],
  systemAnywhere: false,
  responseFormat: 'object',
  nativeTools: false,
  skippedFields: [
    'container',
    'mcp_servers',
    'context_management',
    'inference_geo',
    'service_tier',
    'speed',
    'fallbacks',
  ],
} as const satisfies Partial<UpstreamTraits>;

const textOnly = { imageInput: 'none', fileInput: false } as const;

/** Engines translate messages to chat completions themselves, tools and images included. */
const engineMessages = { ...foreignMessages, imageInput: 'base64', fileInput: false } as const;

/** Engines: any stop strings, `top_k`, and a switch of the chat template for reasoning. */
const engine = {
  topK: true,
  stopMax: undefined,
  endUserField: undefined,
  reasoningControl: 'template',
} as const;

const vendors: readonly ProviderRow[] = [
  {
    id: 'openai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.openai.com/v1',
    keyVariable: 'OPENAI_API_KEY',
    keyPrefix: 'sk-proj-',
    prices: 'openai',
    baseUrlVariable: 'OPENAI_BASE_URL',
    traits: {
      ...anywhere,
      maxTokensField: 'max_completion_tokens',
      endUserField: 'safety_identifier',
      serviceTiers: true,
      developerRole: true,
      legacyFunctions: true,
      toolIdMax: 40,
      messageMembers: new Set([
        ...strictMembers,
        'name',
        'refusal',
        'audio',
        'annotations',
        'function_call',
        'prompt_cache_breakpoint',
      ]),
      allowedTools: true,
      customTools: true,
      extensions: [],
    },
    modelTraits: openaiModelTraits,
    responses: {
      preferred: true,
      traits: {
        ...anywhere,
        endUserField: 'safety_identifier',
        serviceTiers: true,
        customTools: true,
        allowedTools: true,
        itemIdPrefixes: true,
        clientMetadata: true,
        compaction: true,
      },
    },
  },
  {
    id: 'anthropic',
    dialect: 'anthropic-messages',
    baseUrl: 'https://api.anthropic.com',
    keyVariable: 'ANTHROPIC_API_KEY',
    keyPrefix: 'sk-ant-',
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
    keyPrefix: 'sk-or-',
    prices: 'openrouter',
    traits: {
      ...anywhere,
      topK: true,
      customTools: true,
      cacheMarks: true,
      developerRole: true,
      reasoningDetails: true,
      reasoningField: 'reasoning',
      webSearch: 'plugin',
      // The vendor accepts all values for all models, and maps them to those of the model.
      reasoningControl: 'openrouter',
      efforts: allEfforts,
      reasoningBudget: true,
    },
    modelTraits: openrouterModelTraits,
    // Its messages address accepts all members of Anthropic's, and maps them to those of the model.
    messages: { baseUrl: 'https://openrouter.ai/api', traits: { systemAnywhere: false } },
    responses: { traits: { ...anywhere, efforts: allEfforts }, modelTraits: () => ({}) },
  },
  {
    id: 'groq',
    dialect: 'openai-chat',
    baseUrl: 'https://api.groq.com/openai/v1',
    keyVariable: 'GROQ_API_KEY',
    keyPrefix: 'gsk_',
    prices: 'groq',
    traits: {
      ...anywhere,
      maxTokensField: 'max_completion_tokens',
      legacyFunctions: true,
      messageMembers: new Set([...strictMembers, 'reasoning', 'function_call', 'function.name']),
      extensions: extensions.groq,
    },
    modelTraits: groqModelTraits,
    // A beta without state; files are not taken.
    responses: { traits: { ...anywhere, fileInput: false } },
  },
  {
    id: 'mistral',
    telemetry: 'mistral_ai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.mistral.ai/v1',
    keyVariable: 'MISTRAL_API_KEY',
    prices: 'mistral',
    // Unknown fields are a 422 there, `stream_options` included.
    traits: {
      oneCapField: true,
      usageOption: false,
      seedField: 'random_seed',
      anyToolWord: true,
      refuses: refuses.mistral,
      extensions: extensions.mistral,
      stopMax: undefined,
      endUserField: undefined,
      prefill: true,
      prefillSwitch: 'prefix',
      nineCharacterToolIds: true,
      schemaRules: 'resolved',
      assistantAfterTools: true,
      thinkingParts: true,
      messageMembers: new Set([...strictMembers, 'prefix', 'tool.name']),
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
      ...anywhere,
      imageInput: 'none',
      oneCapField: true,
      responseFormat: 'object',
      reasoningReplay: true,
      reasoningFiller: '',
      endUserField: undefined,
      stopMax: 16,
      // The vendor maps other values to the known ones.
      reasoningControl: 'thinking-type',
      efforts: allEfforts,
    },
    modelTraits: deepseekModelTraits,
    pathTraits: (path) =>
      path.endsWith('/beta') ? { prefill: true, prefillSwitch: 'prefix' } : {},
    // api-docs.deepseek.com/guides/anthropic_api lists what is skipped and what is not supported.
    messages: {
      baseUrl: 'https://api.deepseek.com/anthropic',
      traits: {
        ...foreignMessages,
        ...textOnly,
        topK: false,
        parallelFlag: false,
        efforts: allEfforts,
      },
    },
  },
  {
    id: 'xai',
    telemetry: 'x_ai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.x.ai/v1',
    keyVariable: 'XAI_API_KEY',
    keyPrefix: 'xai-',
    prices: 'x-ai',
    traits: {
      ...anywhere,
      maxTokensField: 'max_completion_tokens',
      completionExcludesReasoning: true,
      schemaRules: 'resolved',
    },
    modelTraits: xaiModelTraits,
    responses: { traits: { ...anywhere, schemaRules: 'resolved' } },
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
    traits: {
      topK: true,
      efforts: ['none', 'low', 'medium', 'high'],
      extensions: extensions.fireworks,
    },
  },
  {
    id: 'moonshot',
    telemetry: 'moonshot_ai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.moonshot.ai/v1',
    keyVariable: 'MOONSHOT_API_KEY',
    prices: 'moonshotai',
    traits: {
      ...anywhere,
      reasoningReplay: true,
      reasoningFiller: ' ',
      endUserField: undefined,
      efforts: [],
    },
    modelTraits: moonshotModelTraits,
    messages: {
      baseUrl: 'https://api.moonshot.ai/anthropic',
      traits: { ...foreignMessages, imageInput: 'base64', fileInput: false },
      modelTraits: moonshotMessagesTraits,
    },
  },
  {
    id: 'zai',
    dialect: 'openai-chat',
    baseUrl: 'https://api.z.ai/api/paas/v4',
    keyVariable: 'ZAI_API_KEY',
    prices: 'zai',
    traits: {
      ...anywhere,
      oneCapField: true,
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
    messages: {
      baseUrl: 'https://api.z.ai/api/anthropic',
      traits: { ...foreignMessages, fileInput: false },
    },
  },
  {
    id: 'qwen',
    dialect: 'openai-chat',
    baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    keyVariable: 'DASHSCOPE_API_KEY',
    traits: {
      oneCapField: true,
      topK: true,
      responseFormat: 'object',
      endUserField: undefined,
      reasoningControl: 'qwen',
      efforts: [],
      reasoningBudget: true,
    },
    modelTraits: qwenModelTraits,
    messages: {
      baseUrl: 'https://dashscope-intl.aliyuncs.com/apps/anthropic',
      traits: { ...foreignMessages, fileInput: false },
    },
  },
  {
    id: 'minimax',
    dialect: 'anthropic-messages',
    baseUrl: 'https://api.minimax.io/anthropic',
    keyVariable: 'MINIMAX_API_KEY',
    // platform.minimax.io/docs/api-reference/text-anthropic-api lists what is ignored.
    traits: {
      ...foreignMessages,
      topK: false,
      stopMax: 0,
      minTemperature: 0.01,
      fileInput: false,
    },
    modelTraits: minimaxModelTraits,
  },
  {
    id: 'cerebras',
    dialect: 'openai-chat',
    baseUrl: 'https://api.cerebras.ai/v1',
    keyVariable: 'CEREBRAS_API_KEY',
    keyPrefix: 'csk-',
    prices: 'cerebras',
    traits: {
      ...anywhere,
      maxTokensField: 'max_completion_tokens',
      imageInput: 'none',
      messageMembers: new Set([...strictMembers, 'name', 'reasoning']),
      refuses: refuses.cerebras,
      extensions: extensions.cerebras,
    },
    modelTraits: cerebrasModelTraits,
  },
  {
    id: 'gemini-compatible',
    telemetry: 'gcp.gemini',
    dialect: 'openai-chat',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keyVariable: 'GEMINI_API_KEY',
    keyPrefix: 'AIza',
    prices: 'google',
    traits: {
      ...anywhere,
      seed: false,
      stopMax: 5,
      endUserField: undefined,
      reasoningControl: 'gemini',
      callSignatures: true,
      schemaRules: 'openapi',
      messageMembers: new Set([...strictMembers, 'name', 'extra_content']),
      strictSchemas: false,
      refuses: refuses.gemini,
      extensions: extensions.gemini,
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
      oneCapField: true,
      refuses: refuses.ollama,
      toolChoice: false,
      parallelFlag: false,
      imageInput: 'base64',
      schemaRules: 'resolved',
      reasoningControl: 'effort',
      efforts: ['none', 'low', 'medium', 'high'],
    },
    // docs.ollama.com/api/anthropic-compatibility: no choice of tools, images as data only.
    messages: {
      baseUrl: 'http://127.0.0.1:11434',
      traits: { ...engineMessages, toolChoice: false },
    },
    // Other efforts are errors, and so are files and addresses of images.
    responses: {
      traits: {
        toolChoice: false,
        imageInput: 'base64',
        fileInput: false,
        schemaRules: 'resolved',
        efforts: ['none', 'low', 'medium', 'high', 'max'],
      },
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
    messages: {
      baseUrl: 'http://127.0.0.1:8000',
      traits: { ...engineMessages, imageInput: 'url' },
    },
    responses: {},
  },
  {
    id: 'lm-studio',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:1234/v1',
    probed: true,
    traits: {
      ...engine,
      oneCapField: true,
      imageInput: 'base64',
      reasoningControl: 'effort',
      schemaRules: 'resolved',
      bufferToolArguments: true,
    },
    messages: { baseUrl: 'http://127.0.0.1:1234', traits: engineMessages },
    responses: { traits: { imageInput: 'base64', schemaRules: 'resolved' } },
  },
  {
    id: 'llama-cpp',
    dialect: 'openai-chat',
    baseUrl: 'http://127.0.0.1:8080/v1',
    probed: true,
    counter: 'llama-cpp',
    traits: { ...engine, oneCapField: true, imageInput: 'base64', prefill: true },
    messages: { baseUrl: 'http://127.0.0.1:8080', traits: engineMessages },
    // It converts them to chat completions, where tool results are text.
    responses: { traits: { imageInput: 'base64', fileInput: false, toolResultMedia: false } },
  },
];

export const providerRows: readonly ProviderRow[] = [
  ...vendors,
  geminiRow,
  ...azureRows(vendors),
  vertexRow(vendors),
  bedrockRow(vendors),
  mantleRow(vendors),
];

/** The row of a known vendor, or undefined. */
export function providerRow(id: string): ProviderRow | undefined {
  return providerRows.find((row) => row.id === id);
}

/** The row of a vendor for one of its dialects; undefined if it does not speak that dialect. */
export function rowIn(
  row: ProviderRow | undefined,
  dialect: ProviderRow['dialect'] | undefined,
): ProviderRow | undefined {
  if (row === undefined || dialect === undefined || row.dialect === dialect) return row;
  const { messages, responses } = row;
  const { traits: _traits, modelTraits, pathTraits: _paths, counter: _counter, ...rest } = row;
  if (dialect === 'anthropic-messages' && messages !== undefined) {
    return { ...rest, dialect, ...messages };
  }
  if (dialect !== 'openai-responses' || responses === undefined) return undefined;
  return { ...rest, dialect, ...(modelTraits === undefined ? {} : { modelTraits }), ...responses };
}

/** The vendor whose Responses address this is, by its host; undefined for all others. */
export function responsesRowAt(baseUrl: string | undefined): ProviderRow | undefined {
  const row = rowAt(baseUrl);
  return row?.probed === true ? undefined : rowIn(row, 'openai-responses');
}

/** The vendor whose messages address this is, by its host; undefined for all others. */
export function messagesRowAt(baseUrl: string | undefined): ProviderRow | undefined {
  const host = hostOf(baseUrl);
  if (host === undefined) return undefined;
  const remote = providerRows.filter(({ probed }) => probed !== true);
  const row = remote.find(
    ({ dialect, baseUrl: own, messages }) =>
      hostOf(dialect === 'anthropic-messages' ? own : messages?.baseUrl) === host,
  );
  return rowIn(row, 'anthropic-messages');
}

/** Undefined where the text is not an address. */
function hostOf(address: string | undefined): string | undefined {
  return address !== undefined && URL.canParse(address) ? new URL(address).host : undefined;
}

// Where the prices of a provider's models are: a vendor's list, or nowhere but in the config.

/** The embedded engine's provider. */
const embedded = 'local';

type PricedProvider = Pick<DeclaredProvider, 'id'> & Partial<DeclaredProvider>;

/**
 * A provider has the prices of the vendor with its name, its `like` or its address. An own engine
 * has none: only its owner knows the cost.
 */
export function priceOrigins(
  declared: readonly PricedProvider[],
  env: Environment,
): (provider: string) => PriceOrigin | undefined {
  const byId = new Map(declared.map((each) => [each.id, each]));
  const origin = (id: string): PriceOrigin | undefined => {
    if (id === embedded) return { kind: 'free' };
    const own = byId.get(id);
    const row = providerRow(own?.like ?? id) ?? rowAt(own?.baseUrl);
    if (row?.prices === undefined) return undefined;
    const models = own?.cloud?.deployments;
    const { listedAs, priceOf } = row.cloud ?? {};
    const input = cloudInput({ headers: new Map(), ...own }, env);
    return {
      kind: 'list',
      name: row.prices,
      ...(models === undefined ? {} : { models }),
      ...(row.cloud === undefined ? {} : { ownNames: true }),
      ...(listedAs === undefined ? {} : { listedAs }),
      ...(priceOf === undefined
        ? {}
        : { adjusted: (model, price) => priceOf(input, model, price) }),
    };
  };
  // Each call asks for it, and the search parses the address of every row.
  const found = new Map(declared.map(({ id }) => [id, origin(id)]));
  return (id) => (found.has(id) ? found.get(id) : origin(id));
}

function rowAt(baseUrl: string | undefined): ProviderRow | undefined {
  const host = hostOf(baseUrl);
  return host === undefined ? undefined : providerRows.find((row) => hostOf(row.baseUrl) === host);
}

/** `gen_ai.provider.name` of OpenTelemetry's GenAI conventions; a provider that they do not know keeps its own id. */
export function telemetryName(providerId: string): string {
  return providerRow(providerId)?.telemetry ?? providerId;
}
