// Joins the modules of src/, zod, yaml and the used part of node-llama-cpp to a few files in dist/program/, which
// bin/model-gateway starts. A start takes a fifth to a quarter less CPU time, and 19 MB less memory, than with single
// modules (docs/decisions/0071-the-joined-program.md).
// Usage: node scripts/build-program.mjs [--if-possible] [--package FOLDER]
// With --package it is joined for dist/ of the package (scripts/build-package.mjs), with the licences of what comes along.
// With --if-possible (npm's `prepare`, after `npm ci`) a missing or failing bundler is one line, not a failed install: the
// gateway runs without it. bin/model-gateway runs src/ as well as soon as a file of it, or an installed package, changes.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rerunWithOwnNode } from './own-node.mjs';

const root = join(import.meta.dirname, '..');
const src = existsSync(join(root, 'src')) ? realpathSync(join(root, 'src')) : join(root, 'src');
const output = join(root, 'dist', 'program');
const runner = join(import.meta.dirname, 'program', 'run.cjs');
const codeSaver = join(import.meta.dirname, 'program', 'save-code.mjs');
const engineLibrary = join(import.meta.dirname, 'program', 'engine-library.mjs');
const isOptional = process.argv.includes('--if-possible');
const packageAt = process.argv.indexOf('--package');
const ofPackage = packageAt === -1 ? undefined : resolve(process.argv[packageAt + 1] ?? '');

const startedEntry = /import\.meta\.url\.endsWith\('\.ts'\) \? '(\.[\w/.-]+)\.ts' : '\1\.js'/;

/** The program, and what modules start as a thread or a process. */
function entries() {
  const started = filesOf(src, '.ts').flatMap((path) => {
    const entry = startedEntry.exec(readFileSync(join(src, path), 'utf8'))?.[1];
    return entry === undefined ? [] : [join(dirname(path), entry)];
  });
  return ['main', ...started];
}

/** What a module finds by its own address. `@src/` and `@program/` become relative once it is known which file the code is in. */
function withPlaces(code, id, stamp) {
  if (!id.startsWith(src)) return undefined;
  const path = relative(src, id);
  const own = `new URL('@src/${path}', @here)`;
  // main.ts compares its own address with that of the started file.
  const isOfProgram = startedEntry.test(code) || path === 'main.ts';
  const url = isOfProgram ? `new URL('@program/${path.slice(0, -2)}js', @here)` : own;
  const file = `process.getBuiltinModule('node:url').fileURLToPath(${own})`;
  const resolve = `process.getBuiltinModule('node:module').createRequire(${own}).resolve`;
  return code
    .replace(startedEntry, (_, name) => `'${name}-${stamp}.js'`)
    .replaceAll('import.meta.url', `${url}.href`)
    .replaceAll('import.meta.dirname', `process.getBuiltinModule('node:path').dirname(${file})`)
    .replaceAll('import.meta.filename', file)
    .replaceAll('import.meta.resolve', resolve)
    .replaceAll('@here', 'import.meta.url');
}

