/**
 * Folds the events of one call into what was reported and what is charged. There is no other usage
 * counter: relay and translate feed the same meter, so their receipts are equal.
 */
import {
  type FinishReason,
  type GenerationEvent,
  type Usage,
  mergeUsage,
  totalInputTokens,
} from '../../core/generation.ts';
import { tokenClasses } from '../../core/token-classes.ts';
import type { Part } from '../../core/conversation.ts';
import { isObject, type JsonObject } from '../../json/value.ts';
import type { TokenEstimator } from '../call-size.ts';
import type { UpstreamStatement, UsageSource } from '../../core/call.ts';
import { withFurther } from './translated-turn.ts';

/** A call that counts more is not a call: ten times the longest context. */
const maxTokens = 100_000_000;
/** Characters that no token is longer than on average, however an answer is made. */
const maxToken = 64;

const pause: FinishReason = { kind: 'pause' };

/** A request that continues a paused turn. */
interface FurtherRequest {
  readonly usage: Usage;
  /** The answer before it, in tokens and in characters. */
  readonly outputTokens: number;
  readonly length: number;
  /** The request before it, where that was a further one, too. */
  readonly before: FurtherRequest | undefined;
}

export class Meter {
  readonly #estimator: TokenEstimator;
  readonly #guess: () => number;
  readonly #roughGuess: () => number;
  readonly #model: string;
  #promptGuess: number | undefined;
  #reported: Usage | undefined;
  #outputBytes = 0;
  /** The same for answers that have no events. */
  #otherBytes = 0;
  #start: UpstreamStatement['start'];
  #finish: FinishReason | undefined;
  /** The model has said all, though the stream may still fail. */
  #answered = false;
  /** A count was reported that is none. */
  #absurd = false;
  /** Upper bound of output tokens, if one is enforced. */
  #most = Number.POSITIVE_INFINITY;
  /**
   * While one request of a paused turn has not reported: the sum so far, with an estimate for it.
   */
  #further: FurtherRequest | undefined;
  /** A request before the last one did not report all that it used. */
  #guessed = false;
  #transcript: Transcript | undefined;
  #witness: { see(event: GenerationEvent): void } | undefined;

  /**
   * @param model `provider/model`
   * @param guess tokens of the prompt by its characters; called only when an estimate is needed.
   * @param roughGuess the same in less time; absent = `guess`
   */
  constructor(estimator: TokenEstimator, model: string, guess: () => number, roughGuess = guess) {
    this.#estimator = estimator;
    this.#model = model;
    this.#guess = guess;
    this.#roughGuess = roughGuess;
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
  nextRound(used: Usage): void {
    this.#finish = undefined;
    this.#answered = false;
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
    return this.#outputBytes + this.#otherBytes;
  }

  /** Characters so far of all answers but the first. */
  otherChoices(length: number): void {
    this.#otherBytes = length;
  }

  /** The output ends at this many tokens: a higher estimate is wrong. */
  atMost(outputTokens: number): void {
    this.#most = outputTokens;
  }

  /** Estimated tokens of this many characters of this model's output. */
  outputOf(length: number): number {
    return this.#estimator.output(this.#model, length);
  }

  /** The upstream reported why the answer ended: its usage is complete, even if the stream breaks afterwards. */
  answered(): void {
    this.#answered = true;
  }

  /** Another observer that receives every event of this attempt. */
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
        this.#absurd ||= event.usage.raw !== undefined && holdsAbsurd(event.usage.raw);
        this.#reported = mergeUsage(this.#reported, this.#withoutLostPrompt(sane(event.usage)));
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

  /** A prompt that was reported does not become empty: the later report omits it by mistake. */
  #withoutLostPrompt(usage: Usage): Usage {
    const before = this.#reported;
    if (before === undefined || !isEmptyPrompt(usage) || !totalInputTokens(before)) return usage;
    this.#absurd = true;
    return withoutPrompt(usage);
  }

  /** The model that answers, as the upstream names it. */
  get answeredModel(): string | undefined {
    return this.#start?.model;
  }

  /** The upstream's statement so far. */
  get said(): UpstreamStatement {
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

  get #whole(): boolean {
    return this.#answered || this.#finish !== undefined;
  }

