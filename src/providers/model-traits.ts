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
const toolsBesideReasoning = /^(o\d|gpt-5(\.[01])?(-|$))/;
/** `prompt_cache_breakpoint` came with GPT-5.6 (types of the vendor's SDK). */
const openaiBefore56 = /^(o\d|gpt-5(\.[0-5])?(-|$))/;

/** OpenAI: reasoning models know `developer` and effort and refuse sampling and stop strings. */
export function openaiModelTraits(name: string): Partial<UpstreamTraits> {
  const model = name.replace(/^ft:/, '');
  if (openaiSearch.test(model)) {
    return { ...noEffort, samplingAllowed: false, webSearch: 'options' };
  }
  if (openaiWithoutReasoning.test(model)) return noEffort;
  return {
    ...lookUp(openaiEfforts, model),
    systemRole: 'developer',
    samplingAllowed: false,
    reasonsFirst: true,
    // Later models take `stop` while they do not reason, and it is not documented which: counted as
    // unknown, since the gateway can cut the text itself. o1 is documented to take it.
    ...(model.startsWith('o1') ? {} : { stopMax: 0 }),
    toolsExcludeReasoning: !toolsBesideReasoning.test(model),
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

/** Anthropic: how thinking is asked for, whether sampling is still taken, what is enforced. */
export function anthropicModelTraits(model: string): Partial<UpstreamTraits> {
  const { family, version } = readClaude(model) ?? unversioned(model);
  return {
    ...claudeThinking(family, version),
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
  if (version < 406) return { thinking: 'budget' };
  return {
    thinking: 'adaptive',
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

/** xAI: reasoning models refuse `stop`, and most of them a word of effort. */
export function xaiModelTraits(model: string): Partial<UpstreamTraits> {
  return lookUp(
    [
      [/^grok-3-mini/, { efforts: ['low', 'high'], stopMax: 0 }],
      [/non-reasoning|^grok-([12]|3(?!-mini))/, noEffort],
      [/^grok-(4($|-)|4\.([01]|20)(\D|$)|code)/, { ...noEffort, stopMax: 0 }],
      [/^grok-4\.3/, { efforts: noneToHigh, stopMax: 0 }],
      [/./, { efforts: lowToHigh, stopMax: 0 }],
    ],
    model,
  );
}

/** Groq: the models are of many makers. Qwen's own word for "on" is the default. */
export function groqModelTraits(model: string): Partial<UpstreamTraits> {
  return lookUp(
    [
      [/gpt-oss/, { efforts: lowToHigh }],
      // Unasked, the reasoning would stand in the answer's text.
      [/qwen/, { efforts: ['none'], always: { reasoning_format: 'parsed' } }],
      [/./, noEffort],
    ],
    model,
  );
}

/** Cerebras: the same, with other words. */
export function cerebrasModelTraits(model: string): Partial<UpstreamTraits> {
  return lookUp(
    [
      [/gpt-oss/, { efforts: lowToHigh }],
      [/glm/, { efforts: ['none'] }],
      [/./, noEffort],
    ],
    model,
  );
}

/** Together: only the open GPT models take a word of effort. */
export function togetherModelTraits(model: string): Partial<UpstreamTraits> {
  return /gpt-oss/.test(model) ? { efforts: lowToHigh } : noEffort;
}

/** Mistral: Magistral always reasons, the newer small and medium models if told to. */
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

/** DeepSeek: R1 refuses the reasoning of earlier turns, later models demand it (D6). */
export function deepseekModelTraits(model: string): Partial<UpstreamTraits> {
  return /(^|[^a-z0-9])r1([^a-z0-9]|$)/i.test(model) ? { reasoningReplay: false } : {};
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

/** Moonshot: K2.5 and K2.6 have a switch, K3 has words, and none of the K models can be tuned. */
export function moonshotModelTraits(model: string): Partial<UpstreamTraits> {
  return lookUp(
    [
      [/^kimi-k2\.[56]/, { reasoningControl: 'thinking-type', samplingAllowed: false }],
      [/^kimi-k2\./, { ...noEffort, samplingAllowed: false }],
      [/^kimi-k([3-9]|\d\d)/, { efforts: ['low', 'high', 'max'], samplingAllowed: false }],
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

/** OpenRouter: marks are taken for the makers whose models cache where they are told to. */
export function openrouterModelTraits(model: string): Partial<UpstreamTraits> {
  const automatic = /^(openai|x-ai|deepseek|moonshotai|mistralai|meta-llama|z-ai)\//;
  return automatic.test(model) ? { cacheMarks: false } : {};
}
