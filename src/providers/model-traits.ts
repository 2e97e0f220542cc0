/**
 * What models of one vendor do differently, by the beginning of their names. Unknown names get the
 * newest behaviour, since new models follow it.
 */
import type { UpstreamTraits } from '../core/traits.ts';

const toolsBesideReasoning = /^(o[134]|gpt-5(\.[01])?(-|$))/;

/** OpenAI: reasoning models know `developer` and effort and refuse sampling parameters. */
export function openaiModelTraits(model: string): Partial<UpstreamTraits> {
  if (/^(gpt-3|gpt-4|chatgpt-4|davinci|babbage)/.test(model)) return { efforts: [] };
  return {
    systemRole: 'developer',
    samplingAllowed: false,
    efforts: /^o[134]/.test(model)
      ? ['low', 'medium', 'high']
      : ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'],
    toolsExcludeReasoning: !toolsBesideReasoning.test(model),
  };
}

const claudeWithoutThinking = /^claude-(2|instant|3-(opus|sonnet|haiku|5))/;
const claudeWithBudget = /^claude-(3-7|(opus|sonnet|haiku)-4(-[0-5])?(-\d{8})?$)/;
const claudeBefore48 = /^claude-(3|(opus|sonnet|haiku)-4(-[0-7])?(-\d{8})?$)/;
const claudeWithSampling = /^claude-(2|instant|3|(opus|sonnet|haiku)-4(-[0-6])?(-\d{8})?$)/;
const claudeWithOneSampler = /^claude-(opus-4-1|(opus|sonnet|haiku)-4-[56])(-|$)/;

/** Anthropic: how thinking is asked for, and whether sampling parameters are still taken. */
export function anthropicModelTraits(model: string): Partial<UpstreamTraits> {
  const thinking = claudeWithoutThinking.test(model)
    ? 'none'
    : claudeWithBudget.test(model)
      ? 'budget'
      : 'adaptive';
  return {
    thinking,
    systemAnywhere: !claudeBefore48.test(model),
    samplingAllowed: claudeWithSampling.test(model),
    temperatureExcludesTopP: claudeWithOneSampler.test(model),
    prefill: thinking !== 'adaptive',
    defaultMaxOutputTokens: claudeWithoutThinking.test(model) ? 4096 : 16_384,
  };
}
