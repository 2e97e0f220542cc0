/** Loads node-llama-cpp, or says what to install. Nothing is ever downloaded or compiled. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import type { Llama } from 'node-llama-cpp';
import { isObject, tryParse } from './json.ts';
import type { ChatTemplate } from './prompt.ts';

export type Library = typeof import('node-llama-cpp');

export interface LoadedLibrary {
  readonly library: Library;
  readonly llama: Llama;
  /** Compiles a Jinja chat template. @throws Error for a template that is not Jinja. */
  readonly compileTemplate: (source: string) => ChatTemplate;
}

/** The engine cannot run here. The message says why and what to do; callers see it, so no paths. */
export class EngineUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'EngineUnavailable';
  }
}

const platforms: { readonly [platform: string]: string } = { darwin: 'mac', win32: 'win' };
const processors: { readonly [arch: string]: string } = { arm: 'armv7l' };

/**
 * @param threads of the model; absent = one per core, with one core left to other processes
 * @throws EngineUnavailable when the library or its binary for this platform is missing.
 */
export async function loadLibrary(threads: number | undefined): Promise<LoadedLibrary> {
  const library = await importLibrary();
  try {
    const llama = await library.getLlama({
      gpu: false,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      logLevel: library.LlamaLogLevel.error,
      maxThreads: threads ?? 0,
    });
    llama.maxThreads = threads ?? threadsBeside(llama.cpuMathCores);
    return { library, llama, compileTemplate: templateCompiler() };
  } catch (error) {
    if (error instanceof library.NoBinaryFoundError) {
      throw new EngineUnavailable(missingBinary(), error);
    }
    throw error;
  }
}

/**
 * The threads of a model wait for each other in loops, hundreds of times a token. One that shares its
 * core holds up all: with a second busy process on two cores, two threads took 25 times as long as one.
 */
function threadsBeside(cores: number): number {
  return Math.max(1, Math.min(cores, availableParallelism() - 1));
}

async function importLibrary(): Promise<Library> {
  try {
    return await import('node-llama-cpp');
  } catch (error) {
    const advice = 'Install it with: npm install node-llama-cpp@3.21.1';
    throw new EngineUnavailable(
      `The local engine needs the package node-llama-cpp. ${advice}`,
      error,
    );
  }
}

/** The template engine is a dependency of node-llama-cpp, so it is looked up from there. */
function templateCompiler(): (source: string) => ChatTemplate {
  const fromLibrary = createRequire(createRequire(import.meta.url).resolve('node-llama-cpp'));
  const jinja: Jinja = fromLibrary('@huggingface/jinja');
  return (source) => new jinja.Template(source);
}

interface Jinja {
  readonly Template: new (source: string) => ChatTemplate;
}

function missingBinary(): string {
  const platform = platforms[process.platform] ?? process.platform;
  const name = `${platform}-${processors[process.arch] ?? process.arch}`;
  const libc =
    process.platform === 'linux'
      ? ' (it needs glibc; Alpine and other musl systems have none)'
      : '';
  return (
    'The local engine has no binary for this machine. ' +
    `Install it with: npm install @node-llama-cpp/${name}@${libraryVersion()}${libc}`
  );
}

function libraryVersion(): string {
  const entry = createRequire(import.meta.url).resolve('node-llama-cpp');
  const manifest = tryParse(readFileSync(join(dirname(entry), '..', 'package.json'), 'utf8'));
  const version = isObject(manifest) ? manifest['version'] : undefined;
  return typeof version === 'string' ? version : 'latest';
}
