/** Loads node-llama-cpp and its binary, or says what to install. Nothing is ever downloaded or compiled. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { isSea } from 'node:sea';
import type { Llama } from 'node-llama-cpp';
import { isObject, tryParse } from './engine-error.ts';
import type { ChatTemplate } from './prompt.ts';

/** What the engine uses of the library: `scripts/program/engine-library.mjs` has the same names for the joined program. */
type Library = Pick<
  typeof import('node-llama-cpp'),
  'Llama' | 'LlamaGrammar' | 'LlamaGrammarEvaluationState' | 'TokenBias'
>;

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

/** The installed library is not the one that this code knows the internals of. */
export function anotherVersion(): EngineUnavailable {
  return new EngineUnavailable(
    'The installed node-llama-cpp is of another version than this gateway needs; run npm ci.',
  );
}

/**
 * @param threads of the model; absent = one per core, with one core left to other processes
 * @throws EngineUnavailable when the library or its binary for this platform is missing.
 */
export async function loadLibrary(threads: number | undefined): Promise<LoadedLibrary> {
  const { library, fromLibrary } = await importLibrary();
  const llama = await startLlama(library, fromLibrary);
  // The threads of a model wait for each other in loops, hundreds of times a token. One that shares its
  // core holds up all: with a second busy process on two cores, two threads took 25 times as long as one.
  llama.maxThreads =
    threads ?? Math.max(1, Math.min(llama.cpuMathCores, availableParallelism() - 1));
  return { library, llama, compileTemplate: templateCompiler(fromLibrary) };
}

interface Imported {
  readonly library: Library;
  /** Finds packages as the library does. */
  readonly fromLibrary: NodeJS.Require;
}

async function importLibrary(): Promise<Imported> {
  try {
    // The joined program has the library's modules, and not its binary and its template engine.
    const fromLibrary = createRequire(createRequire(import.meta.url).resolve('node-llama-cpp'));
    return { library: await import('node-llama-cpp'), fromLibrary };
  } catch (error) {
    throw notImported(error);
  }
}

/** The package may also be there and fail to load, for example where the user of the process has no home. */
export function notImported(error: unknown): EngineUnavailable {
  // A missing dependency of the package has the same code, and another name in quotes.
  const isMissing =
    !(error instanceof Error) ||
    ('code' in error &&
      String(error.code).endsWith('MODULE_NOT_FOUND') &&
      error.message.includes("'node-llama-cpp'"));
  if (!isSea() && !isMissing) {
    const [reason = ''] = error.message.split('\n');
    return new EngineUnavailable(
      `The package node-llama-cpp could not be loaded: ${reason}`,
      error,
    );
  }
  const advice = isSea()
    ? 'This build has none: use the npm package of the gateway.'
    : 'Install it with: npm install node-llama-cpp@3.21.1';
  return new EngineUnavailable(
    `The local engine needs the package node-llama-cpp. ${advice}`,
    error,
  );
}

/** What `getLlama` gives to `Llama._create`, which is not a part of the library's interface. */
interface LlamaOptions {
  readonly bindings: unknown;
  readonly bindingPath: string;
  readonly buildType: 'prebuilt';
  readonly buildMetadata: unknown;
  readonly logLevel: 'error';
  readonly logger: Library['Llama']['defaultConsoleLogger'];
  /** 0 = no limit. */
  readonly maxThreads: number;
  readonly ramPadding: number;
  readonly vramPadding: number;
  readonly debug: boolean;
  readonly numa: false;
  readonly tempDir: false;
}

/**
 * Starts llama.cpp as the library's `getLlama` does, without its trial run: `getLlama` loads the library and the binary in a
 * process of its own first, since a binary may crash. The engine is such a process (docs/decisions/0073-the-engines-library.md).
 */
async function startLlama({ Llama }: Library, fromLibrary: NodeJS.Require): Promise<Llama> {
  const create: unknown = Reflect.get(Llama, '_create');
  if (!isCreate(create)) throw anotherVersion();
  const { path, metadata } = findBinary(fromLibrary);
  try {
    const module = { exports: {} };
    process.dlopen(module, path);
    return await create.call(Llama, {
      bindings: module.exports,
      bindingPath: path,
      buildType: 'prebuilt',
      buildMetadata: metadata,
      logLevel: 'error',
      logger: Llama.defaultConsoleLogger,
      maxThreads: 0,
      ramPadding: 0,
      vramPadding: 0,
      debug: false,
      numa: false,
      tempDir: false,
    });
  } catch (error) {
    const [why = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new EngineUnavailable(
      `The binary of the local engine could not be loaded: ${why.replaceAll(join(dirname(path), '/'), '')}`,
      error,
    );
  }
}

function isCreate(value: unknown): value is (options: LlamaOptions) => Promise<Llama> {
  return typeof value === 'function';
}

const platforms: { readonly [platform: string]: string } = { darwin: 'mac', win32: 'win' };
/** Where the name of a package is not that of its platform and processor. Apple's processors have a binary with Metal only. */
const packages: { readonly [machine: string]: string } = {
  'linux-arm': 'linux-armv7l',
  'mac-arm64': 'mac-arm64-metal',
};
const glibc =
  process.platform === 'linux' ? ' (it needs glibc; Alpine and other musl systems have none)' : '';

/** The package of a machine's binary, and its folder in it: from Node's names of a machine to those of node-llama-cpp. */
export function binaryOf(
  platform: string,
  arch: string,
): { readonly name: string; readonly folder: string } {
  const machine = `${platforms[platform] ?? platform}-${arch}`;
  const name = packages[machine] ?? machine;
  return { name: `@node-llama-cpp/${name}`, folder: arch === 'arm' ? machine : name };
}

interface Binary {
  readonly path: string;
  readonly metadata: unknown;
}

/** @throws EngineUnavailable where there is none of the library's version */
function findBinary(fromLibrary: NodeJS.Require): Binary {
  const { name, folder } = binaryOf(process.platform, process.arch);
  const wanted = libraryVersion(fromLibrary);
  try {
    const root = join(dirname(fromLibrary.resolve(name)), '..');
    const found = versionIn(root);
    if (found !== wanted) throw new Error(`${name} is of version ${found}`);
    const place = join(root, 'bins', folder);
    const metadata = tryParse(readFileSync(join(place, '_nlcBuildMetadata.json'), 'utf8'));
    return { path: join(place, 'llama-addon.node'), metadata };
  } catch (error) {
    throw new EngineUnavailable(
      `The local engine has no binary for this machine. Install it with: npm install ${name}@${wanted}${glibc}`,
      error,
    );
  }
}

function libraryVersion(fromLibrary: NodeJS.Require): string {
  return versionIn(join(dirname(fromLibrary.resolve('node-llama-cpp')), '..')) ?? 'latest';
}

/** Of the package in a folder. */
function versionIn(folder: string): string | undefined {
  const manifest = tryParse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const version = isObject(manifest) ? manifest['version'] : undefined;
  return typeof version === 'string' ? version : undefined;
}

/** The template engine is a dependency of node-llama-cpp, so it is looked up from there. */
function templateCompiler(fromLibrary: NodeJS.Require): (source: string) => ChatTemplate {
  const jinja: Jinja = fromLibrary('@huggingface/jinja');
  return (source) => new jinja.Template(source);
}

interface Jinja {
  readonly Template: new (source: string) => ChatTemplate;
}
