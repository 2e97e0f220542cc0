/** How tokens are chosen: what a request asks for, what the model recommends, what is customary. */
import type { SequenceEvaluateOptions, Token, TokenBias } from 'node-llama-cpp';
import { invalid } from './engine-error.ts';
import { integer, number, wrongType } from './fields.ts';
import { isObject, member, type JsonObject } from './json.ts';

/** What a model's file may recommend (`general.sampling.*`). */
export interface SamplingDefaults {
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
}

/** What a request says; the rest is the model's. */
export interface SamplingWishes extends SamplingDefaults {
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly seed?: number;
  /** Added to the logit of each token, by its number. */
  readonly bias: ReadonlyMap<number, number>;
}

export interface Sampling extends SamplingWishes {
  readonly temperature: number;
  /** 0 = off. */
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
}

/** llama.cpp's customary sampling, for callers that set none and models that recommend none. */
const customary = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 } as const;
/** llama.cpp takes this seed as "any". */
const anySeed = 0xffffffff;
/** How many tokens of the answer the penalties look back on. */
export const penaltyWindow = 1024;

/** @throws EngineError 400 that names the field. */
export function readSampling(body: JsonObject): SamplingWishes {
  const seed = integer(body, 'seed', {});
  // Servers in the wild spell "off" as 0 or as -1.
  const topK = integer(body, 'top_k', { min: -1 });
  return {
    ...present('temperature', number(body, 'temperature', { min: 0, max: 2 })),
    ...present('topK', topK === undefined ? undefined : Math.max(0, topK)),
    ...present('topP', number(body, 'top_p', { min: 0, max: 1 })),
    ...present('minP', number(body, 'min_p', { min: 0, max: 1 })),
    frequencyPenalty: number(body, 'frequency_penalty', { min: -2, max: 2 }) ?? 0,
    presencePenalty: number(body, 'presence_penalty', { min: -2, max: 2 }) ?? 0,
    bias: readBias(body),
    ...present('seed', seed),
  };
}

/** The request's word first, then the model's, then what is customary. */
export function resolveSampling(wishes: SamplingWishes, model: SamplingDefaults): Sampling {
  return { ...customary, ...model, ...wishes };
}

/** The recommendations in a GGUF file's metadata. */
export function samplingDefaultsOf(general: unknown): SamplingDefaults {
  const recommended = isObject(general) ? general['sampling'] : undefined;
  if (!isObject(recommended)) return {};
  const value = (key: string): number | undefined => {
    const found = recommended[key];
    return typeof found === 'number' && Number.isFinite(found) && found >= 0 ? found : undefined;
  };
  return {
    ...present('temperature', value('temp')),
    ...present('topK', value('top_k')),
    ...present('topP', value('top_p')),
    ...present('minP', value('min_p')),
  };
}

/** Options of the library that sample so. */
export function samplerOptions(
  sampling: Sampling,
  generated: readonly Token[],
  tokenBias: TokenBias | undefined,
): SequenceEvaluateOptions {
  const { temperature, topK, topP, minP } = sampling;
  return {
    temperature,
    topK,
    topP,
    minP,
    ...(sampling.seed === undefined ? {} : { seed: wrapSeed(sampling.seed) }),
    ...(tokenBias === undefined ? {} : { tokenBias }),
    ...penalties(sampling, generated),
  };
}

/** Any integer as one of the seeds that llama.cpp takes literally. */
export function wrapSeed(seed: number): number {
  return ((seed % anySeed) + anySeed) % anySeed;
}

/** Counted over the answer so far, as the two fields are defined. */
function penalties(sampling: Sampling, generated: readonly Token[]): SequenceEvaluateOptions {
  const { frequencyPenalty, presencePenalty } = sampling;
  if (frequencyPenalty === 0 && presencePenalty === 0) return {};
  return {
    repeatPenalty: {
      punishTokens: () => generated.slice(-penaltyWindow),
      maxPunishTokens: penaltyWindow,
      penalty: 1,
      frequencyPenalty,
      presencePenalty,
    },
  };
}

function readBias(body: JsonObject): ReadonlyMap<number, number> {
  const value = member(body, 'logit_bias');
  if (value === undefined) return new Map();
  if (!isObject(value)) throw wrongType('logit_bias', 'an object');
  const entries = Object.entries(value).map(([token, bias]): [number, number] => {
    const param = `logit_bias.${token}`;
    if (!/^\d{1,9}$/.test(token)) throw invalid('A token is named by its number.', param);
    if (typeof bias !== 'number') throw wrongType(param, 'a number');
    if (bias < -100 || bias > 100) throw invalid('A bias lies between -100 and 100.', param);
    return [Number(token), bias];
  });
  return new Map(entries);
}

function present<K extends string>(key: K, value: number | undefined): { [P in K]?: number } {
  const found: { [P in K]?: number } = {};
  if (value !== undefined) found[key] = value;
  return found;
}
