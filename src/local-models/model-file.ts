/** A model that the embedded engine can run: where its file is, what is known of it, how to run it. */

/** What the file says of itself; absent = it does not say. */
export interface LocalModelFacts {
  /** E.g. `llama`, `qwen3`. */
  readonly architecture?: string;
  /** Tokens of prompt and answer together that the model was trained on. */
  readonly contextLength?: number;
  readonly parameters?: number;
  /** E.g. `Q4_K_M`. */
  readonly quantization?: string;
  readonly hasChatTemplate?: boolean;
  /** It reasons, and a request can switch that off or cannot; absent = it does not reason. */
  readonly reasoning?: 'switchable' | 'always';
  /** Its template knows levels of reasoning (`reasoning_effort`). */
  readonly reasoningLevels?: true;
}

export interface LocalModelFile extends LocalModelFacts {
  /** As in `local/NAME`. */
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** Size of the file. */
  readonly bytes: number;
  /** When the file was written, in ms since the epoch. */
  readonly writtenAt?: number;
  /** The engine refuses a file with another hash (hex). */
  readonly sha256?: string;
  /** Ships with the gateway to show how it works; stays loaded and is never a fallback. */
  readonly demo?: true;
  readonly settings: LocalModelSettings;
}

/** How the engine runs a model; what is absent is decided by the engine or by `LocalEngines`. */
export interface LocalModelSettings {
  /** Tokens of prompt and answer together, of each request. */
  readonly context?: number;
  readonly threads?: number;
  /** Requests that generate at the same time. */
  readonly parallel?: number;
  /** Ends the engine after this time without a call; 0 = never. */
  readonly idleUnloadMs?: number;
}

/** The engine's own limit: longer contexts take memory that small machines do not have. */
const usualContext = 8192;

/** The engine's own default. */
const usualParallel = 4;

/** Requests that are answered at once; with little memory the engine takes fewer. */
export function parallelOf({ settings }: LocalModelFile): number {
  return settings.parallel ?? usualParallel;
}

/** Tokens of prompt and answer together as the model is run; with little memory the engine takes fewer. */
export function contextOf({ contextLength, settings }: LocalModelFile): number | undefined {
  if (settings.context !== undefined || contextLength === undefined) return settings.context;
  return Math.min(contextLength, usualContext);
}
