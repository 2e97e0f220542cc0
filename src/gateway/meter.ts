/**
 * Folds the events of one call into what was reported and what is charged. There is no other usage
 * counter: relay and translate feed the same meter, so their receipts are equal.
 */
import {
  mergeUsage,
  totalInputTokens,
  usageCounts,
  type FinishReason,
  type GenerationEvent,
  type Usage,
} from '../core/generation.ts';
import type { TokenEstimator } from './token-estimator.ts';
import type { UpstreamWords, UsageSource } from './receipt.ts';
import { Transcript } from './transcript.ts';
import { withFurther } from './turn-rounds.ts';

/** A call that counts more is no call: ten times the longest context. */
const mostTokens = 100_000_000;
/** Characters that no token is longer than on average, however an answer is made. */
const longestToken = 64;

const pause: FinishReason = { kind: 'pause' };

/** A request that goes on with a paused turn. */
interface FurtherRequest {
  readonly usage: Usage;
  /** What was answered before it, in tokens and in characters. */
  readonly outputTokens: number;
  readonly length: number;
  /** The request before it, where that was a further one, too. */
  readonly before: FurtherRequest | undefined;
}

export class Meter {
  readonly #estimator: TokenEstimator;
  readonly #guess: () => number;
  #promptGuess: number | undefined;
  #model = '';
  #reported: Usage | undefined;
  #outputBytes = 0;
  /** The same of the answers that no events tell of. */
  #besideBytes = 0;
  #start: UpstreamWords['start'];
  #finish: FinishReason | undefined;
  /** A count was reported that is none (F57). */
  #absurd = false;
  /** Output tokens that can be at most, where somebody sees to it. */
  #most = Number.POSITIVE_INFINITY;
  /** What all requests used with one of which nothing is reported yet, and what was counted up to it. */
  #further: FurtherRequest | undefined;
  /** A request before the last one did not report all that it used. */
  #guessed = false;
  #transcript: Transcript | undefined;
  #witness: { see(event: GenerationEvent): void } | undefined;

  /** @param guess tokens of the prompt by its characters; asked for only when somebody needs it. */
  constructor(estimator: TokenEstimator, guess: () => number) {
    this.#estimator = estimator;
    this.#guess = guess;
  }

  /** A new attempt begins: what an earlier one reported belongs to nobody (L0). */
  begin(model: string): void {
    this.#model = model;
    this.#reported = undefined;
    this.#outputBytes = 0;
    this.#besideBytes = 0;
    this.#start = undefined;
    this.#finish = undefined;
    this.#absurd = false;
    this.#further = undefined;
    this.#guessed = false;
    this.#transcript?.clear();
  }

  /** The request is over, though not the answer. @returns what all so far used, gaps filled. */
  paused(): Usage {
    this.#finish = pause;
    const used = this.complete();
    this.#guessed = this.source !== 'reported';
    return used;
  }

