/**
 * What models of one vendor do differently, by their names. Unknown names get the newest behaviour,
 * since new models follow it.
 */
import type { Effort } from '../core/conversation.ts';
import type { UpstreamTraits } from '../core/traits.ts';

/** Finds the traits of a model: those of the first row whose pattern fits its name. */
type Rows = readonly (readonly [name: RegExp, traits: Partial<UpstreamTraits>])[];

function lookUp(rows: Rows, model: string): Partial<UpstreamTraits> {
  return rows.find(([name]) => name.test(model))?.[1] ?? {};
}

const noEffort = { reasoningControl: 'none', efforts: [] } as const;
const lowToHigh: readonly Effort[] = ['low', 'medium', 'high'];
const noneToHigh: readonly Effort[] = ['none', ...lowToHigh];

/** Words of effort by generation of GPT-5 and later; each refuses the ones that it does not list. */
const openaiEfforts: Rows = [
  [/^o\d/, { efforts: lowToHigh }],
  [/^gpt-5-pro/, { efforts: ['high'] }],
  [/^gpt-5\.\d+-pro/, { efforts: ['medium', 'high', 'xhigh'] }],
  [/^gpt-5\.\d+-chat/, { efforts: ['medium'] }],
  [/^gpt-5(\.1)?-codex(?!-max)/, { efforts: lowToHigh }],
  [/-codex/, { efforts: [...lowToHigh, 'xhigh'] }],
  [/^gpt-5(-|$)/, { efforts: ['minimal', ...lowToHigh] }],
  [/^gpt-5\.1/, { efforts: noneToHigh }],
  [/^gpt-5\.[2-5](\D|$)/, { efforts: [...noneToHigh, 'xhigh'] }],
  [/./, { efforts: [...noneToHigh, 'xhigh', 'max'] }],
];
const openaiWithoutReasoning = /^(gpt-3|gpt-4|gpt-5-chat|gpt-audio|chatgpt-4|davinci|babbage)/;
const openaiSearch = /-search(-|$)/;
const toolsWithReasoning = /^(o\d|gpt-5(\.[01])?(-|$))/;
/** `prompt_cache_breakpoint` came with GPT-5.6 (types of the vendor's SDK). */
const openaiBefore56 = /^(o\d|gpt-5(\.[0-5])?(-|$))/;

/** OpenAI: reasoning models know `developer` and effort and refuse sampling and stop strings. */
export function openaiModelTraits(name: string): Partial<UpstreamTraits> {
  const model = name.replace(/^ft:/, '');
  if (openaiSearch.test(model)) {
    return {
      ...noEffort,
      samplingAllowed: false,
      webSearch: 'options',
      refuses: refuses.openaiSearch,
    };
  }
  if (openaiWithoutReasoning.test(model)) {
    return { ...noEffort, refuses: refuses.openaiWithoutReasoning };
  }
  const isFirst = /^o\d/.test(model);
  return {
    ...lookUp(openaiEfforts, model),
    oneCapField: true,
    parallelFlag: !isFirst,
    refuses: isFirst ? refuses.openaiFirst : refuses.openaiReasoning,
    systemRole: 'developer',
    samplingAllowed: false,
    reasonsFirst: true,
    // Later models take `stop` while they do not reason, and it is not documented which: counted as
    // unknown, since the gateway can cut the text itself. o1 is documented to take it.
    ...(model.startsWith('o1') ? {} : { stopMax: 0 }),
    toolsExcludeReasoning: !toolsWithReasoning.test(model),
    cacheBreakpoints: !openaiBefore56.test(model),
  };
}

/** What makers call models that reason before they speak, wherever they run. */
const reasonerNames =
  /(^|[^a-z0-9])(o[134]|r1|qwq|magistral|gpt-oss|thinking|reasoner|reasoning|deep-?think|deep-?research)([^a-z0-9]|$)/i;
const nonReasoner = /non-?reasoning|non-?thinking/i;

/** What a model's name says of it at any server. */
export function namedTraits(model: string): Partial<UpstreamTraits> {
  return reasonerNames.test(model) && !nonReasoner.test(model) ? { reasonsFirst: true } : {};
}

interface Claude {
  readonly family: string;
  /** 4.5 is 405, so that 4.10 is more. */
  readonly version: number;
}

