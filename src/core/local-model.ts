/** A model file that the embedded engine can serve as `local/NAME`. */

/** How one model is run; absent = the engine decides. */
export interface LocalModelSettings {
  /** Tokens of prompt and answer together. */
  readonly contextSize?: number;
  readonly threads?: number;
  /** Calls that generate at the same time. */
  readonly parallel?: number;
  /** The model leaves memory after so long without a call; 0 = never. */
  readonly idleUnloadMs?: number;
}

/** What the file's own header says; absent = it does not say. */
export interface LocalModelFacts {
  /** E.g. `llama`, `qwen3`. */
  readonly architecture?: string;
  readonly title?: string;
  readonly parameters?: number;
  /** Tokens that the model was trained for. */
  readonly contextLength?: number;
  /** E.g. `Q4_K_M`. */
  readonly quantization?: string;
  readonly hasChatTemplate?: boolean;
}

export interface LocalModelFile extends LocalModelFacts {
  /** Without `local/`. */
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  readonly bytes: number;
  /** When the file was written, in ms since the epoch. */
  readonly writtenAt: number;
  /** Hex; the engine refuses the file when its hash is another (S25). */
  readonly sha256?: string;
  /** The model that ships: it proves that everything works and is too small to be useful. */
  readonly demo?: true;
  readonly settings: LocalModelSettings;
}
