/** The generation loop: prompt tokens in, text and tool calls out, with exact counts. */
import type { LlamaContextSequence, SequenceEvaluateOptions, Token } from 'node-llama-cpp';
import type { EngineModel, GrammarState } from './model.ts';
import type { ChatRequest, Sampling } from './request.ts';
import { StopScanner } from './stop-scanner.ts';
import { TextPieces } from './text-pieces.ts';
import { toolCallGrammar } from './tool-grammar.ts';
import { ToolScanner, type ScanSink } from './tool-scanner.ts';

export interface GenerationJob {
  readonly model: EngineModel;
  readonly sequence: LlamaContextSequence;
  readonly request: ChatRequest;
  readonly prompt: readonly Token[];
  readonly maxTokens: number;
  /** For requests without a seed. */
  readonly randomSeed: number;
  readonly signal: AbortSignal;
}

export interface Outcome {
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
  /** The stop sequence that ended the answer. */
  readonly stopSequence?: string;
  /** All sampled tokens, the end token and those of a cut stop sequence included. */
  readonly completionTokens: number;
  /** Prompt tokens whose state was still there from the request before. */
  readonly cachedTokens: number;
}

/** Prompt tokens between two looks at the signal: a long prompt can be given up on the way. */
const prefillSlice = 512;
/** llama.cpp takes this seed as "any". */
const anySeed = 0xffffffff;
const penaltyWindow = 1024;

/**
 * Generates one answer on a sequence that nobody else uses meanwhile.
 * @throws the signal's reason when it is aborted; takes effect after the current token.
 */
export async function generate(job: GenerationJob, sink: ScanSink): Promise<Outcome> {
  const { model, sequence, request } = job;
  const { tools } = request;
  const grammar = tools.required ? await model.grammarState(toolCallGrammar(tools)) : undefined;
  const cachedTokens = await readPrompt(job);
  const offered = new Set(tools.offered.map((tool) => tool.function.name));
  const calls = new ToolScanner(offered, sink);
  const stops = new StopScanner(request.stop);
  const pieces = new TextPieces(model.textOf, job.prompt);
  const generated: Token[] = [];
  let ended = false;
  const options = evaluateOptions(job, generated, grammar);
  for await (const token of sequence.evaluate(job.prompt.slice(sequence.nextTokenIndex), options)) {
    generated.push(token);
    job.signal.throwIfAborted();
    ended = model.isEnd(token);
    if (ended) break;
    calls.push(stops.push(pieces.push(token)));
    ended = stops.matched !== undefined || (!tools.parallel && calls.calls > 0);
    if (ended || generated.length >= job.maxTokens) break;
  }
  if (stops.matched === undefined) calls.push(stops.push(pieces.end()));
  if (stops.matched === undefined) calls.push(stops.end());
  calls.end();
  return {
    finishReason: finishReason(ended || stops.matched !== undefined, calls.calls),
    ...(stops.matched === undefined ? {} : { stopSequence: stops.matched }),
    completionTokens: generated.length,
    cachedTokens,
  };
}

function finishReason(ended: boolean, calls: number): Outcome['finishReason'] {
  if (!ended) return 'length';
  return calls > 0 ? 'tool_calls' : 'stop';
}

/**
 * Brings the sequence to the state after all prompt tokens but the last, keeping the prefix that it
 * shares with the request before. Returns how many tokens were kept.
 */
async function readPrompt({ sequence, prompt, request, signal }: GenerationJob): Promise<number> {
  const body = prompt.slice(0, -1);
  // A seed promises the same answer again. Batches of other sizes round differently, so the whole
  // prompt is read anew in the same slices each time.
  if (request.sampling.seed === undefined) await sequence.adaptStateToTokens(body, false);
  else await sequence.clearHistory();
  const kept = sequence.nextTokenIndex;
  for (let start = kept; start < body.length; start += prefillSlice) {
    signal.throwIfAborted();
    await sequence.evaluateWithoutGeneratingNewTokens(body.slice(start, start + prefillSlice));
  }
  return kept;
}

function evaluateOptions(
  job: GenerationJob,
  generated: readonly Token[],
  grammar: GrammarState | undefined,
): SequenceEvaluateOptions {
  const { sampling } = job.request;
  return {
    temperature: sampling.temperature,
    topK: sampling.topK,
    topP: sampling.topP,
    minP: sampling.minP,
    seed: wrapSeed(sampling.seed ?? job.randomSeed),
    yieldEogToken: true,
    ...(grammar === undefined ? {} : { grammarEvaluationState: grammar }),
    ...penalties(sampling, generated),
  };
}

/** Any integer as one of the seeds that llama.cpp takes literally. */
function wrapSeed(seed: number): number {
  return ((seed % anySeed) + anySeed) % anySeed;
}

/** Counted over the answer so far, as the two fields are defined. */
function penalties(sampling: Sampling, generated: readonly Token[]): SequenceEvaluateOptions {
  const { frequencyPenalty, presencePenalty } = sampling;
  if (frequencyPenalty === 0 && presencePenalty === 0) return {};
  return {
    repeatPenalty: {
      punishTokens: () => generated.slice(-penaltyWindow),
      maxPunishTokens: penaltyWindow,
      penalty: 1,
      frequencyPenalty,
      presencePenalty,
    },
  };
}