/** `claude-opus-4-5-20251101`, `claude-3-7-sonnet`, `anthropic/claude-opus-4.8`, `claude-opus-4@2025…`. */
function readClaude(model: string): Claude | undefined {
  const current = /claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(model);
  if (current !== null) {
    const [, family = '', major, minor = '0'] = current;
    return { family, version: Number(major) * 100 + Number(minor) };
  }
  const early = /claude-(\d)(?:[-.](\d{1,2}))?(?!\d)(?:-([a-z]+))?/.exec(model);
  if (early === null) return undefined;
  const [, major, minor = '0', family = ''] = early;
  return { family, version: Number(major) * 100 + Number(minor) };
}

/** Models that came after all known ones behave as those. */
const newest = 10_000;

/** Anthropic: how thinking is requested, whether sampling is still taken, what is enforced. */
export function anthropicModelTraits(model: string): Partial<UpstreamTraits> {
  const { family, version } = readClaude(model) ?? unversioned(model);
  return {
    ...claudeThinking(family, version),
    ...claudeLimit(family, version),
    systemAnywhere: version >= 408,
    samplingAllowed: version < 407,
    temperatureExcludesTopP: version >= 401 && version < 407,
    prefill: version < 406,
    responseFormat: version >= 405 || version === 401 ? 'schema' : 'none',
    refusesForcedTools: isLatest(family, version),
    fastMode: family === 'opus' && version >= 408,
    defaultMaxOutputTokens: claudeOutputCap(version),
  };
}

function unversioned(model: string): Claude {
  if (/claude-(2|instant)/.test(model)) return { family: '', version: 200 };
  // The one model without a number came between 4.6 and 4.7.
  if (model.includes('claude-mythos-preview')) return { family: 'mythos', version: 406 };
  return { family: '', version: newest };
}

/** Those whose thinking cannot be fully switched off refuse a demanded tool call as well. */
function isLatest(family: string, version: number): boolean {
  if (family === 'fable' || family === 'mythos') return version >= 501;
  return version >= 505 && family !== 'haiku';
}

function claudeThinking(family: string, version: number): Partial<UpstreamTraits> {
  if (version < 307) return { thinking: 'none', ...noEffort };
  if (version < 406) {
    // The only one of them that takes an effort as well as a budget.
    const efforts = family === 'opus' && version === 405 ? lowToHigh : [];
    return { thinking: 'budget', strictThinking: true, efforts };
  }
  return {
    thinking: 'adaptive',
    strictThinking: true,
    refusesBudgets: version >= 407,
    thinkingOff: claudeThinkingOff(family, version),
    thinksByDefault: version >= 500,
    efforts: version < 407 ? [...lowToHigh, 'max'] : [...lowToHigh, 'xhigh', 'max'],
  };
}

function claudeThinkingOff(
  family: string,
  version: number,
): NonNullable<UpstreamTraits['thinkingOff']> {
  if (family === 'fable' || family === 'mythos') return 'never';
  if (version < 505 || family === 'haiku') return 'disabled';
  return family === 'sonnet' ? 'between_tools' : 'never';
}

/** Caps above the model's own are refused; of models that are not known yet, none is known. */
function claudeLimit(family: string, version: number): Partial<UpstreamTraits> {
  if (version >= 600) return {};
  if (version >= 406) return { maxOutputTokens: 128_000 };
  if (version >= 405) return { maxOutputTokens: 64_000 };
  if (version >= 400) return { maxOutputTokens: family === 'opus' ? 32_000 : 64_000 };
  if (version >= 307) return { maxOutputTokens: 128_000 };
  return { maxOutputTokens: version < 305 ? 4096 : 8192 };
}

/**
 * What the models allow at most. Before 4.5 a cap that does not fit into the rest of the context
 * window is refused, so those get less than they could have.
 */
function claudeOutputCap(version: number): number {
  if (version < 305) return 4096;
  if (version < 307) return 8192;
  if (version < 405) return 32_000;
  return version < 406 ? 64_000 : 128_000;
}

