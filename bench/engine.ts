/**
 * The embedded engine through the gateway, beside its library alone on the same file and threads:
 * the cost of a token, the time to the first one, growing conversations, and requests at once.
 */
import { existsSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { everyCore, makeScratch, removeScratch, startHelper, type Helper } from './child.ts';
import { timedStream, type Message, type TimedAnswer } from './engine-calls.ts';
import type { LibraryAnswer, LibraryOrder, LibraryReady } from './engine-library.ts';
import { startGateway } from './gateway.ts';
import { writeLargeModel } from './large-model.ts';

export interface EngineModel {
  readonly label: string;
  readonly threads: number;
  /** Its arithmetic takes long enough for requests at once to share it. */
  readonly large: boolean;
}

interface EngineModelFile extends EngineModel {
  readonly path: string;
}

/** One turn of a growing conversation. */
export interface Turn {
  readonly turn: number;
  readonly promptTokens: number;
  readonly firstMs: number;
  /** The same prompt when nothing of it is retained. */
  readonly anewMs: number;
}

/** One round. Rates are tokens a second. */
export interface EngineRound {
  readonly libraryMsPerToken: number;
  readonly gatewayMsPerToken: number;
  readonly firstMs: readonly number[];
  readonly turns: readonly Turn[];
  readonly oneByOneRate: number;
  readonly atOnceRate: number;
}

export type EngineFigures = { readonly model: EngineModel } & (
  { readonly rounds: readonly EngineRound[] } | { readonly missing: string }
);

export interface EngineOptions {
  readonly rounds: number;
  readonly quick: boolean;
  /** A GGUF file of one's own, measured too. */
  readonly modelFile?: string;
  readonly say: (line: string) => void;
}

const context = 2048;
/** Requests at once, as many as the engine answers by default. */
export const atOnce = 4;
const shownTurns: ReadonlySet<number> = new Set([2, 5, 10]);
const lastTurn = Math.max(...shownTurns);
/** Not one: the first may be a part of a character. */
const fewTokens = 4;
const model = 'local/bench';
/** Continued until it is cut: tokens that end it are excluded. What it says does not matter. */
const repetition = 'no no '.repeat(40).trim();
const endless: readonly Message[] = [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: repetition },
];
const endlessText = `<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n${repetition}`;

export async function measureEngine(options: EngineOptions): Promise<readonly EngineFigures[]> {
  const folder = makeScratch('engine');
  try {
    const figures: EngineFigures[] = [];
    for (const file of modelsOf(folder, options.modelFile)) {
      options.say(`engine  ${file.label}`);
      const rounds = await measureModel(file, options).catch((error: unknown) => String(error));
      const { label, threads, large } = file;
      figures.push({
        model: { label, threads, large },
        ...(typeof rounds === 'string' ? { missing: rounds } : { rounds }),
      });
    }
    return figures;
  } finally {
    removeScratch(folder);
  }
}

function modelsOf(folder: string, own: string | undefined): readonly EngineModelFile[] {
  const tiny = join(import.meta.dirname, '..', 'models', 'tiny', 'tiny.gguf');
  const path = join(folder, 'large.gguf');
  const megabytes = Math.round(writeLargeModel(path, tiny) / 1e6);
  // One core is left for the gateway and the caller, as on a machine with more of them.
  const threads = Math.max(1, Math.floor(everyCore.count / 2));
  const models = [
    { label: 'tiny', path: tiny, threads: 1, large: false },
    { label: `random weights, ${megabytes} MB`, path, threads, large: true },
  ];
  if (own === undefined) return models;
  if (!existsSync(own)) throw new Error(`${own} is not there`);
  return [...models, { label: basename(own), path: own, threads, large: statSync(own).size > 5e7 }];
}

async function measureModel(
  file: EngineModelFile,
  { rounds, quick }: EngineOptions,
): Promise<readonly EngineRound[]> {
  const library = startHelper(join(import.meta.dirname, 'engine-library.ts'), {
    core: everyCore.name,
    args: [file.path, String(file.threads), String(context)],
  });
  const local = {
    models: { bench: { path: file.path, threads: file.threads, context, parallel: atOnce } },
  };
  const more = `local: ${JSON.stringify(local)}\n`;
  try {
    const ready = await library.next();
    if (!isLibraryReady(ready)) throw new Error('the library did not start');
    const gateway = await startGateway({ mockPort: 9, core: everyCore.name, config: more });
    try {
      const bench = new EngineBench({
        port: gateway.port,
        library,
        tokens: tokensOf(file, quick),
        endTokens: ready.endTokens,
      });
      await bench.warmUp();
      const all: EngineRound[] = [];
      for (let round = 0; round < rounds; round++) all.push(await bench.round(quick ? 10 : 30));
      return all;
    } finally {
      await gateway.stop();
    }
  } finally {
    await library.stop();
  }
}

