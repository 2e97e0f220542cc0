/**
 * What servers of the messages dialect refuse or skip of a request, one declarative record each, and the look at a
 * request by it. Written against the vendors' documents (wire/messages.md §2 and §3; the pages named beside
 * each), not with the gateway's own traits: a mistake in these would stay hidden.
 */
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { listAt, objectAt } from '../support/reading.ts';

type Names = readonly string[];

export interface MessagesRules {
  readonly name: string;
  readonly model: string;
  /** What the config says of the provider besides its address; absent = Anthropic's service. */
  readonly config?: JsonObject;
  readonly sampling: 'free' | 'one of both' | 'defaults';
  readonly topK: boolean;
  /** Values of `thinking.type`. */
  readonly thinking: Names;
  readonly thinksByDefault?: true;
  /** Thinking excludes sampling, demanded calls and prefill, and needs its blocks back. */
  readonly strictThinking?: true;
  readonly efforts: Names;
  readonly formats: boolean;
  /** `any` and `tool` of `tool_choice`. */
  readonly demands: 'taken' | 'refused' | 'skipped';
  readonly prefill: boolean;
  readonly systemRole: boolean;
  /** Versioned tools, server tools and their blocks, files. */
  readonly native: boolean;
  readonly images: 'none' | 'base64' | 'url';
  readonly documents: boolean;
  readonly maxTokens: number;
  /** Top-level members that are skipped although they ask for something. */
  readonly skipped?: Names;
}

const claude = {
  topK: true,
  formats: true,
  native: true,
  images: 'url',
  documents: true,
  strictThinking: true,
} as const;
const early = { ...claude, thinking: ['enabled', 'disabled'], efforts: [], prefill: true } as const;
const late = {
  ...claude,
  sampling: 'defaults',
  topK: false,
  prefill: false,
  systemRole: true,
  demands: 'taken',
  maxTokens: 128_000,
} as const;
const known = ['low', 'medium', 'high', 'xhigh', 'max'];

const foreign = {
  sampling: 'free',
  topK: true,
  thinking: ['enabled', 'disabled'],
  efforts: [],
  formats: false,
  demands: 'taken',
  prefill: true,
  systemRole: false,
  native: false,
  images: 'none',
  documents: false,
  maxTokens: Infinity,
  skipped: ['container', 'mcp_servers', 'service_tier', 'context_management', 'speed'],
} as const;

function like(vendor: string): JsonObject {
  return { dialect: 'anthropic-messages', like: vendor };
}

