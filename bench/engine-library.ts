/**
 * The engine's library alone: loads a model and generates, with nothing around it. Answers each order
 * with the milliseconds of a token.
 *
 * Usage: node bench/engine-library.ts MODEL THREADS CONTEXT
 */
import { getLlama, LlamaLogLevel, TokenBias } from 'node-llama-cpp';

export interface LibraryOrder {
  /** As the model's template writes it. */
  readonly prompt: string;
  readonly tokens: number;
}

/** The first message. */
export interface LibraryReady {
  /** Numbers of the tokens that end an answer. */
  readonly endTokens: readonly number[];
}

export interface LibraryAnswer {
  readonly msPerToken: number;
}

/** As the engine does it (src/engine/model.ts). */
const smallFileBytes = 64 * 2 ** 20;

const [path = '', threads = '1', context = '2048'] = process.argv.slice(2);
const llama = await getLlama({
  gpu: false,
  build: 'never',
  skipDownload: true,
  progressLogs: false,
  logLevel: LlamaLogLevel.error,
  maxThreads: Number(threads),
});
const model = await llama.loadModel({ modelPath: path });
const sequence = (
  await model.createContext({
    sequences: 1,
    contextSize: Number(context),
    flashAttention: model.size < smallFileBytes ? false : 'auto',
  })
).getSequence();

/** Answers are to be as long as is asked, whatever the model makes of the prompt. */
const endTokens = [...model.iterateAllTokens()].filter((token) => model.isEogToken(token));
const endless = TokenBias.for(model);
// As the engine does it: `set` leaves such tokens out.
const logits: unknown = Reflect.get(endless, '_biases');
if (logits instanceof Map) for (const token of endTokens) logits.set(token, -100);

/** From the first generated token to the last. The end token is one more token here. */
async function generate({ prompt, tokens }: LibraryOrder): Promise<LibraryAnswer> {
  await sequence.clearHistory();
  let count = 0;
  let firstAt = 0;
  let lastAt = 0;
  const options = { temperature: 0, yieldEogToken: true, tokenBias: endless };
  for await (const token of sequence.evaluate(model.tokenize(prompt, true), options)) {
    lastAt = performance.now();
    if (count === 0) firstAt = lastAt;
    count += 1;
    if (count === tokens || model.isEogToken(token)) break;
  }
  return { msPerToken: (lastAt - firstAt) / (count - 1) };
}

process.on('disconnect', () => process.exit());
process.on('message', (order: LibraryOrder) => {
  void generate(order).then((answer) => process.send?.(answer));
});
const ready: LibraryReady = { endTokens };
process.send?.(ready);
