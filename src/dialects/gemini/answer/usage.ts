/** Token counts of Gemini: the prompt holds what was cached, and the answer leaves thoughts out. */
import type { Usage } from '../../../core/generation.ts';
import { isObject, type Json, type JsonObject } from '../../../json/value.ts';

/** No model counts beyond this; a larger number is a fault of the upstream (F57). */
const maxCount = 1e12;

type Counts = { -readonly [K in keyof Usage]: Usage[K] };

/** What a response object reports; undefined where it counts nothing (Vertex: chunks with the kind of traffic only). */
export function readUsage(response: JsonObject): Usage | undefined {
  const raw = response['usageMetadata'];
  if (!isObject(raw)) return undefined;
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
  // More cached than sent cannot be: the prompt is then taken for what was not cached.
  const fresh = prompt >= cached ? prompt - cached : prompt;
  return { freshInputTokens: fresh + ofTools, cacheReadTokens: cached };
}

/** Answer and thoughts; where neither is told, what the total leaves. */
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

/** Parts of prompt and answer that are not text, as far as they are told. */
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

/** A believable token count; undefined for what is negative, endless or no number (F57). */
function count(value: Json | undefined): number | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= maxCount)) return undefined;
  return Math.floor(value);
}