  /** Whether the upstream reported what cannot be. */
  get suspect(): boolean {
    const usage = this.#reported;
    if (this.#absurd || usage === undefined || !this.#whole) return this.#absurd;
    const { outputTokens: output, reasoningTokens: reasoning = 0 } = usage;
    if (isEmptyPrompt(usage)) return true;
    return output !== undefined && (this.#saidMore(output) || reasoning > output);
  }

  /** Whether the numbers are all the upstream's own. */
  get source(): UsageSource {
    const usage = this.#reported;
    const complete =
      usage !== undefined &&
      !this.#guessed &&
      this.#unreported === undefined &&
      totalInputTokens(usage) !== undefined &&
      !isEmptyPrompt(usage) &&
      usage.outputTokens !== undefined &&
      this.#believable(usage.outputTokens);
    return complete && this.#whole ? 'reported' : 'estimated';
  }

  /** The usage for the client instead of a report that is incomplete or impossible (F55). */
  get gap(): Usage | undefined {
    return this.source === 'reported' && !this.suspect ? undefined : this.complete();
  }

  /** Usage with its gaps filled by estimates: what the client gets and what is charged (F55). */
  complete(): Usage {
    return this.#filled(() => this.promptEstimate);
  }

  /** The same for the record of a running call, which is read only after a crash. */
  soFar(): Usage {
    return this.#filled(() =>
      this.#estimator.prompt(this.#model, this.#promptGuess ?? this.#roughGuess()),
    );
  }

  /** @param promptEstimate called if no prompt is reported */
  #filled(promptEstimate: () => number): Usage {
    if (this.#reported !== undefined && this.source === 'reported') {
      return withinOutput(this.#reported);
    }
    const reported = this.#unreported ?? this.#reported ?? {};
    const counted = Math.min(this.#counted(), this.#most);
    const output = reported.outputTokens ?? counted;
    const believed = this.#whole && this.#believable(output);
    const noPrompt = isEmptyPrompt(reported) || totalInputTokens(reported) === undefined;
    return withinOutput({
      ...(noPrompt ? { ...withoutPrompt(reported), freshInputTokens: promptEstimate() } : reported),
      // A cut answer may have reported less than was streamed: the text counts.
      outputTokens: believed ? output : Math.max(output, counted),
    });
  }

  /** Estimated usage of all requests while the last one has not reported its own. */
  get #unreported(): Usage | undefined {
    const usage = this.#further?.usage;
    const known = this.#reported?.earlier?.length ?? 0;
    return known < (usage?.earlier?.length ?? 0) ? usage : undefined;
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

  /** Whether there is more text than this many tokens can hold. */
  #saidMore(outputTokens: number): boolean {
    return this.outputLength > outputTokens * maxToken;
  }

  /** Teaches the estimator; call once, after a complete answer. */
  learn(): void {
    const usage = this.#reported;
    // A sum of several requests says nothing about this prompt and this text.
    if (usage?.earlier !== undefined || usage === undefined || this.#finish === undefined) return;
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

/** The counts of a report are in it, and in the details of it. */
function holdsAbsurd(counts: JsonObject): boolean {
  for (const name in counts) {
    const value = counts[name];
    if (value === null || value === undefined) continue;
    if (name.endsWith('_tokens') ? !isCount(value) : isObject(value) && holdsAbsurd(value)) {
      return true;
    }
  }
  return false;
}

/** A prompt has one token at least: a report of none is omitted by mistake. */
function isEmptyPrompt(usage: Usage): boolean {
  return totalInputTokens(usage) === 0;
}

/** The report without all that it says of the prompt. */
function withoutPrompt(usage: Usage): Usage {
  const left: { -readonly [K in keyof Usage]: Usage[K] } = { ...usage };
  for (const field of promptCounts) delete left[field];
  return left;
}

const promptCounts = [
  'freshInputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWriteLongTokens',
  'audioInputTokens',
  'imageInputTokens',
  'videoInputTokens',
] as const;

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= maxTokens;
}

/** Reasoning is part of the output, and cannot be more than it. */
function withinOutput(usage: Usage): Usage {
  const { reasoningTokens: reasoning = 0, outputTokens: output = reasoning } = usage;
  return reasoning > output ? { ...usage, reasoningTokens: output } : usage;
}

/** Drops counts that cannot be: negative, fractional, beyond any context. */
function sane(usage: Usage): Usage {
  let checked: Usage = usage;
  for (const { member: field } of tokenClasses) {
    const value = usage[field];
    if (value === undefined || isCount(value)) continue;
    const { [field]: _dropped, ...rest } = checked;
    checked = rest;
  }
  return checked;
}

/** Longer answers are cut in spans. */
const maxSpanCharacters = 65_536;

interface GrowingPart {
  readonly part: Part;
  text: string;
}

/** The parts of an answer as they come, for the span of its call where content is traced (docs/operator/traces.md). */
class Transcript {
  readonly #parts: GrowingPart[] = [];
  readonly #open = new Map<number, GrowingPart>();
  #room = maxSpanCharacters;
  #cut = false;

  see(event: GenerationEvent): void {
    if (event.type === 'part-start') {
      const growing = { part: event.part, text: '' };
      this.#parts.push(growing);
      this.#open.set(event.index, growing);
      this.#room -= lengthOf(event.part);
    } else if (event.type === 'part-delta' && event.field !== 'signature') {
      const growing = this.#open.get(event.index);
      if (growing !== undefined) {
        const delta = event.delta;
        const taken = delta.length <= this.#room ? delta : delta.slice(0, Math.max(0, this.#room));
        if (taken.length < delta.length) this.#cut = true;
        this.#room -= taken.length;
        growing.text += taken;
      }
    }
  }

  /** The received answer, up to the limit. */
  answer(): { readonly parts: readonly Part[]; readonly cut: boolean } {
    return { parts: this.#parts.map(whole), cut: this.#cut };
  }
}

function lengthOf(part: Part): number {
  if (part.type === 'tool-call') return part.argumentsJson.length;
  return 'text' in part ? part.text.length : 0;
}

function whole({ part, text }: GrowingPart): Part {
  if (text === '') return part;
  if (part.type === 'tool-call') return { ...part, argumentsJson: part.argumentsJson + text };
  return 'text' in part ? { ...part, text: part.text + text } : part;
}