export const messagesVendors: readonly MessagesRules[] = [
  {
    ...early,
    name: 'Claude 3.5',
    model: 'claude-3-5-sonnet-20241022',
    sampling: 'free',
    thinking: [],
    formats: false,
    demands: 'taken',
    systemRole: false,
    maxTokens: 8192,
  },
  {
    ...early,
    name: 'Claude 4.5',
    model: 'claude-sonnet-4-5-20250929',
    sampling: 'one of both',
    demands: 'taken',
    systemRole: false,
    maxTokens: 64_000,
  },
  {
    ...early,
    name: 'Claude Opus 4.1',
    model: 'claude-opus-4-1-20250805',
    sampling: 'one of both',
    demands: 'taken',
    systemRole: false,
    maxTokens: 32_000,
  },
  {
    ...late,
    name: 'Claude 4.6',
    model: 'claude-opus-4-6',
    sampling: 'one of both',
    topK: true,
    systemRole: false,
    thinking: ['adaptive', 'enabled', 'disabled'],
    efforts: ['low', 'medium', 'high', 'max'],
  },
  {
    ...late,
    name: 'Claude 4.8',
    model: 'claude-opus-4-8',
    thinking: ['adaptive', 'disabled'],
    efforts: known,
  },
  {
    ...late,
    name: 'Claude 5',
    model: 'claude-sonnet-5',
    thinking: ['adaptive', 'disabled'],
    thinksByDefault: true,
    efforts: known,
  },
  {
    ...late,
    name: 'Claude Sonnet 5.5',
    model: 'claude-sonnet-5-5',
    thinking: ['adaptive', 'between_tools'],
    thinksByDefault: true,
    demands: 'refused',
    efforts: known,
  },
  {
    ...late,
    name: 'Claude Opus 5.5',
    model: 'claude-opus-5-5',
    thinking: ['adaptive'],
    thinksByDefault: true,
    demands: 'refused',
    efforts: known,
  },
  // api-docs.deepseek.com/guides/anthropic_api
  {
    ...foreign,
    name: 'DeepSeek',
    model: 'deepseek-v4-pro',
    topK: false,
    efforts: known,
    config: like('deepseek'),
  },
  // MoonshotAI/Kimi-K2#141: "invalid thinking: only type=enabled is allowed for this model"
  {
    ...foreign,
    name: 'Kimi',
    model: 'kimi-k2.7-code',
    sampling: 'defaults',
    topK: false,
    thinking: ['enabled'],
    images: 'base64',
    config: like('moonshot'),
  },
  { ...foreign, name: 'Z.ai', model: 'glm-4.7', images: 'url', config: like('zai') },
  { ...foreign, name: 'Qwen', model: 'qwen3.6-plus', images: 'url', config: like('qwen') },
  // platform.minimax.io/docs/api-reference/text-anthropic-api
  {
    ...foreign,
    name: 'MiniMax',
    model: 'MiniMax-M2.5',
    topK: false,
    thinking: ['enabled'],
    skipped: [...foreign.skipped, 'stop_sequences'],
    config: like('minimax'),
  },
  // docs.ollama.com/api/anthropic-compatibility
  {
    ...foreign,
    name: 'Ollama',
    model: 'qwen3-coder',
    demands: 'skipped',
    images: 'base64',
    config: like('ollama'),
  },
  { ...foreign, name: 'vLLM', model: 'Qwen/Qwen3-32B', images: 'url', config: like('vllm') },
  {
    ...foreign,
    name: 'LM Studio',
    model: 'gpt-oss-20b',
    images: 'base64',
    config: like('lm-studio'),
  },
  { ...foreign, name: 'llama.cpp', model: 'gemma-3', images: 'base64', config: like('llama-cpp') },
];

/** All that is wrong with a request, each as the path of its member and why. */
export function messagesFaults(rules: MessagesRules, body: JsonObject): readonly string[] {
  const thinking = thinkingOf(rules, body);
  return [
    ...(Number(body['max_tokens']) > rules.maxTokens ? ['max_tokens: too many'] : []),
    ...(rules.skipped ?? []).filter((name) => name in body).map((name) => `${name}: skipped`),
    ...thinking.faults,
    ...samplingFaults(rules, body, thinking.on),
    ...effortFaults(rules, body, thinking.on),
    ...toolFaults(rules, body, thinking.on),
    ...messageFaults(rules, body, thinking.on),
  ];
}

interface Thinking {
  readonly on: boolean;
  readonly faults: readonly string[];
}

function thinkingOf(rules: MessagesRules, body: JsonObject): Thinking {
  const { thinking } = body;
  if (!isObject(thinking)) return { on: rules.thinksByDefault === true, faults: [] };
  const { type, budget_tokens: budget } = thinking;
  const on = type === 'enabled' || type === 'adaptive';
  if (
    !rules.thinking.includes(String(type)) &&
    !(type === 'disabled' && rules.thinking.length === 0)
  ) {
    return { on, faults: [`thinking.type: ${String(type)} is not known`] };
  }
  const tokens = Number(budget);
  const fits = type !== 'enabled' || (tokens >= 1024 && tokens < Number(body['max_tokens']));
  return { on, faults: fits ? [] : [`thinking.budget_tokens: ${tokens}`] };
}

