/** One loaded model: its tokenizer, its template, and the sequences that generate. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { LlamaContextSequence, LlamaModel, Token } from 'node-llama-cpp';
import { EngineUnavailable, loadLibrary, type LoadedLibrary } from './library.ts';
import { PromptWriter, type ChatTemplate } from './prompt.ts';
import { callOpening } from './tool-scanner.ts';

export interface ModelOptions {
  readonly path: string;
  /** What requests call it; absent = the file's name without its ending. */
  readonly name?: string;
  /** Told of the loaded share, 0 to 1. */
  readonly onProgress?: (share: number) => void;
  /** Tokens of prompt and answer together; absent = what the model was trained on, at most 8,192. */
  readonly contextSize?: number;
  /** Absent = one for small files (more only costs there), else one a core. */
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
  readonly contextSize: number;
  /** When the file was written, in Unix seconds. */
  readonly createdSeconds: number;
  readonly prompts: PromptWriter;
  readonly sequences: readonly LlamaContextSequence[];
  /** Tokens that went through the model so far. */
  steps(): number;
  isEnd(token: Token): boolean;
  textOf(tokens: readonly Token[], before: readonly Token[]): string;
  /** Evaluation options that hold the answer to a grammar (GBNF). */
  grammarState(grammar: string): Promise<GrammarState>;
}

export type GrammarState = InstanceType<LoadedLibrary['library']['LlamaGrammarEvaluationState']>;

const defaultMaxContext = 8192;
const smallFileBytes = 64 * 2 ** 20;
const controlMarker = /^[<[].*[>\]]$|\|/u;

/** @throws EngineUnavailable with the reason, fit to be shown to the operator. */
export async function loadModel(options: ModelOptions): Promise<EngineModel> {
  const file = await checkFile(options);
  const small = file.size < smallFileBytes;
  const threads = options.threads ?? (small ? 1 : 0);
  const loaded = await loadLibrary(threads);
  const model = await openModel(loaded, options);
  const template = model.fileInfo.metadata.tokenizer?.chat_template;
  if (template === undefined) {
    throw new EngineUnavailable(`The model file ${basename(options.path)} has no chat template.`);
  }
  const contextSize = options.contextSize ?? Math.min(model.trainContextSize, defaultMaxContext);
  const context = await model.createContext({
    sequences: 1,
    contextSize,
    // Measured with the tiny model: on a processor flash attention takes three times as long a token.
    // Large models keep it for its smaller buffers.
    flashAttention: small ? false : 'auto',
  });
  const sequences = [context.getSequence()];
  return {
    name: options.name ?? basename(options.path, '.gguf'),
    contextSize,
    createdSeconds: file.createdSeconds,
    prompts: new PromptWriter({
      template: compile(loaded, template),
      knowsTools: template.includes(callOpening),
      markers: markersOf(model, template),
      bosText: model.tokens.bosString ?? '',
      eosText: model.tokens.eosString ?? '',
      ...(model.tokens.shouldPrependBosToken && model.tokens.bos !== null
        ? { bosToken: model.tokens.bos }
        : {}),
      tokenize: (text, continues) =>
        model.tokenize(text, true, continues ? 'trimLeadingSpace' : undefined),
      breakDigits: options.breakDigits,
    }),
    sequences,
    steps: () => sequences.reduce((sum, { tokenMeter }) => sum + stepsOf(tokenMeter), 0),
    isEnd: (token) => model.isEogToken(token),
    textOf: (tokens, before) => model.detokenize(tokens, false, before),
    grammarState: async (grammar) =>
      new loaded.library.LlamaGrammarEvaluationState({
        model,
        grammar: await loaded.llama.createGrammar({ grammar }),
      }),
  };
}

function stepsOf(meter: LlamaContextSequence['tokenMeter']): number {
  return meter.usedInputTokens + meter.usedOutputTokens;
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
      ...(onProgress === undefined ? {} : { onLoadProgress: onProgress }),
    });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new EngineUnavailable(
      `The model file ${basename(path)} could not be loaded: ${why.replaceAll(path, basename(path))}`,
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

/**
 * Token texts that a caller must not be able to write: control tokens, and those user-defined ones
 * that the template itself uses (`<tool_call>`). Other user-defined tokens are ordinary text.
 */
function markersOf(model: LlamaModel, template: string): readonly string[] {
  const texts = model.fileInfo.metadata.tokenizer?.ggml.tokens ?? [];
  const markers: string[] = [];
  for (const token of model.iterateAllTokens()) {
    const text = texts[token];
    if (text === undefined || text === '') continue;
    const attributes = model.getTokenAttributes(token);
    const written = attributes.userDefined && controlMarker.test(text) && template.includes(text);
    if (attributes.control || written) markers.push(text);
  }
  return markers;
}
