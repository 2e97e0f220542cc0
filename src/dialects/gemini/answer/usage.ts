/** Token counts of Gemini. The prompt count includes cached tokens, the answer count excludes thoughts. */
import type { Usage } from '../../../core/generation.ts';
import { isObject, type Json, type JsonObject } from '../../../json/value.ts';

/** The maximum plausible count. A larger number is a fault of the upstream (F57). */
const maxCount = 1e12;

type Counts = { -readonly [K in keyof Usage]: Usage[K] };

/** The usage by its report. Undefined without counts: some chunks of Vertex have only the kind of traffic. */
export function readUsage(raw: JsonObject): Usage | undefined {
  const prompt = count(raw['promptTokenCount']);
  const ofTools = count(raw['toolUsePromptTokenCount']);
  const outputTokens = readOutput(raw, prompt, ofTools ?? 0);
  if (prompt === undefined && outputTokens === undefined) return undefined;
  const tier = raw['serviceTier'] ?? raw['trafficType'];
  return {
    ...readInput(raw, prompt, ofTools ?? 0),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(outputTokens === undefined
      ? {}
      : { reasoningTokens: count(raw['thoughtsTokenCount']) ?? 0 }),
    ...readMedia(raw),
    ...(typeof tier === 'string' ? { serviceTier: tier } : {}),
    raw,
  };
}

function readInput(raw: JsonObject, prompt: number | undefined, ofTools: number): Usage {
  if (prompt === undefined) return {};
  const cached = count(raw['cachedContentTokenCount']) ?? 0;
  // A prompt cannot have fewer tokens than its cached part. The prompt count then stands for the uncached part.
  const fresh = prompt >= cached ? prompt - cached : prompt;
  return { freshInputTokens: fresh + ofTools, cacheReadTokens: cached };
}

/** Output tokens: answer and thoughts. If neither is reported, the total minus the prompt. */
function readOutput(
  raw: JsonObject,
  prompt: number | undefined,
  ofTools: number,
): number | undefined {
  const answer = count(raw['candidatesTokenCount']);
  const thoughts = count(raw['thoughtsTokenCount']);
  if (answer !== undefined || thoughts !== undefined) return (answer ?? 0) + (thoughts ?? 0);
  const total = count(raw['totalTokenCount']);
  if (total === undefined || prompt === undefined) return undefined;
  return Math.max(0, total - prompt - ofTools);
}

/** Reported tokens of prompt and answer that are not text. */
function readMedia(raw: JsonObject): Usage {
  const found: Counts = {};
  const prompt = modalities(raw['promptTokensDetails'], raw['toolUsePromptTokensDetails']);
  const answer = modalities(raw['candidatesTokensDetails']);
  const audio = prompt.get('AUDIO');
  const image = prompt.get('IMAGE');
  const video = prompt.get('VIDEO');
  if (audio !== undefined) found.audioInputTokens = audio;
  if (image !== undefined) found.imageInputTokens = image;
  if (video !== undefined) found.videoInputTokens = video;
  const spoken = answer.get('AUDIO');
  const drawn = answer.get('IMAGE');
  if (spoken !== undefined) found.audioOutputTokens = spoken;
  if (drawn !== undefined) found.imageOutputTokens = drawn;
  return found;
}

function modalities(...lists: readonly (Json | undefined)[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const list of lists) {
    if (!Array.isArray(list)) continue;
    for (const entry of list) {
      if (!isObject(entry) || typeof entry['modality'] !== 'string') continue;
      const tokens = count(entry['tokenCount']);
      if (tokens === undefined) continue;
      const { modality } = entry;
      found.set(modality, (found.get(modality) ?? 0) + tokens);
    }
  }
  return found;
}

/** A plausible token count. Undefined for negative numbers, infinity and values that are no numbers (F57). */
function count(value: Json | undefined): number | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= maxCount)) return undefined;
  return Math.floor(value);
}
