/** One loaded model: its tokenizer, its template, and the sequences that generate. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type {
  CustomBatchingPrioritizationStrategy,
  LlamaContext,
  LlamaGrammar,
  LlamaModel,
  Token,
  TokenBias,
} from 'node-llama-cpp';
import { isObject } from './engine-error.ts';
import { EngineUnavailable, type LoadedLibrary, anotherVersion, loadLibrary } from './library.ts';
import { type ChatTemplate, PromptWriter } from './prompt.ts';
import { type ReasoningTags, callClosing, callOpening, reasoningTagsOf } from './scanners.ts';
import { type SamplingDefaults, samplingDefaultsOf } from './sampling.ts';
import { SliceSizer, SequenceSlot, StateGate, aloneInBatch } from './slots.ts';

// What a model's file says about itself.

interface ModelFacts {
  /** The context that the model was trained with, in tokens. */
  readonly trainContextSize: number;
  readonly parameters?: number;
  /** Of the file, in bytes. */
  readonly sizeBytes: number;
  /** e.g. `Q4_K_M`. */
  readonly quantization?: string;
}

const controlMarker = /^[<[].*[>\]]$|\|/u;

function factsOf(model: LlamaModel, sizeBytes: number): ModelFacts {
  const tensors = model.fileInfo.fullTensorInfo ?? [];
  const sizes = tensors.map((tensor) =>
    tensor.dimensions.reduce((product: number, size) => product * Number(size), 1),
  );
  const parameters = sizes.reduce((sum, size) => sum + size, 0);
  // llama.cpp's own description: "llama 1B Q4_K - Medium", "qwen2 ?B Q8_0".
  const quantization = /\b(?:I?Q\d\w*|TQ\d\w*|BF16|F16|F32|MXFP4\w*)(?: - \w+)?/u.exec(
    model.typeDescription,
  )?.[0];
  return {
    trainContextSize: model.trainContextSize,
    sizeBytes,
    ...(parameters === 0 ? {} : { parameters }),
    ...(quantization === undefined ? {} : { quantization: shortName(quantization) }),
  };
}

/** "Q4_K - Medium" as "Q4_K_M", the way files are named. */
function shortName(quantization: string): string {
  const [type = '', size] = quantization.split(' - ');
  return size === undefined ? type : `${type}_${size[0]}`;
}

/**
 * Token texts that a caller must not be able to write: control tokens, and those user-defined ones
 * that the template itself uses (`<tool_call>`). Other user-defined tokens are ordinary text.
 */
function markersOf(model: LlamaModel, template: string): readonly string[] {
  const markers: string[] = [];
  for (const [token, text] of specialTexts(model)) {
    const attributes = model.getTokenAttributes(token);
    const written = attributes.userDefined && controlMarker.test(text) && template.includes(text);
    if (attributes.control || written) markers.push(text);
  }
  return markers;
}

/** Control tokens that stand for one of these tags; the library would leave their text out. */
function hiddenTags(model: LlamaModel, tags: readonly string[]): ReadonlyMap<Token, string> {
  const hidden = new Map<Token, string>();
  for (const [token, text] of specialTexts(model)) {
    if (tags.includes(text) && model.getTokenAttributes(token).control) hidden.set(token, text);
  }
  return hidden;
}

function* specialTexts(model: LlamaModel): Generator<[Token, string]> {
  const texts = model.fileInfo.metadata.tokenizer?.ggml.tokens ?? [];
  for (const token of model.iterateAllTokens()) {
    const text = texts[token];
    if (text !== undefined && text !== '') yield [token, text];
  }
}

/** The file's general metadata, where models recommend their sampling. */
function generalMetadata(model: LlamaModel): unknown {
  const { metadata } = model.fileInfo;
  return isObject(metadata) ? metadata['general'] : undefined;
}

// Which sequences are computed together in the next batch.