function withPaths(code, { fileName }) {
  const up = '../'.repeat(fileName.split('/').length - 1);
  const toRoot = ofPackage === undefined ? '../../' : '../';
  return code
    .replaceAll(/(["'`])@program\//g, `$1./${up}`)
    .replaceAll(/(["'`])@src\//g, `$1${up}${toRoot}src/`);
}

/**
 * In the names of the files that threads and processes start with: all names but main.js say what is in the file, so that a build leaves
 * each file of another one as it is. Two builds at once, or a start during one, mix no files.
 */
function stampOfSources() {
  const hash = createHash('sha256');
  const sources = [
    import.meta.filename,
    runner,
    engineLibrary,
    ...filesOf(src, '.ts').map((path) => join(src, path)),
  ];
  const installed = join(root, 'node_modules', '.package-lock.json');
  for (const path of [...sources, ...(existsSync(installed) ? [installed] : [])].sort()) {
    hash
      .update(`${relative(root, path)}\n`)
      .update(readFileSync(path))
      .update('\0');
  }
  return hash.digest('base64url').slice(0, 8);
}

const libraryModules = /\/node-llama-cpp\/dist\//;
/**
 * Modules that import two thirds of the library, such as its build of llama.cpp and its chat. The engine calls none of
 * them (docs/decisions/0073-the-engines-library.md).
 */
const notOfTheEngine = /\/(getLlamaWithoutBackend|getGrammarsFolder|getLlamaClasses)\.js$/;

/** Functions of the same names, which load nothing. */
function withoutItsImports(code, id) {
  if (!libraryModules.test(id) || !notOfTheEngine.test(id)) return undefined;
  const names = [...code.matchAll(/^export (?:async )?function (\w+)/gm)].map(([, name]) => name);
  return names
    .map((name) => `export function ${name}() { throw new Error('${name} is not joined'); }`)
    .join('\n');
}

/** Whether a module stays a package of npm: all that src/ imports but what reads config files and what the engine needs. */
function isPackage(id, importer, hasLibrary) {
  if (/^[./]/.test(id) || !importer?.startsWith(src)) return false;
  if (id === 'node-llama-cpp') return !hasLibrary;
  return !/^(zod|yaml)(\/|$)/.test(id);
}

async function build(folder) {
  const stamp = stampOfSources();
  // It comes with Vite, which builds the dashboard.
  const ofVite = createRequire(createRequire(join(root, 'x')).resolve('vite/package.json'));
  const { rolldown } = await import(pathToFileURL(ofVite.resolve('rolldown')).href);
  // npm leaves it out where it was told to omit optional packages.
  const hasLibrary = existsSync(join(root, 'node_modules', 'node-llama-cpp', 'dist'));
  const bundle = await rolldown({
    input: Object.fromEntries(entries().map((name) => [name, join(src, `${name}.ts`)])),
    platform: 'node',
    external: (id, importer) => isPackage(id, importer, hasLibrary),
    resolve: { alias: { 'node-llama-cpp': engineLibrary } },
    treeshake: { moduleSideEffects: (id) => !libraryModules.test(id) },
    plugins: [
      { name: 'engine', transform: withoutItsImports },
      {
        name: 'places',
        transform: (code, id) => withPlaces(code, id, stamp),
        renderChunk: withPaths,
      },
    ],
  });
  const written = await bundle.write({
    dir: folder,
    format: 'cjs',
    comments: false,
    // Node keeps the text of modules: two bytes a character where one needs more than a byte.
    minify: {
      compress: false,
      mangle: false,
      codegen: { removeWhitespace: false, asciiOnly: true },
    },
    entryFileNames: ({ name }) => `${name.replaceAll('/', '-')}-[hash].cjs`,
    chunkFileNames: '[name]-[hash].cjs',
  });
  await bundle.close();
  const run = `run-${stamp}.cjs`;
  copyFileSync(runner, join(folder, run));
  for (const { isEntry, name, fileName } of written.output) {
    if (!isEntry) continue;
    const started = join(folder, name === 'main' ? 'main.js' : `${name}-${stamp}.js`);
    const path = relative(dirname(started), join(folder, run));
    mkdirSync(dirname(started), { recursive: true });
    writeFileSync(
      started,
      `import { createRequire } from 'node:module';\ncreateRequire(import.meta.url)('./${path}').run('${fileName}');\n`,
    );
  }
  return written.output.flatMap(({ moduleIds = [] }) => moduleIds);
}

/** The texts that must go along with the code of packages. */
function licences(moduleIds) {
  const names = moduleIds.map((id) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1]);
  const texts = [...new Set(names)]
    .filter((name) => name !== undefined)
    .sort()
    .map((name) => {
      const folder = join(root, 'node_modules', name);
      const file =
        readdirSync(folder).find((entry) => /^licen[cs]e(\.|$)/i.test(entry)) ?? 'LICENSE';
      return `# ${name}\n\n${readFileSync(join(folder, file), 'utf8')}`;
    });
  return `The program contains code of these packages.\n\n${texts.join('\n')}`;
}

async function buildPackage() {
  const moduleIds = await build(ofPackage);
  writeFileSync(join(ofPackage, 'licenses.md'), licences(moduleIds));
}

/** A gateway that runs loads some of its files later: those of the build before this one stay, older ones for a month. */
const keptMs = 30 * 24 * 60 * 60 * 1000;

/** @param begun of the build: what is written to src/ from then on makes the program outdated */
function replace(folder, begun) {
  const entry = 'main.js';
  const before = statSync(join(output, entry), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const unusedBefore = Math.min(before, begun.getTime() - keptMs);
  const made = filesOf(folder).sort((a, b) => Number(a === entry) - Number(b === entry));
  utimesSync(join(folder, entry), begun, begun);
  for (const name of made) {
    mkdirSync(dirname(join(output, name)), { recursive: true });
    renameSync(join(folder, name), join(output, name));
  }
  for (const name of filesOf(output)) {
    const path = join(output, name);
    // Another build may have renamed it.
    const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (!made.includes(name) && writtenAt < unusedBefore) rmSync(path, { force: true });
  }
}

/** @param ending absent: all files */
function filesOf(folder, ending = '') {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile() && file.name.endsWith(ending))
    .map((file) => relative(folder, join(file.parentPath, file.name)));
}

async function buildClone() {
  if (!existsSync(join(src, 'main.ts'))) return;
  mkdirSync(dirname(output), { recursive: true });
  const folder = mkdtempSync(join(root, '.packing-'));
  // By the clock of the file system, which dates the files of src/ as well.
  const begun = statSync(folder).mtime;
  try {
    await build(folder);
    replace(folder, begun);
    saveCode(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const saveLimitMs = 60_000;

/** Without it a start takes longer, and is the same otherwise. */
function saveCode(scratch) {
  const { PATH } = process.env;
  const { status, error, stderr } = spawnSync(process.execPath, [codeSaver, output], {
    cwd: scratch,
    env: { PATH, HOME: scratch, TMPDIR: scratch },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: saveLimitMs,
    // The gateway drains on other signals.
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  });
  if (status === 0) return;
  const why = error?.message ?? /^\w*Error.*/m.exec(stderr)?.[0] ?? `it ended with ${status}`;
  process.stderr.write(`program: its code was not saved: ${why}\n`);
}

// npm runs `prepare` when it packs, too; the package has no such files.
const isPacking = ['pack', 'publish'].includes(process.env.npm_command);
if (!isOptional || !isPacking) {
  const status = rerunWithOwnNode();
  if (status === undefined) {
    try {
      await (ofPackage === undefined ? buildClone() : buildPackage());
    } catch (error) {
      const [why] = String(error instanceof Error ? error.message : error).split('\n');
      process.stderr.write(`program: not joined: ${why}\n`);
      if (!isOptional) process.exitCode = 1;
    }
  } else if (!isOptional) process.exitCode = status;
}