/** xAI: reasoning models refuse `stop` and penalties, and most of them a word of effort. */
export function xaiModelTraits(model: string): Partial<UpstreamTraits> {
  const reasons = { stopMax: 0, refuses: refuses.xaiReasoning } as const;
  return lookUp(
    [
      [/^grok-3-mini/, { efforts: ['low', 'high'], ...reasons }],
      [/non-reasoning|^grok-([12]|3(?!-mini))/, noEffort],
      [/^grok-(4($|-)|4\.([01]|20)(\D|$)|code)/, { ...noEffort, ...reasons, thinkingOff: 'never' }],
      [/^grok-4\.3/, { efforts: noneToHigh, ...reasons }],
      [/./, { efforts: lowToHigh, ...reasons }],
    ],
    model,
  );
}

/** Models that do not reason refuse the reasoning of earlier turns where the others take it. */
const reasoningBack = { reasoningField: 'reasoning' } as const;

/** Groq: the models are of many makers. Qwen's own word for "on" is the default. Llama 4 sees images. */
export function groqModelTraits(model: string): Partial<UpstreamTraits> {
  const reasons = /gpt-oss|qwen|deepseek-r1/.test(model);
  return {
    imageInput: /llama-4/.test(model) ? 'url' : 'none',
    ...lookUp(
      [
        [/gpt-oss/, { efforts: lowToHigh, ...reasoningBack }],
        // Unasked, the reasoning would be in the answer's text.
        [/qwen/, { efforts: ['none'], always: { reasoning_format: 'parsed' }, ...reasoningBack }],
        [/./, noEffort],
      ],
      model,
    ),
    refuses: reasons ? refuses.groq : refuses.groqWithoutReasoning,
    // Of the others, schemas are a 400.
    ...(/gpt-oss|llama-4|kimi/.test(model) ? {} : { responseFormat: 'object' }),
  };
}

/** Cerebras: the same, with other words. */
export function cerebrasModelTraits(model: string): Partial<UpstreamTraits> {
  return lookUp(
    [
      [/gpt-oss/, { efforts: lowToHigh, ...reasoningBack }],
      [/glm/, { efforts: ['none'], ...reasoningBack }],
      [/qwen.{0,40}thinking/, { ...noEffort, ...reasoningBack }],
      [/./, noEffort],
    ],
    model,
  );
}

/** Together: only the open GPT models take a word of effort. */
export function togetherModelTraits(model: string): Partial<UpstreamTraits> {
  return /gpt-oss/.test(model) ? { efforts: lowToHigh } : noEffort;
}

/** Mistral: Magistral always reasons, the newer small and medium models on request. */
export function mistralModelTraits(model: string): Partial<UpstreamTraits> {
  return /^mistral-(small-(latest|4|26)|medium-(latest|3-[5-9]|[4-9]))/.test(model)
    ? { efforts: ['none', 'high'] }
    : noEffort;
}

/**
 * Since Gemini 3 a history whose calls lack their signatures is refused. This word stands for one in
 * a history that another model wrote, by the vendor's documentation; it claims nothing.
 */
const unsignedCalls = { callSignatureFiller: 'skip_thought_signature_validator' } as const;

/** DeepSeek: R1 refuses the reasoning of earlier turns, later models demand it. */
export function deepseekModelTraits(model: string): Partial<UpstreamTraits> {
  const replay = /(^|[^a-z0-9])r1([^a-z0-9]|$)/i.test(model) ? { reasoningReplay: false } : {};
  // Documented as an error there; penalties and sampling are skipped.
  return /reasoner/.test(model) ? { ...replay, refuses: refuses.deepseekReasoner } : replay;
}

/** Gemini behind its chat-completions address. The Pro models cannot be kept from thinking. */
export function geminiModelTraits(model: string): Partial<UpstreamTraits> {
  return lookUp(
    [
      [/gemini-(1|2\.0)|gemma/, noEffort],
      [/gemini-2\.5.{0,60}pro/, { efforts: lowToHigh, reasoningBudget: true }],
      [/gemini-2\.5/, { efforts: noneToHigh, reasoningBudget: true }],
      [/pro/, { efforts: lowToHigh, ...unsignedCalls }],
      [/./, { efforts: noneToHigh, ...unsignedCalls }],
    ],
    model,
  );
}

