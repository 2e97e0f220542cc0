/** The generation loop: prompt tokens in, parts of an answer out, with exact counts. */
import type { SequenceEvaluateOptions, Token, TokenBias } from 'node-llama-cpp';
import { GrammarGate, type MakeState } from './answer-grammar.ts';
import {
  samplerOptions,
  wrapSeed,
  type Sampling,
  TokenPicker,
  type TokenChoice,
} from './sampling.ts';
import type { EngineModel, GrammarState } from './model.ts';
import type { ChatRequest } from './request.ts';
import { aloneInBatch, sharedBatch, type SequenceSlot } from './slots.ts';
import type { JsonObject } from './engine-error.ts';
import {
  ReasoningScanner,
  type ReasoningTags,
  StopScanner,
  ToolScanner,
  type ToolSink,
} from './scanners.ts';

// From tokens to text while they arrive: a character may be spread over several tokens.

/** Text of `tokens` where `before` are the tokens that are ahead of them. */
type Detokenize = (tokens: readonly Token[], before: readonly Token[]) => string;

const replacement = '\uFFFD';
/** A character has at most four bytes; what is still broken after that many tokens stays broken. */
const maxHeldTokens = 4;
/** Some tokenizers decide on a leading space by the tokens before. */
const tokensBefore = 4;

/** Detokenises one answer; holds back incomplete characters. */
export class TextPieces {
  readonly #detokenize: Detokenize;
  readonly #held: Token[] = [];
  #before: readonly Token[];

  constructor(detokenize: Detokenize, prompt: readonly Token[]) {
    this.#detokenize = detokenize;
    this.#before = prompt.slice(-tokensBefore);
  }

  /** The text that is complete with this token; '' while a character is incomplete. */
  push(token: Token): string {
    this.#held.push(token);
    const text = this.#detokenize(this.#held, this.#before);
    if (!text.endsWith(replacement)) {
      this.#release(this.#held.length);
      return text;
    }
    return this.#held.length < maxHeldTokens ? '' : this.#releaseWhole(text);
  }

  /** What was held back, when no more tokens come. */
  end(): string {
    if (this.#held.length === 0) return '';
    const text = this.#detokenize(this.#held, this.#before);
    this.#release(this.#held.length);
    return text;
  }

  /**
   * Gives what is before an incomplete character: the replacement character may be the model's
   * own, complete one, with a character after it that has only begun.
   */
  #releaseWhole(text: string): string {
    for (let begun = 1; begun < maxHeldTokens; begun++) {
      const count = this.#held.length - begun;
      const whole = this.#detokenize(this.#held.slice(0, count), this.#before);
      if (whole + replacement !== text) continue;
      this.#release(count);
      return whole;
    }
    this.#release(this.#held.length);
    return text;
  }

  #release(count: number): void {
    const released = this.#held.splice(0, count);
    this.#before = [...this.#before, ...released].slice(-tokensBefore);
  }
}

// From the model's text to the parts of an answer: reasoning, text, tool calls; and where it ends.

/** Receives the parts of an answer, in order. */
interface AnswerSink extends ToolSink {
  reasoning(text: string): void;
}

interface AnswerScannerOptions {
  readonly tags: ReasoningTags | undefined;
  /** The prompt ended in the tag that begins reasoning. */
  readonly reasoningOpen: boolean;
  readonly stop: readonly string[];
  /** Tools that may be called. */
  readonly names: ReadonlySet<string>;
  readonly schemaOf?: (name: string) => JsonObject | undefined;
  /** The first call ends the answer. */
  readonly singleCall: boolean;
  readonly gate: GrammarGate<unknown>;
}

export class AnswerScanner {
  readonly #options: AnswerScannerOptions;
  readonly #reasoning: ReasoningScanner;
  readonly #stops: StopScanner;
  readonly #tools: ToolScanner;

