/** How tokens are chosen: what a request asks for, what the model recommends, and the defaults. */
import type { SequenceEvaluateOptions, Token, TokenBias } from 'node-llama-cpp';
import {
  type JsonObject,
  integer,
  invalid,
  isObject,
  member,
  number,
  wrongType,
} from './engine-error.ts';

/** What a model's file may recommend (`general.sampling.*`). */
export interface SamplingDefaults {
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
}

/** What a request says; the rest is the model's. */
export interface SamplingInput extends SamplingDefaults {
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly seed?: number;
  /** Added to the logit of each token, by its number. */
  readonly bias: ReadonlyMap<number, number>;
}

export interface Sampling extends SamplingInput {
  readonly temperature: number;
  /** 0 = off. */
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
}

/** llama.cpp's default sampling, for callers that set none and models that recommend none. */
const defaults = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 } as const;
/** llama.cpp takes this seed as "any". */
const anySeed = 0xffffffff;
/** How many tokens of the answer the penalties look back on. */
const penaltyWindow = 1024;

/** @throws EngineError 400 that names the field. */
export function readSampling(body: JsonObject): SamplingInput {
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

/** The request's word first, then the model's, then the defaults. */
export function resolveSampling(input: SamplingInput, model: SamplingDefaults): Sampling {
  return { ...defaults, ...model, ...input };
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

// Choosing tokens from the model's own probabilities. The library returns probabilities only after its
// sampling has cut them, so for requests that request log probabilities it is made to return them
// untouched, and the choice is made here, in the order of llama.cpp's samplers.

/** Probabilities of all tokens, the likeliest first. */
type Probabilities = ReadonlyMap<Token, number>;

/** A token with its log probability. */
export interface Likelihood {
  readonly token: Token;
  readonly logprob: number;
}

/** A chosen token, and the likeliest ones at its position. */
export interface TokenChoice extends Likelihood {
  readonly top: readonly Likelihood[];
}

/** Reported for a probability that rounds to zero, as at OpenAI. */
const least = -9999;

/** Chooses one token after another for one answer. */
export class TokenPicker {
  readonly #sampling: Sampling;
  readonly #topCount: number;
  readonly #random: () => number;

  constructor(sampling: Sampling, topCount: number, seed: number) {
    this.#sampling = sampling;
    this.#topCount = topCount;
    this.#random = randomNumbers(seed);
  }

  pick(probabilities: Probabilities, generated: readonly Token[]): TokenChoice {
    const token = this.#choose(probabilities, generated);
    const top: Likelihood[] = [];
    for (const [other, probability] of probabilities) {
      if (top.length >= this.#topCount) break;
      top.push({ token: other, logprob: logarithm(probability) });
    }
    return { token, logprob: logarithm(probabilities.get(token) ?? 0), top };
  }

  #choose(probabilities: Probabilities, generated: readonly Token[]): Token {
    const { temperature, topK, topP, minP } = this.#sampling;
    const ranked = this.#adjusted(probabilities, generated);
    const [best] = ranked;
    if (best === undefined) throw new Error('the model gave no probabilities');
    if (temperature === 0) return best.token;
    const kept = cutByMass(topK > 0 ? ranked.slice(0, topK) : ranked, topP);
    const likely = kept.filter(({ logprob }) => Math.exp(logprob - best.logprob) >= minP);
    const weights = likely.map(({ logprob }) => Math.exp((logprob - best.logprob) / temperature));
    let left = this.#random() * weights.reduce((sum, weight) => sum + weight, 0);
    for (const [index, weight] of weights.entries()) {
      left -= weight;
      if (left <= 0) return likely[index]?.token ?? best.token;
    }
    return best.token;
  }

  /** With biases and penalties, the likeliest first. */
  #adjusted(probabilities: Probabilities, generated: readonly Token[]): readonly Likelihood[] {
    const { bias, frequencyPenalty, presencePenalty } = this.#sampling;
    const changes = new Map<number, number>(bias);
    if (frequencyPenalty !== 0 || presencePenalty !== 0) {
      for (const [token, count] of countsOf(generated.slice(-penaltyWindow))) {
        const penalty = count * frequencyPenalty + presencePenalty;
        changes.set(token, (changes.get(token) ?? 0) - penalty);
      }
    }
    const list: Likelihood[] = [];
    for (const [token, probability] of probabilities) {
      const change = changes.get(token) ?? 0;
      if (probability > 0) list.push({ token, logprob: Math.log(probability) + change });
    }
    return changes.size === 0 ? list : list.sort((a, b) => b.logprob - a.logprob);
  }
}

/** The likeliest tokens that together have the share `mass` of all; at least one. */
function cutByMass(ranked: readonly Likelihood[], mass: number): readonly Likelihood[] {
  if (mass >= 1) return ranked;
  const weights = ranked.map(({ logprob }) => Math.exp(logprob));
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  let sum = 0;
  const end = weights.findIndex((weight) => {
    sum += weight;
    return sum >= mass * whole;
  });
  return ranked.slice(0, end === -1 ? ranked.length : end + 1);
}

function countsOf(tokens: readonly Token[]): ReadonlyMap<Token, number> {
  const counts = new Map<Token, number>();
  for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
  return counts;
}

function logarithm(probability: number): number {
  return probability > 0 ? Math.log(probability) : least;
}

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