const geminiJson = { jsonSchemas: true } as const;
/** From Gemini 3 on. Calls of the turn that is going on must be signed. */
const gemini3 = {
  ...geminiJson,
  ...unsignedCalls,
  callSignatures: true,
  jsonBesideTools: true,
} as const;
/** Before it: results of tools are text, and media come with the request. */
const gemini2 = { toolResultMedia: false, imageInput: 'base64' } as const;
const minimalToHigh: readonly Effort[] = ['minimal', ...lowToHigh];

/** Gemini by its own API: budgets of thinking in 2.5, levels from Gemini 3 on; no model of those can be kept from it. */
const nativeGemini: Rows = [
  [/gemma/, { ...gemini2, instructions: false, responseFormat: 'none', ...noEffort }],
  [/gemini-(1|2\.0)/, { ...gemini2, ...noEffort, reasonsFirst: false }],
  [
    /gemini-2\.5.{0,60}pro/,
    { ...gemini2, ...geminiJson, thinkingBudget: { least: 128, most: 32_768, off: false } },
  ],
  [
    /gemini-2\.5.{0,60}lite/,
    { ...gemini2, ...geminiJson, thinkingBudget: { least: 512, most: 24_576, off: true } },
  ],
  [
    /gemini-2\.5/,
    { ...gemini2, ...geminiJson, thinkingBudget: { least: 0, most: 24_576, off: true } },
  ],
  [/gemini-3-pro/, { ...gemini3, efforts: ['low', 'high'] }],
  [/gemini-3(\.[15])?-flash/, { ...gemini3, efforts: minimalToHigh }],
  [/gemini-3/, { ...gemini3, efforts: lowToHigh }],
  // A document has half the length of a stream there.
  [/./, { ...gemini3, efforts: lowToHigh, streams: 'always', continuation: true }],
];

export function nativeGeminiTraits(model: string): Partial<UpstreamTraits> {
  return lookUp(nativeGemini, model);
}

/** Moonshot: kimi-k2.5 and kimi-k2.6 have a switch, kimi-k3 has effort words. None takes sampling parameters. */
export function moonshotModelTraits(model: string): Partial<UpstreamTraits> {
  const fixed = {
    samplingAllowed: false,
    refuses: refuses.kimi,
  } as const;
  return lookUp(
    [
      [/^kimi-k2\.[56]/, { reasoningControl: 'thinking-type', ...fixed }],
      [/^kimi-k2\./, { ...noEffort, ...fixed, thinkingOff: 'never' }],
      [/^kimi-k([3-9]|\d\d)/, { efforts: ['low', 'high', 'max'], ...fixed }],
      [/./, noEffort],
    ],
    model,
  );
}

/** Qwen: hybrid models have a switch and a budget, pure thinkers a budget only. */
export function qwenModelTraits(model: string): Partial<UpstreamTraits> {
  const neither = /^qwen-?(1|2)|instruct|coder|qwen-(max|vl|long|math)(?!-latest)/;
  return neither.test(model) ? noEffort : {};
}