  constructor(options: AnswerScannerOptions, sink: AnswerSink) {
    const { tags, reasoningOpen, stop, names, schemaOf, gate } = options;
    this.#options = options;
    this.#stops = new StopScanner(stop);
    this.#tools = new ToolScanner(
      {
        names,
        ...(schemaOf === undefined ? {} : { schemaOf }),
        holdsForm: (rest) => gate.callBegins(rest),
        callEnded: () => gate.callEnds(),
      },
      sink,
    );
    this.#reasoning = new ReasoningScanner(tags, reasoningOpen, {
      reasoning: (text) => sink.reasoning(text),
      content: (text) => this.#content(text),
    });
    if (!this.#reasoning.reasons) gate.answerBegins();
  }

  /** Whether the text that comes next belongs to the reasoning. */
  get reasons(): boolean {
    return this.#reasoning.reasons;
  }

  get calls(): number {
    return this.#tools.calls;
  }

  get stopSequence(): string | undefined {
    return this.#stops.matched;
  }

  /** The answer is whole, whatever the model would continue. */
  get over(): boolean {
    const called = this.#options.singleCall && this.#tools.endedCalls > 0;
    return called || this.#stops.matched !== undefined;
  }

  push(piece: string): void {
    const reasoned = this.#reasoning.reasons;
    this.#reasoning.push(piece);
    if (reasoned && !this.#reasoning.reasons) this.#options.gate.answerBegins();
  }

  /** No more text comes but this. */
  end(rest: string): void {
    if (!this.over) this.push(rest);
    this.#reasoning.end();
    if (!this.over) this.#tools.push(this.#stops.end());
    this.#tools.end();
  }

  #content(text: string): void {
    // Stop sequences are for what is said: cut arguments would be no JSON.
    this.#tools.push(this.#tools.insideHeldCall ? text : this.#stops.push(text));
  }
}

export interface GenerationJob {
  readonly model: EngineModel;
  readonly slot: SequenceSlot;
  readonly request: ChatRequest;
  readonly sampling: Sampling;
  readonly tokenBias: TokenBias | undefined;
  readonly grammars: {
    readonly whole?: MakeState<GrammarState>;
    readonly call?: MakeState<GrammarState>;
  };
  readonly prompt: readonly Token[];
  /** The prompt ended in the tag that begins reasoning. */
  readonly reasoningOpen: boolean;
  readonly maxTokens: number;
  /** For requests without a seed. */
  readonly randomSeed: number;
  readonly signal: AbortSignal;
}

export interface Outcome extends TokenCounts {
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
  /** The stop sequence that ended the answer. */
  readonly stopSequence?: string;
}

export interface TokenCounts {
  /** All sampled tokens, the end token and those of a cut stop sequence included. */
  readonly completionTokens: number;
  /** Those up to the end of the reasoning, its tags included. */
  readonly reasoningTokens: number;
  /** Prompt tokens whose state was still there from the request before. */
  readonly cachedTokens: number;
}

/** Receives the parts of an answer, and where requested how likely each token was. */
export interface GenerationSink extends AnswerSink {
  likelihood(choice: TokenChoice): void;
}

/**
 * Generates one answer on a sequence that is used by no other answer meanwhile.
 * @throws the signal's reason when it is aborted; takes effect after the current token.
 */
export async function generate(job: GenerationJob, sink: GenerationSink): Promise<Outcome> {
  const { slot, prompt, signal } = job;
  const alone = job.request.sampling.seed !== undefined;
  const cachedTokens = await slot.readPrompt({ prompt, alone, signal });
  slot.generating = true;
  try {
    return { ...(await answer(job, sink)), cachedTokens };
  } finally {
    slot.generating = false;
  }
}

