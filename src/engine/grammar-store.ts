/** Compiled grammars: an agent sends the same tools with every turn. */
import type { LlamaGrammar, LlamaModel } from 'node-llama-cpp';
import type { LoadedLibrary } from './library.ts';

type State = InstanceType<LoadedLibrary['library']['LlamaGrammarEvaluationState']>;

/** Makes a state at the beginning of a grammar; each answer, and each call in it, needs its own. */
export type MakeGrammarState = () => State;

const maxKept = 16;

export class GrammarStore {
  readonly #loaded: LoadedLibrary;
  readonly #model: LlamaModel;
  /** The latest used one last. */
  readonly #kept = new Map<string, LlamaGrammar>();

  constructor(loaded: LoadedLibrary, model: LlamaModel) {
    this.#loaded = loaded;
    this.#model = model;
  }

  /** @throws Error when llama.cpp refuses the grammar. */
  compile(text: string): MakeGrammarState {
    const { library, llama } = this.#loaded;
    const grammar = this.#kept.get(text) ?? new library.LlamaGrammar(llama, { grammar: text });
    this.#kept.delete(text);
    this.#kept.set(text, grammar);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > maxKept && oldest !== undefined) this.#kept.delete(oldest);
    return () => new library.LlamaGrammarEvaluationState({ model: this.#model, grammar });
  }
}