type Items = Parameters<CustomBatchingPrioritizationStrategy>[0];
type Batch = ReturnType<CustomBatchingPrioritizationStrategy>;

/** After this many turns, everything that can arrive without waiting for something else has arrived. */
const patience = 16;

/**
 * Batches of all generating sequences, as `nextBatch` makes them. The library requests the next batch as soon
 * as the last token of the current one is chosen, before the consumer of that token has requested its next
 * token. Without this class one of four sequences was always missing, and two were computed one by one. It
 * therefore answers with an empty batch, after which the library asks again, until all sequences are present or
 * do not come at once.
 */
export class FullBatches {
  readonly #generating: () => number;
  #looks = 0;

  /** @param generating how many sequences will request a next token. */
  constructor(generating: () => number) {
    this.#generating = generating;
  }

  next({ items, size }: Items): Batch {
    const alone = items[0]?.evaluationPriority === aloneInBatch;
    if (!alone && items.length < this.#generating() && this.#looks < patience) {
      this.#looks += 1;
      return [];
    }
    this.#looks = 0;
    return nextBatch({ items, size });
  }
}

/**
 * In the order of asking: the sequences of requests that promise the same answer again each in a batch
 * of their own, since batches of other sizes round differently; all others together. Who generates
 * needs one token and gets it; prompts that are being read share the rest.
 */
export function nextBatch({ items, size }: Items): Batch {
  const [first] = items;
  if (first === undefined) return [];
  if (first.evaluationPriority === aloneInBatch) {
    return [{ item: first, processAmount: Math.min(size, first.tokens.length) }];
  }
  const together = items.filter((item) => item.evaluationPriority !== aloneInBatch);
  const shortestFirst = together.toSorted((a, b) => a.tokens.length - b.tokens.length);
  const batch: Batch = [];
  let room = size;
  for (const [index, item] of shortestFirst.entries()) {
    const share = Math.floor(room / (shortestFirst.length - index));
    const processAmount = Math.min(item.tokens.length, share);
    if (processAmount === 0) continue;
    room -= processAmount;
    batch.push({ item, processAmount });
  }
  return batch;
}

export interface ModelOptions {
  readonly path: string;
  /** What requests call it; absent = the file's name without its ending. */
  readonly name?: string;
  /** Called with the loaded share, 0 to 1. */
  readonly onProgress?: (share: number) => void;
  /**
   * Tokens of prompt and answer together, for each request; absent = what the model was trained on, at
   * most 8,192, and less where memory is short.
   */
  readonly contextSize?: number;
  /** Requests that are answered at once; fewer where memory is short. */
  readonly parallel: number;
  /** Absent = one for small files (more only costs there), else one a core but for one core. */
  readonly threads?: number;
  /** Refuse the file when its SHA-256 (hex) is another. */
  readonly sha256?: string;
  /** Random digits for the prompt's break mark. */
  readonly breakDigits: string;
}

/** What a generation needs of the model. */
export interface EngineModel {
  /** Requests name the model by it. */
  readonly name: string;
  /** Of each request, prompt and answer together. */
  readonly contextSize: number;
  readonly facts: ModelFacts;
  /** When the file was written, in Unix seconds. */
  readonly createdSeconds: number;
  readonly prompts: PromptWriter;
  readonly slots: readonly SequenceSlot[];
  readonly sampling: SamplingDefaults;
  /** The template's source, for what it knows of. */
  readonly template: string;
  /** Set for models that reason. */
  readonly reasoningTags: ReasoningTags | undefined;
  /** Tokens that went through the model so far. */
  steps(): number;
  isEnd(token: Token): boolean;
  textOf(tokens: readonly Token[], before: readonly Token[]): string;
  /** A grammar (GBNF), ready to hold answers. @throws Error when llama.cpp refuses it. */
  compileGrammar(grammar: string): MakeGrammarState;
  /** Undefined when a token does not exist. */
  biasOf(bias: ReadonlyMap<number, number>): TokenBias | undefined;
}