async function answer(
  job: GenerationJob,
  sink: GenerationSink,
): Promise<Omit<Outcome, 'cachedTokens'>> {
  const { model, signal } = job;
  const gate = new GrammarGate(job.grammars);
  const scanner = new AnswerScanner(scannerOptions(job, gate), sink);
  const pieces = new TextPieces(model.textOf, job.prompt);
  const generated: Token[] = [];
  let reasoningTokens = 0;
  let ended = false;
  for await (const choice of choices(job, generated, gate)) {
    generated.push(choice.token);
    signal.throwIfAborted();
    ended = model.isEnd(choice.token);
    if (ended) break;
    const reasoned = scanner.reasons;
    if ('top' in choice && !reasoned) sink.likelihood(choice);
    scanner.push(pieces.push(choice.token));
    if (reasoned || scanner.reasons) reasoningTokens = generated.length;
    ended = scanner.over;
    if (ended || generated.length >= job.maxTokens) break;
    const pause = job.slot.gate.pause();
    if (pause !== undefined) await pause;
  }
  scanner.end(pieces.end());
  const { stopSequence } = scanner;
  return {
    finishReason: finishReason(ended || stopSequence !== undefined, scanner.calls),
    ...(stopSequence === undefined ? {} : { stopSequence }),
    completionTokens: generated.length,
    reasoningTokens,
  };
}

function finishReason(ended: boolean, calls: number): Outcome['finishReason'] {
  if (!ended) return 'length';
  return calls > 0 ? 'tool_calls' : 'stop';
}

function scannerOptions(
  { model, request, reasoningOpen }: GenerationJob,
  gate: GrammarGate<GrammarState>,
): ConstructorParameters<typeof AnswerScanner>[0] {
  const { tools } = request;
  return {
    tags: model.reasoningTags,
    reasoningOpen,
    stop: request.stop,
    names: new Set(tools.offered.map((tool) => tool.function.name)),
    schemaOf: (name) =>
      tools.offered.find((tool) => tool.function.name === name)?.function.parameters,
    singleCall: !tools.parallel,
    gate,
  };
}

/** The tokens of the answer, one after the other. */
function choices(
  job: GenerationJob,
  generated: readonly Token[],
  gate: GrammarGate<GrammarState>,
): AsyncGenerator<{ readonly token: Token } | TokenChoice> {
  const { request, sampling, slot, grammars } = job;
  const rest = job.prompt.slice(slot.sequence.nextTokenIndex);
  const seed = wrapSeed(sampling.seed ?? job.randomSeed);
  const shared: SequenceEvaluateOptions = {
    yieldEogToken: true,
    evaluationPriority: request.sampling.seed === undefined ? sharedBatch : aloneInBatch,
  };
  if (request.logprobs !== undefined) {
    const picker = new TokenPicker(sampling, request.logprobs, seed);
    return pickedTokens(job, { rest, options: shared }, (map) => picker.pick(map, generated));
  }
  const held = grammars.whole !== undefined || grammars.call !== undefined;
  return slot.sequence.evaluateWithMetadata(
    rest,
    {},
    {
      ...shared,
      ...samplerOptions(sampling, generated, job.tokenBias),
      seed,
      ...(held ? { grammarEvaluationState: () => gate.current } : {}),
    },
  );
}

interface Continuation {
  readonly rest: Token[];
  readonly options: SequenceEvaluateOptions;
}

/** Tokens chosen here instead of by the library, from all that the model thought possible. */
async function* pickedTokens(
  { slot }: GenerationJob,
  { rest, options }: Continuation,
  pick: (probabilities: Map<Token, number>) => TokenChoice,
): AsyncGenerator<TokenChoice> {
  // Greedy and uncut: the probabilities are then the model's own.
  const untouched = { ...options, temperature: 0, topK: 0, topP: 1, minP: 0 };
  const iterator = slot.sequence.evaluateWithMetadata(rest, { probabilities: true }, untouched);
  try {
    let step = await iterator.next();
    while (step.done !== true) {
      const choice = pick(step.value.probabilities);
      yield choice;
      step = await iterator.next(choice.token);
    }
  } finally {
    await iterator.return();
  }
}