  /**
   * A further request of the same turn was sent: it is charged for, whatever it reports.
   * @param used by all requests before it
   */
  goOn(used: Usage): void {
    this.#finish = undefined;
    this.#further = {
      usage: withFurther(used),
      outputTokens: used.outputTokens ?? 0,
      length: this.outputLength,
      before: this.#further,
    };
  }

  /** No upstream began to answer the request that was sent last. */
  wentNowhere(): void {
    this.#further = this.#further?.before;
    this.#finish = pause;
  }

  /** Characters of output so far, of all answers. */
  get outputLength(): number {
    return this.#outputBytes + this.#besideBytes;
  }

  /** Characters so far of all answers but the first. */
  beside(length: number): void {
    this.#besideBytes = length;
  }

  /** The output ends at so many tokens: a guess of more is wrong. */
  atMost(outputTokens: number): void {
    this.#most = outputTokens;
  }

  /** Tokens of so many characters of this model's output. */
  outputOf(length: number): number {
    return this.#estimator.output(this.#model, length);
  }

  /** Somebody else who is told every event of this attempt. */
  watch(witness: { see(event: GenerationEvent): void } | undefined): void {
    this.#witness = witness;
  }

  /** The answer is wanted as well, not its counts alone. */
  keepAnswer(): void {
    this.#transcript = new Transcript();
  }

  see(event: GenerationEvent): void {
    this.#transcript?.see(event);
    this.#witness?.see(event);
    switch (event.type) {
      case 'part-delta':
        this.#outputBytes += event.delta.length;
        return;
      case 'part-start':
        this.#outputBytes += textLength(event.part);
        return;
      case 'usage':
        this.#absurd ||= isAbsurd(event.usage);
        this.#reported = mergeUsage(this.#reported, sane(event.usage));
        return;
      case 'finish':
        this.#finish = event.reason;
        return;
      case 'start':
        this.#start = event;
        return;
      case 'part-citation':
      case 'part-end':
      case 'error':
        return;
      default:
        event satisfies never;
    }
  }

  /** Of this attempt, so far. */
  get said(): UpstreamWords {
    const output = this.#transcript?.answer();
    return { start: this.#start, finish: this.#finish, output };
  }

  get reported(): Usage | undefined {
    return this.#reported;
  }

  get promptEstimate(): number {
    this.#promptGuess ??= this.#guess();
    return this.#estimator.prompt(this.#model, this.#promptGuess);
  }

  /** Whether the upstream reported what cannot be (F57). */
  get suspect(): boolean {
    const { outputTokens: output, reasoningTokens: reasoning = 0 } = this.#reported ?? {};
    if (this.#absurd || this.#finish === undefined || output === undefined) return this.#absurd;
    return this.#saidMore(output) || reasoning > output;
  }

  /** Whether the numbers are all the upstream's own. */
  get source(): UsageSource {
    const usage = this.#reported;
    const complete =
      usage !== undefined &&
      !this.#guessed &&
      this.#unreported === undefined &&
      totalInputTokens(usage) !== undefined &&
      usage.outputTokens !== undefined &&
      this.#believable(usage.outputTokens);
    return complete && this.#finish !== undefined ? 'reported' : 'estimated';
  }

  /** Usage with its gaps filled by estimates: what a client is told and what is charged (F55). */
  complete(): Usage {
    if (this.#reported !== undefined && this.source === 'reported') {
      return withinOutput(this.#reported);
    }
    const reported = this.#unreported ?? this.#reported ?? {};
    const counted = Math.min(this.#counted(), this.#most);
    const output = reported.outputTokens ?? counted;
    const believed = this.#finish !== undefined && this.#believable(output);
    return withinOutput({
      ...reported,
      ...(totalInputTokens(reported) === undefined
        ? { freshInputTokens: this.promptEstimate }
        : {}),
      // A cut answer may have reported less than was streamed: the text counts (F57).
      outputTokens: believed ? output : Math.max(output, counted),
    });
  }

  /** What the last request read, guessed by what was there before it, as long as it does not say it. */
  get #unreported(): Usage | undefined {
    const usage = this.#further?.usage;
    const told = this.#reported?.earlier?.length ?? 0;
    return told < (usage?.earlier?.length ?? 0) ? usage : undefined;
  }

  /** Output tokens by the text that came. */
  #counted(): number {
    const { outputTokens, length } = this.#further ?? { outputTokens: 0, length: 0 };
    return outputTokens + this.outputOf(this.outputLength - length);
  }

  /** Whether it can be the count of all that came, that of the last request included. */
  #believable(outputTokens: number): boolean {
    const { outputTokens: before, length } = this.#further ?? { outputTokens: -1, length: 0 };
    if (outputTokens <= before && this.outputLength > length) return false;
    return !this.#saidMore(outputTokens);
  }

  /** Whether there is more text than so many tokens can be (F57). */
  #saidMore(outputTokens: number): boolean {
    return this.outputLength > outputTokens * longestToken;
  }

  /** Teaches the estimator; call once, after a complete answer. */
  learn(): void {
    const usage = this.#reported;
    if (usage === undefined || this.#finish === undefined) return;
    const input = totalInputTokens(usage);
    if (input !== undefined) this.#learnPrompt(input);
    if (usage.outputTokens !== undefined && !this.#saidMore(usage.outputTokens)) {
      const sample = { bytes: this.outputLength, tokens: usage.outputTokens };
      this.#estimator.learnOutput(this.#model, sample);
    }
  }

  /** A relayed call needs no guess; a few of them make one all the same. */
  #learnPrompt(tokens: number): void {
    if (this.#promptGuess === undefined) {
      if (!this.#estimator.wantsLesson(this.#model, tokens)) return;
      this.#promptGuess = this.#guess();
    }
    this.#estimator.learnPrompt(this.#model, { guess: this.#promptGuess, tokens });
  }
}

function textLength(part: Extract<GenerationEvent, { type: 'part-start' }>['part']): number {
  switch (part.type) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      return part.text.length;
    case 'tool-call':
      return part.name.length + part.argumentsJson.length;
    case 'media':
    case 'tool-result':
    case 'opaque':
      return 0;
    default:
      return part satisfies never;
  }
}

/** Whether something that is called a number of tokens is none: what readers leave out is seen here. */
function isAbsurd({ raw }: Usage): boolean {
  if (raw === undefined) return false;
  for (const name in raw) {
    if (!name.endsWith('_tokens')) continue;
    const value = raw[name];
    if (value !== null && value !== undefined && !isCount(value)) return true;
  }
  return false;
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= mostTokens;
}

/** Reasoning is part of the output, and cannot be more than it (F57). */
function withinOutput(usage: Usage): Usage {
  const { reasoningTokens: reasoning = 0, outputTokens: output = reasoning } = usage;
  return reasoning > output ? { ...usage, reasoningTokens: output } : usage;
}

/** Drops counts that cannot be (F57): negative, fractional, beyond any context. */
function sane(usage: Usage): Usage {
  let checked: Usage = usage;
  for (const field of usageCounts) {
    const value = usage[field];
    if (value === undefined || isCount(value)) continue;
    const { [field]: _dropped, ...rest } = checked;
    checked = rest;
  }
  return checked;
}