export type GrammarState = ReturnType<MakeGrammarState>;

const smallFileBytes = 64 * 2 ** 20;
const mediumFileBytes = 2 ** 30;
/** The share of the free memory that the state of all requests together may take. */
const memoryShare = 0.5;

/** @throws EngineUnavailable with the reason, fit to be shown to the operator. */
export async function loadModel(options: ModelOptions): Promise<EngineModel> {
  const file = await checkFile(options);
  const small = file.size < smallFileBytes;
  const loaded = await loadLibrary(options.threads ?? (small ? 1 : undefined));
  const model = await openModel(loaded, options);
  const template = model.fileInfo.metadata.tokenizer?.chat_template;
  if (template === undefined) {
    throw new EngineUnavailable(`The model file ${basename(options.path)} has no chat template.`);
  }
  const slots: SequenceSlot[] = [];
  const batches = new FullBatches(() => slots.filter((slot) => slot.generating).length);
  const { context, capacity } = await openContext(model, { options, small, batches });
  keepLogitsApart(context);
  const tags = reasoningTagsOf(template);
  const shownTags = [callOpening, callClosing, ...(tags === undefined ? [] : Object.values(tags))];
  const hidden = hiddenTags(model, shownTags);
  const grammars = new GrammarStore(loaded, model);
  const slice = sliceOf(file.size);
  const now = (): number => performance.now();
  const shared = { slice, sizer: new SliceSizer(slice), now, gate: new StateGate() };
  while (slots.length < capacity.parallel) {
    slots.push(new SequenceSlot({ sequence: context.getSequence(), ...shared }));
  }
  return {
    name: options.name ?? basename(options.path, '.gguf'),
    contextSize: capacity.contextSize,
    facts: factsOf(model, file.size),
    createdSeconds: file.createdSeconds,
    prompts: promptWriter(model, { template, compiled: compile(loaded, template), tags, options }),
    slots,
    steps: () => slots.reduce((sum, slot) => sum + slot.steps, 0),
    sampling: samplingDefaultsOf(generalMetadata(model)),
    template,
    reasoningTags: tags,
    isEnd: (token) => model.isEogToken(token),
    textOf: (tokens, before) => {
      const [first] = tokens;
      const tag = tokens.length === 1 && first !== undefined ? hidden.get(first) : undefined;
      return tag ?? model.detokenize(tokens, false, before);
    },
    compileGrammar: (grammar) => grammars.compile(grammar),
    biasOf: (bias) => biasOf(loaded, model, bias),
  };
}

/**
 * Prompt tokens that are read at once, at most: between two slices a request can be given up. By the
 * file's size and not by the clock where there is a seed: the same slices each time are a part of what
 * it promises.
 */
function sliceOf(fileBytes: number): number {
  if (fileBytes < smallFileBytes) return 512;
  return fileBytes < mediumFileBytes ? 64 : 32;
}

interface ContextNeeds {
  readonly options: ModelOptions;
  readonly small: boolean;
  readonly batches: FullBatches;
}

async function openContext(
  model: LlamaModel,
  { options, small, batches }: ContextNeeds,
): Promise<{ readonly context: LlamaContext; readonly capacity: Capacity }> {
  // Measured with the tiny model: on a processor flash attention takes three times as long a token.
  // Large models keep it for its smaller buffers.
  const flashAttention = small ? false : 'auto';
  const capacity = await planCapacity({
    ...(options.contextSize === undefined ? {} : { contextSize: options.contextSize }),
    parallel: options.parallel,
    trainContextSize: model.trainContextSize,
    memoryBytes: process.availableMemory() * memoryShare,
    estimate: async ({ contextSize, parallel }) => {
      const needs = {
        contextSize,
        sequences: parallel,
        modelGpuLayers: 0,
        flashAttention,
      } as const;
      return (await model.fileInsights.estimateContextResourceRequirementsV2(needs)).cpuRam;
    },
  });
  try {
    const context = await model.createContext({
      sequences: capacity.parallel,
      contextSize: capacity.contextSize,
      flashAttention,
      batching: { itemPrioritizationStrategy: (items) => batches.next(items) },
    });
    return { context, capacity };
  } catch (error) {
    throw new EngineUnavailable(
      `There is not enough memory for a context of ${capacity.contextSize} tokens.`,
      error,
    );
  }
}