/** In whose words a maker's models seal what they thought, by OpenRouter's names. */
const reasoningFormats: Rows = [
  [/^~?anthropic\//, { reasoningFormat: 'anthropic-claude-v1' }],
  [/^~?google\//, { reasoningFormat: 'google-gemini-v1' }],
  [/^~?openai\//, { reasoningFormat: 'openai-responses-v1' }],
  [/^~?x-ai\//, { reasoningFormat: 'xai-responses-v1' }],
];

/**
 * OpenRouter: marks are taken for the makers whose models cache on request. Models without a maker's
 * own server are served by others, through templates.
 */
export function openrouterModelTraits(model: string): Partial<UpstreamTraits> {
  const automatic = /^(openai|x-ai|deepseek|moonshotai|mistralai|meta-llama|z-ai)\//;
  const templates = /^(qwen|meta-llama|mistralai|nousresearch|google\/gemma)/;
  return {
    ...lookUp(reasoningFormats, model),
    ...(automatic.test(model) ? { cacheMarks: false } : {}),
    ...(templates.test(model) ? { systemAnywhere: false } : {}),
  };
}

/** Moonshot's messages address: some models refuse to be kept from thinking (issue 141 of MoonshotAI's Kimi repository). */
export function moonshotMessagesTraits(model: string): Partial<UpstreamTraits> {
  return lookUp(
    [
      [/^kimi-k2(\.7|-thinking)/, { thinkingOff: 'never', samplingAllowed: false }],
      [/^kimi-k2\./, { samplingAllowed: false }],
      [/^kimi-k([3-9]|\d\d)/, { efforts: ['low', 'high', 'max'], samplingAllowed: false }],
      [/./, { thinking: 'none' }],
    ],
    model,
  );
}

/** MiniMax: models before `MiniMax-m3` see no images and always think. */
export function minimaxModelTraits(model: string): Partial<UpstreamTraits> {
  return /^minimax-m2/i.test(model) ? { imageInput: 'none', thinkingOff: 'never' } : {};
}

// Top-level members of chat completions that vendors refuse, by their documents and their users' reports: of the
// standard ones those that are refused, of other vendors' own ones those that are known.

function names(text: string): readonly string[] {
  return text.split(' ');
}

/** Newer members of OpenAI's API, which servers that refuse unknown ones mostly do not know. */
const newer = names('verbosity modalities audio web_search_options prompt_cache_retention');
const probabilities = names('logprobs top_logprobs logit_bias');
const penalties = names('presence_penalty frequency_penalty');
const groq = [...newer, ...probabilities, ...names('n prediction prompt_cache_key')];

export const refuses = {
  openaiWithoutReasoning: names('verbosity web_search_options'),
  openaiReasoning: [...probabilities, ...penalties, ...names('prediction web_search_options')],
  /** o1, o3, o4. */
  openaiFirst: [
    ...probabilities,
    ...penalties,
    ...names('prediction web_search_options verbosity'),
  ],
  openaiSearch: [
    ...probabilities,
    ...penalties,
    ...names('n parallel_tool_calls seed verbosity prediction'),
  ],
  mistral: [...newer, ...probabilities, ...names('store service_tier prompt_cache_key')],
  groq,
  groqWithoutReasoning: [...groq, ...names('reasoning_format include_reasoning')],
  xaiReasoning: penalties,
  deepseekReasoner: names('logprobs top_logprobs'),
  kimi: [...penalties, 'n'],
  cerebras: [...newer, ...names('n store metadata')],
  gemini: [
    ...names('verbosity audio web_search_options prompt_cache_key prompt_cache_retention'),
    ...probabilities,
    ...penalties,
    ...names('store metadata prediction service_tier'),
  ],
  /** Skipped in silence. */
  ollama: names('n logit_bias'),
} as const;

/** Of the members that other vendors added (`dialects/openai-chat/shape.ts`). */
export const extensions = {
  groq: names(
    'reasoning_format include_reasoning search_settings citation_options documents compound_custom disable_tool_validation include_domains exclude_domains',
  ),
  mistral: names('safe_prompt prompt_mode guardrails'),
  fireworks: names(
    'top_k min_p typical_p repetition_penalty mirostat mirostat_tau ignore_eos echo thinking prompt_truncate_len context_length_exceeded_behavior',
  ),
  cerebras: names('disable_reasoning clear_thinking'),
  gemini: ['extra_body'],
} as const;

/** What only OpenAI's own models take. */
const foreign: Partial<UpstreamTraits> = {
  developerRole: false,
  serviceTiers: false,
  endUserField: undefined,
  systemAnywhere: false,
};

/**
 * Clouds: models of several makers run there, behind an API that is OpenAI's. If the name shows no maker, nothing is
 * held.
 */
export function hostedModelTraits(model: string): Partial<UpstreamTraits> {
  if (/^(ft:)?(gpt-\d|gpt-audio|o\d|chatgpt|codex|davinci|babbage)/.test(model)) {
    return openaiModelTraits(model);
  }
  if (/^deepseek/i.test(model)) return { ...foreign, ...deepseekModelTraits(model.toLowerCase()) };
  if (/^grok/i.test(model)) return { ...foreign, ...xaiModelTraits(model.toLowerCase()) };
  if (/^(mi|ma|code|mini|pix)stral/i.test(model)) {
    return { ...foreign, ...mistralModelTraits(model.toLowerCase()) };
  }
  return /^(llama|meta-llama|phi|cohere|jais)/i.test(model) ? foreign : {};
}
