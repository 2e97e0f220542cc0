/** From the model's text to the parts of an answer: reasoning, text, tool calls; and where it ends. */
import type { GrammarGate } from './answer-grammar.ts';
import type { JsonObject } from './json.ts';
import { ReasoningScanner, type ReasoningTags } from './reasoning-scanner.ts';
import { StopScanner } from './stop-scanner.ts';
import { ToolScanner, type ToolSink } from './tool-scanner.ts';

/** Receives the parts of an answer, in order. */
export interface AnswerSink extends ToolSink {
  reasoning(text: string): void;
}

export interface AnswerScannerOptions {
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

  /** The answer is whole, whatever the model would go on with. */
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