interface PromptWriterDeps {
  readonly template: string;
  readonly compiled: ChatTemplate;
  readonly tags: ReasoningTags | undefined;
  readonly options: ModelOptions;
}

function promptWriter(model: LlamaModel, deps: PromptWriterDeps): PromptWriter {
  const { template, compiled, tags, options } = deps;
  // Only sentencepiece puts a space before a text; to take it away again costs a second tokenising.
  const spaced = model.fileInfo.metadata.tokenizer?.ggml.model !== 'gpt2';
  return new PromptWriter({
    template: compiled,
    knowsTools: template.includes(callOpening),
    markers: markersOf(model, template),
    bosText: model.tokens.bosString ?? '',
    eosText: model.tokens.eosString ?? '',
    ...(model.tokens.shouldPrependBosToken && model.tokens.bos !== null
      ? { bosToken: model.tokens.bos }
      : {}),
    ...(tags === undefined ? {} : { reasoningTag: tags.open }),
    tokenize: (text, continues) =>
      model.tokenize(text, true, continues && spaced ? 'trimLeadingSpace' : undefined),
    breakDigits: options.breakDigits,
  });
}

function biasOf(
  { library }: LoadedLibrary,
  model: LlamaModel,
  bias: ReadonlyMap<number, number>,
): TokenBias | undefined {
  const count = model.fileInfo.metadata.tokenizer?.ggml.tokens?.length ?? 0;
  const tokenBias = library.TokenBias.for(model);
  // Its `set` omits tokens that end an answer, without a word.
  const logits: unknown = Reflect.get(tokenBias, '_biases');
  if (!(logits instanceof Map)) return undefined;
  for (const token of model.iterateAllTokens()) {
    const logit = bias.get(token);
    if (logit !== undefined) logits.set(token, logit);
  }
  return [...bias.keys()].every((token) => token < count) ? tokenBias : undefined;
}

interface FileFacts {
  readonly size: number;
  readonly createdSeconds: number;
}

/** Refuses early what the native loader would take long to refuse, or would crash on. */
async function checkFile({ path, sha256 }: ModelOptions): Promise<FileFacts> {
  const name = basename(path);
  const facts = await stat(path).catch((error: unknown) => {
    throw new EngineUnavailable(`The model file ${name} cannot be read.`, error);
  });
  if (!facts.isFile()) throw new EngineUnavailable(`The model file ${name} is not a file.`);
  const file = await open(path);
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    if (buffer.toString('latin1') !== 'GGUF') {
      throw new EngineUnavailable(`The file ${name} is not a GGUF model.`);
    }
  } finally {
    await file.close();
  }
  if (sha256 !== undefined) {
    const hash = createHash('sha256');
    await pipeline(createReadStream(path), hash);
    if (hash.digest('hex') !== sha256.toLowerCase()) {
      throw new EngineUnavailable(
        `The model file ${name} is damaged: its SHA-256 is not ${sha256}.`,
      );
    }
  }
  return { size: facts.size, createdSeconds: Math.floor(facts.mtimeMs / 1000) };
}

async function openModel(
  { llama }: LoadedLibrary,
  { path, onProgress }: ModelOptions,
): Promise<LlamaModel> {
  try {
    return await llama.loadModel({
      modelPath: path,
      // The only binary for Apple's processors would use Metal; 0 keeps all layers on the CPU, as on other machines.
      gpuLayers: 0,
      ...(onProgress === undefined ? {} : { onLoadProgress: onProgress }),
    });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new EngineUnavailable(
      `The model file ${basename(path)} could not be loaded; it is damaged, or of a kind that this ` +
        `engine does not know (${why.replaceAll(path, basename(path))}).`,
      error,
    );
  }
}