function samplingFaults(
  rules: MessagesRules,
  body: JsonObject,
  thinks: boolean,
): readonly string[] {
  const { temperature, top_p: topP, top_k: topK } = body;
  const fixed = rules.sampling === 'defaults' || (thinks && rules.strictThinking === true);
  return [
    ...(fixed && temperature !== undefined && temperature !== 1 ? ['temperature: only 1'] : []),
    ...(fixed && topP !== undefined && Number(topP) < 0.95 ? ['top_p: not taken'] : []),
    ...(topK !== undefined && (fixed || !rules.topK) ? ['top_k: not taken'] : []),
    ...(rules.sampling === 'one of both' && temperature !== undefined && topP !== undefined
      ? ['top_p: not beside temperature']
      : []),
  ];
}

function effortFaults(rules: MessagesRules, body: JsonObject, thinks: boolean): readonly string[] {
  const config = objectAt(body, 'output_config');
  const { effort, format } = config;
  const off = rules.thinksByDefault === true && !thinks && (effort === 'xhigh' || effort === 'max');
  const unknown = effort !== undefined && !rules.efforts.includes(String(effort));
  const formats = rules.formats ? [] : ['output_config', 'output_format'];
  return [
    ...(unknown || off ? [`output_config.effort: ${String(effort)}`] : []),
    ...(!rules.formats && (format !== undefined || 'output_format' in body)
      ? [`${formats.join(' or ')}: no format`]
      : []),
  ];
}

function toolFaults(rules: MessagesRules, body: JsonObject, thinks: boolean): readonly string[] {
  const type = String(objectAt(body, 'tool_choice')['type']);
  const demanded = type === 'any' || type === 'tool';
  const beside = thinks && rules.strictThinking === true;
  return [
    ...(demanded && (rules.demands !== 'taken' || beside) ? [`tool_choice: ${type}`] : []),
    ...listAt(body, 'tools').flatMap((tool, i) => {
      const versioned = typeof tool['type'] === 'string' && tool['type'] !== 'custom';
      if (versioned) return rules.native ? [] : [`tools.${i}: no schema`];
      return isObject(tool['input_schema']) ? [] : [`tools.${i}.input_schema: missing`];
    }),
  ];
}

const everywhere = ['text', 'thinking', 'tool_use', 'tool_result'];

function messageFaults(rules: MessagesRules, body: JsonObject, thinks: boolean): readonly string[] {
  const messages = listAt(body, 'messages');
  const last = messages.at(-1);
  const continues = last?.['role'] === 'assistant';
  const refused = !rules.prefill || (thinks && rules.strictThinking === true);
  return [
    ...(continues && refused ? ['messages: no prefill'] : []),
    ...messages.flatMap((message, i) => [
      ...(message['role'] === 'system' && !rules.systemRole ? [`messages.${i}.role: system`] : []),
      ...listAt(message, 'content').flatMap((block, j) =>
        blockFaults(rules, block, `messages.${i}.content.${j}`),
      ),
      ...resultFaults(messages, i),
    ]),
  ];
}

function blockFaults(rules: MessagesRules, block: JsonObject, path: string): readonly string[] {
  const type = String(block['type']);
  if (type === 'image') return imageFaults(rules, block, path);
  if (type === 'document') return rules.documents ? [] : [`${path}: document`];
  const inner = listAt(block, 'content').flatMap((each, k) =>
    blockFaults(rules, each, `${path}.content.${k}`),
  );
  const known = rules.native || everywhere.includes(type);
  return known ? inner : [`${path}: ${type}`];
}

function imageFaults(
  { images }: MessagesRules,
  block: JsonObject,
  path: string,
): readonly string[] {
  const form = objectAt(block, 'source')['type'];
  return images === 'url' || images === form ? [] : [`${path}: image`];
}

/** Results stand in the message right behind their calls. */
function resultFaults(messages: readonly JsonObject[], i: number): readonly string[] {
  const idsOf = (message: JsonObject | undefined, type: string, key: string): Json[] =>
    listAt(message ?? {}, 'content')
      .filter((block) => block['type'] === type)
      .map((block) => block[key] ?? null);
  const calls = idsOf(messages[i], 'tool_use', 'id');
  const next = messages.slice(i + 1).find(({ role }) => role !== 'system');
  const results = idsOf(next, 'tool_result', 'tool_use_id');
  return calls.every((id) => results.includes(id)) ? [] : [`messages.${i}: calls without results`];
}
