/** Names of models at Bedrock: ids, inference profiles and ARNs, and their traits with Converse. */
import type { UpstreamTraits } from '../../../core/traits.ts';
import { withoutDate } from '../../../core/model-names.ts';
import { anthropicModelTraits } from '../../model-traits.ts';

/** Where an inference profile may run its calls. */
const profilePrefix = /^(?:us|eu|apac|global|us-gov|au|jp|ca)\./;
const maxLength = 2048;

/** An id is one segment of a path, however it is written. */
export function isModelId(name: string): boolean {
  // oxlint-disable-next-line no-control-regex
  return name.length <= maxLength && !/^\.{0,2}$|[\u0000-\u001f\u007f]/.test(name);
}

/** The id that the service knows: Claude Code adds `[1m]` where it asks for the long context by a beta. */
export function sentModelId(name: string): string {
  return name.replace(/\[1m\]$/i, '');
}

/** The id without the regions of a profile: `us.anthropic.claude-…` → `anthropic.claude-…`; of an ARN its last part. */
export function baseModelId(id: string): string {
  const sent = sentModelId(id);
  const own = sent.startsWith('arn:') ? sent.slice(sent.lastIndexOf('/') + 1) : sent;
  return own.replace(profilePrefix, '');
}

/** The maker's name of a model: `us.anthropic.claude-sonnet-4-5-20250929-v1:0` → `claude-sonnet-4-5-20250929`. */
export function makersName(id: string): string {
  const base = baseModelId(id)
    .replace(/:\d{1,6}$/, '')
    .replace(/-v\d{1,3}$/, '');
  return base.replace(/^anthropic\./, '');
}

/**
 * Ids of the price list that a name without date or version stands for, as those of `deployments` and of Mantle are:
 * `claude-sonnet-4-5`, `openai.gpt-oss-120b`. An id with the regions of a profile stands for those of these regions only.
 */
export function listedAs(model: string, ids: readonly string[]): readonly string[] {
  const family = familyOf(model);
  const isGlobal = model.startsWith('global.');
  return ids.filter((id) => {
    if (isGlobal && id.startsWith(listedRegional)) return false;
    const listed = familyOf(id);
    return listed === family || listed.endsWith(`.${family}`);
  });
}

/** How the list calls prices of the regions of a profile other than `global.`. */
const listedRegional = 'regional.';

function familyOf(id: string): string {
  const own = id.startsWith(listedRegional) ? id.slice(listedRegional.length) : id;
  // `openai.gpt-oss-120b-1:0` has its version without a `v`.
  return withoutDate(makersName(own.replace(/-\d{1,2}:\d{1,2}$/, '')));
}

export function isClaude(model: string): boolean {
  return /(?:^|\.|\/)(?:anthropic\.)?claude/i.test(model);
}

/** The traits of one maker's models with Converse. Unknown models have the dialect's traits. */
type Family = readonly [name: RegExp, traits: Partial<UpstreamTraits>];

/** The maximum default output cap of Claude: the service reserves the cap from the account's quota while a call runs. */
const mostReserved = 32_768;
const learnsNoChoice = { refusesForcedTools: true } as const;

const nova: Partial<UpstreamTraits> = {
  resultStatus: true,
  toolResultMedia: true,
  cacheMarks: true,
  toolCacheMarks: false,
  topK: true,
  topKInConfig: true,
  prefill: true,
};

const families: readonly Family[] = [
  [/^amazon\.nova-2-sonic/, { ...nova, audioInput: true }],
  [/^amazon\.nova-2/, { ...nova, reasoningConfig: true, efforts: ['low', 'medium', 'high'] }],
  [/^amazon\.nova/, nova],
  [/^amazon\.titan/, { instructions: false, imageInput: 'none' }],
  [
    /^mistral\.mistral-7b/,
    { ...learnsNoChoice, topK: true, imageInput: 'none', instructions: false },
  ],
  [
    /^mistral\.voxtral/,
    {
      topK: true,
      stopMax: 10,
      nineCharacterToolIds: true,
      imageInput: 'none',
      audioInput: true,
    },
  ],
  [/^mistral\.(pixtral|mistral-large-3)/, { topK: true, stopMax: 10, nineCharacterToolIds: true }],
  [/^mistral\./, { topK: true, stopMax: 10, nineCharacterToolIds: true, imageInput: 'none' }],
  [/^meta\.llama(3-2|4)/, { ...learnsNoChoice, stopMax: 0 }],
  // Older ones do not call tools in streams.
  [/^meta\./, { ...learnsNoChoice, stopMax: 0, imageInput: 'none', streams: 'never' }],
  [
    /^openai\./,
    {
      ...learnsNoChoice,
      reasoningControl: 'effort',
      efforts: ['low', 'medium', 'high'],
      imageInput: 'none',
    },
  ],
  [/^(deepseek|qwen)\./, { ...learnsNoChoice, imageInput: 'none' }],
  [/^cohere\./, { ...learnsNoChoice, imageInput: 'none' }],
];

/** @param model as `makersName` has it */
export function converseModelTraits(model: string): Partial<UpstreamTraits> {
  if (!isClaude(model)) return families.find(([name]) => name.test(model))?.[1] ?? {};
  const own = anthropicModelTraits(model);
  return {
    ...own,
    systemAnywhere: false,
    stopMax: undefined,
    refusesBlankStops: true,
    resultStatus: true,
    toolResultMedia: true,
    cacheMarks: true,
    topK: true,
    reportsStopSequence: true,
    citesDocuments: true,
    dropsBillingHeader: true,
    defaultMaxOutputTokens: Math.min(own.defaultMaxOutputTokens ?? mostReserved, mostReserved),
  };
}