/** Long enough to even out, short enough for the large model. */
function tokensOf({ large }: EngineModelFile, quick: boolean): number {
  if (large) return quick ? 32 : 100;
  return quick ? 200 : 1000;
}

interface BenchSlotDeps {
  readonly port: number;
  readonly library: Helper;
  readonly tokens: number;
  readonly endTokens: readonly number[];
}

class EngineBench {
  readonly #port: number;
  readonly #library: Helper;
  readonly #tokens: number;
  readonly #endTokens: readonly number[];
  #asked = 0;

  constructor({ port, library, tokens, endTokens }: BenchSlotDeps) {
    this.#port = port;
    this.#library = library;
    this.#tokens = tokens;
    this.#endTokens = endTokens;
  }

  async warmUp(): Promise<void> {
    await this.#gatewayMsPerToken();
    await this.#libraryMsPerToken();
  }

  async round(calls: number): Promise<EngineRound> {
    const libraryMsPerToken = await this.#libraryMsPerToken();
    const gatewayMsPerToken = await this.#gatewayMsPerToken();
    const firstMs: number[] = [];
    for (let i = 0; i < calls; i++)
      firstMs.push((await this.#ask([this.#question()], fewTokens)).firstMs);
    return {
      libraryMsPerToken,
      gatewayMsPerToken,
      firstMs,
      turns: await this.#conversation(),
      oneByOneRate: await this.#rate(false),
      atOnceRate: await this.#rate(true),
    };
  }

  async #libraryMsPerToken(): Promise<number> {
    const order: LibraryOrder = { prompt: endlessText, tokens: this.#tokens };
    const answer = await this.#library.ask(order);
    if (!isLibraryAnswer(answer)) throw new Error('the library gave no figure');
    return answer.msPerToken;
  }

  async #gatewayMsPerToken(): Promise<number> {
    const { firstMs, lastMs, completionTokens } = await this.#askEndless(this.#tokens);
    if (completionTokens < this.#tokens / 2)
      throw new Error(`only ${completionTokens} tokens came`);
    return (lastMs - firstMs) / (completionTokens - 1);
  }

  /** The history is what was said, so that all of it but the last question is known by then. */
  async #conversation(): Promise<readonly Turn[]> {
    const shown: (Omit<Turn, 'anewMs'> & { readonly messages: readonly Message[] })[] = [];
    let messages: readonly Message[] = [];
    for (let turn = 1; turn <= lastTurn; turn++) {
      messages = [...messages, this.#question()];
      const { firstMs, promptTokens, text } = await this.#ask(messages, 24);
      if (shownTurns.has(turn)) shown.push({ turn, promptTokens, firstMs, messages });
      messages = [...messages, { role: 'assistant', content: text }];
    }
    const all: Turn[] = [];
    for (const { messages: asked, ...turn } of shown) {
      const anew = { model, messages: asked, maxTokens: fewTokens, seed: turn.turn };
      all.push({ ...turn, anewMs: (await timedStream(this.#port, anew)).firstMs });
    }
    return all;
  }

  /** Tokens a second of all requests together. */
  async #rate(together: boolean): Promise<number> {
    const ask = (tokens = this.#tokens): Promise<TimedAnswer> => this.#askEndless(tokens);
    const all = Array.from({ length: atOnce });
    // Each place has read the prompt by then: reading it is measured elsewhere.
    await Promise.all(all.map(() => ask(fewTokens)));
    const startedAt = performance.now();
    const answers: TimedAnswer[] = [];
    if (together) answers.push(...(await Promise.all(all.map(() => ask()))));
    else for (let i = 0; i < atOnce; i++) answers.push(await ask());
    const tokens = answers.reduce((sum, { completionTokens }) => sum + completionTokens, 0);
    return (tokens * 1000) / (performance.now() - startedAt);
  }

  #askEndless(maxTokens: number): Promise<TimedAnswer> {
    const question = { model, messages: endless, maxTokens };
    return timedStream(this.#port, { ...question, without: this.#endTokens });
  }

  #ask(messages: readonly Message[], maxTokens: number): Promise<TimedAnswer> {
    return timedStream(this.#port, { model, messages, maxTokens });
  }

  /** Another one each time, so that no prompt is the one before. */
  #question(): Message {
    this.#asked += 1;
    const content = `My name is ${this.#asked}-${this.#asked * 7}. Please tell me in a few words who you are and what this gateway can do for me.`;
    return { role: 'user', content };
  }
}

function isLibraryReady(value: unknown): value is LibraryReady {
  return typeof value === 'object' && value !== null && 'endTokens' in value;
}

function isLibraryAnswer(value: unknown): value is LibraryAnswer {
  return typeof value === 'object' && value !== null && 'msPerToken' in value;
}
