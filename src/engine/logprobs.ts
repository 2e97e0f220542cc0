/**
 * Choosing tokens from the model's own probabilities. The library tells probabilities only after its
 * sampling has cut them, so for requests that ask for log probabilities it is made to tell them
 * untouched, and the choice is made here, in the order of llama.cpp's samplers.
 */
import type { Token } from 'node-llama-cpp';
import { penaltyWindow, type Sampling } from './sampling.ts';

/** Probabilities of all tokens, the likeliest first. */
export type Probabilities = ReadonlyMap<Token, number>;

/** A token with its log probability. */
export interface Likelihood {
  readonly token: Token;
  readonly logprob: number;
}

/** A chosen token, and the likeliest ones at its place. */
export interface TokenChoice extends Likelihood {
  readonly top: readonly Likelihood[];
}

/** What a probability that rounds to nothing is told as, as at OpenAI. */
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