function compile({ compileTemplate }: LoadedLibrary, source: string): ChatTemplate {
  try {
    return compileTemplate(source);
  } catch (error) {
    throw new EngineUnavailable("The model's chat template cannot be read.", error);
  }
}

// How many requests are answered at once, and how long they may be, within the machine's memory.

interface CapacityInput {
  /** Tokens of prompt and answer together that the operator requested; never made less. */
  readonly contextSize?: number;
  /** Requests at once, at most. */
  readonly parallel: number;
  readonly trainContextSize: number;
  /** Bytes that the state of all sequences together may take. */
  readonly memoryBytes: number;
  /** Bytes that it takes. */
  readonly estimate: (capacity: Capacity) => Promise<number>;
}

export interface Capacity {
  /** Of each sequence. */
  readonly contextSize: number;
  readonly parallel: number;
}

/** The default. */
const defaultContext = 8192;
const minContext = 2048;

/** Gives up requests at once before it gives up their length. */
export async function planCapacity(input: CapacityInput): Promise<Capacity> {
  const usual = Math.min(input.trainContextSize, defaultContext);
  let capacity = { contextSize: input.contextSize ?? usual, parallel: input.parallel };
  while ((await input.estimate(capacity)) > input.memoryBytes) {
    const { contextSize, parallel } = capacity;
    if (parallel > 1) capacity = { contextSize, parallel: Math.floor(parallel / 2) };
    else if (input.contextSize === undefined && contextSize > minContext) {
      capacity = { contextSize: Math.max(minContext, Math.floor(contextSize / 2)), parallel };
    } else break;
  }
  return capacity;
}

// Compiled grammars: an agent sends the same tools with every turn.

type State = InstanceType<LoadedLibrary['library']['LlamaGrammarEvaluationState']>;

/** Makes a state at the beginning of a grammar; each answer, and each call in it, needs its own. */
type MakeGrammarState = () => State;

const maxKept = 16;

class GrammarStore {
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

// Keeps the answers of one batch apart while their next tokens are chosen.

/** What the library's context calls of its native half. */
interface NativeContext {
  decodeBatch(): Promise<unknown>;
  sampleToken(...args: readonly unknown[]): Promise<unknown>;
}

/**
 * Chooses the first token of a batch alone, and only then the others. llama.cpp leaves the logits of a
 * batch in the order in which it computed them, and moves each row to its position at the first read
 * (`output_reorder`, ggml-org/llama.cpp pull request 14853). The library looks from several threads at
 * once, so that two moved the same rows: an answer got a token of another one's.
 *
 * @param context a `LlamaContext`; its native half is not a part of the library's interface
 * @throws EngineUnavailable when the library has become another one
 */
function keepLogitsApart(context: object): void {
  const native: unknown = Reflect.get(context, '_ctx');
  if (!isNativeContext(native)) {
    throw anotherVersion();
  }
  const decode = native.decodeBatch.bind(native);
  const sample = native.sampleToken.bind(native);
  let first: Promise<unknown> | undefined;
  const decodeBatch: NativeContext['decodeBatch'] = () => {
    first = undefined;
    return decode();
  };
  const sampleToken: NativeContext['sampleToken'] = async (...args) => {
    if (first === undefined) return (first = sample(...args));
    await first.catch(() => undefined);
    return sample(...args);
  };
  // Native methods cannot be assigned over.
  Object.defineProperties(native, {
    decodeBatch: { value: decodeBatch },
    sampleToken: { value: sampleToken },
  });
}

function isNativeContext(value: unknown): value is NativeContext {
  return (
    typeof value === 'object' &&
    value !== null &&
    ['decodeBatch', 'sampleToken'].every((name) => typeof Reflect.get(value, name) === 'function')
  );
}
