/** The shape that architecture.md decides, read from the files: a wrong arrow fails here. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';

interface Layer {
  /** Folders of src/ that it may import besides its own. */
  readonly imports: readonly string[];
  /** npm packages that it may import. */
  readonly packages: readonly string[];
  /** Pure layers do no I/O. */
  readonly pure?: true;
}

const layers: { readonly [folder: string]: Layer } = {
  core: { imports: [], packages: [], pure: true },
  dialects: { imports: ['core'], packages: [], pure: true },
  wire: { imports: ['core'], packages: ['undici'] },
  config: { imports: ['core'], packages: ['yaml', 'zod'] },
  store: { imports: ['core'], packages: ['pg', 'ioredis'] },
  observe: { imports: ['core'], packages: ['@opentelemetry/exporter-trace-otlp-proto'] },
  workers: { imports: ['core', 'store'], packages: [] },
  access: { imports: ['core', 'store'], packages: ['@pydantic/genai-prices'] },
  tokens: { imports: ['core'], packages: ['gpt-tokenizer'] },
  'local-models': { imports: ['core', 'store'], packages: ['undici'] },
  providers: { imports: ['core', 'dialects', 'wire', 'local-models'], packages: [] },
  gateway: { imports: ['core', 'dialects', 'providers', 'wire', 'tokens'], packages: [] },
  server: {
    imports: [
      'core',
      'dialects',
      'providers',
      'wire',
      'gateway',
      'local-models',
      'access',
      'store',
      'config',
      'observe',
    ],
    packages: ['zod'],
  },
  // The template library is the engine library's own and is loaded through it.
  engine: { imports: [], packages: ['node-llama-cpp', '@huggingface/jinja'] },
  cli: { imports: ['core', 'config'], packages: [] },
};

const builtinsOfPureLayers = new Set([
  'node:buffer',
  'node:crypto',
  'node:util',
  'node:string_decoder',
]);

/** The composition root knows everybody. */
const compositionRoot = new Set(['', 'start']);

interface Source {
  /** Path from src/, with forward slashes. */
  readonly path: string;
  /** Folder below src/; '' for what stands beside them. */
  readonly layer: string;
  readonly text: string;
  readonly code: string;
}

const root = join(import.meta.dirname, '..');
const sources: readonly Source[] = globSync('src/**/*.{ts,mts,cts,js,mjs}', { cwd: root }).map(
  (file) => {
    const path = relative('src', file).replaceAll('\\', '/');
    const text = readFileSync(join(root, file), 'utf8');
    const layer = path.includes('/') ? path.slice(0, path.indexOf('/')) : '';
    return { path, layer, text, code: withoutComments(text) };
  },
);

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[\s;{(])\/\/.*$/gm, '$1');
}

const importForms = [
  /\b(?:import|export)\b[^;'"`]*?\bfrom\s*['"]([^'"]+)['"]/g,
  /\bimport\s*['"]([^'"]+)['"]/g,
  /\bimport\(\s*['"]([^'"]+)['"]/g,
];

function importsOf(source: Source): readonly string[] {
  return importForms.flatMap((form) =>
    [...source.code.matchAll(form)].map((match) => match[1] ?? ''),
  );
}

/** The layer that a relative import leads to. */
function layerOf(source: Source, specifier: string): string {
  const target = join(dirname(source.path), specifier).replaceAll('\\', '/');
  return target.includes('/') ? target.slice(0, target.indexOf('/')) : '';
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** What is wrong with one import; undefined when it is allowed. */
function wrongImport(source: Source, specifier: string): string | undefined {
  if (compositionRoot.has(source.layer)) return undefined;
  const layer = layers[source.layer];
  if (layer === undefined) return `${source.path}: src/${source.layer} is no known layer`;
  const where = `${source.path} imports ${specifier}`;
  if (specifier.startsWith('.')) {
    const target = layerOf(source, specifier);
    return target === source.layer || layer.imports.includes(target) ? undefined : where;
  }
  if (specifier.startsWith('node:')) {
    return layer.pure && !builtinsOfPureLayers.has(specifier) ? where : undefined;
  }
  return layer.packages.includes(packageOf(specifier)) ? undefined : where;
}

function offenders(wrong: (source: Source) => boolean): readonly string[] {
  return sources.filter(wrong).map((source) => source.path);
}

test('imports point one way', () => {
  assert.ok(sources.length > 0, 'src/ has files');
  const wrong = sources.flatMap((source) =>
    importsOf(source).map((specifier) => wrongImport(source, specifier)),
  );
  assert.deepEqual(
    wrong.filter((text) => text !== undefined),
    [],
  );
});

test('the import check sees every form of import and refuses a wrong arrow', () => {
  const code = `import a from './a.ts';\nexport { b } from "../wire/b.ts";\nimport 'c';\nimport type {\n  D,\n} from 'node:fs';\nawait import('e');`;
  const source: Source = { path: 'core/x.ts', layer: 'core', text: code, code };
  assert.deepEqual([...importsOf(source)].sort(), ['../wire/b.ts', './a.ts', 'c', 'e', 'node:fs']);
  assert.deepEqual(
    importsOf(source).map((specifier) => wrongImport(source, specifier) === undefined),
    [true, false, false, false, false],
  );
});

test('relative imports name their file ending', () => {
  const wrong = sources.flatMap((source) =>
    importsOf(source)
      .filter((specifier) => specifier.startsWith('.') && !/\.(ts|json|js|mjs)$/.test(specifier))
      .map((specifier) => `${source.path} imports ${specifier}`),
  );
  assert.deepEqual(wrong, []);
});

test('no file is named utils, helpers, common, misc or types', () => {
  const files = globSync('{src,test,bench,scripts}/**/*.{ts,mts,cts,js,mjs}', { cwd: root });
  const vague = /(^|[/\\.-])(utils?|helpers?|common|misc|types?)(\.[\w.]+|[/\\].*)$/;
  assert.deepEqual(
    files.filter((file) => vague.test(file)),
    [],
  );
});

test('no default exports', () => {
  assert.deepEqual(
    offenders(({ code }) => /\bexport\s+default\b|\bas\s+default\b/.test(code)),
    [],
  );
});

test('JSON.parse stands in core/json.ts only, and in one place of the engine', () => {
  const users = offenders(({ code }) => code.includes('JSON.parse'));
  const allowed = (path: string): boolean => path === 'core/json.ts' || path.startsWith('engine/');
  assert.deepEqual(
    users.filter((path) => !allowed(path)),
    [],
  );
  assert.ok(users.filter((path) => path.startsWith('engine/')).length <= 1, users.join(', '));
});

test('only the command line writes to the console', () => {
  assert.deepEqual(
    offenders(({ code, layer }) => layer !== 'cli' && /\bconsole\s*\./.test(code)),
    [],
  );
});

test('no vendor name decides anything outside src/providers', () => {
  const branch =
    /[=!]==\s*['"](openai|anthropic|gemini|groq|mistral|deepseek|xai|ollama|openrouter)['"]/;
  const allowed = new Set(['providers', 'config', 'cli']);
  assert.deepEqual(
    offenders(({ code, layer }) => !allowed.has(layer) && branch.test(code)),
    [],
  );
});

const onTheWayOfCalls = new Set([
  'core',
  'dialects',
  'wire',
  'gateway',
  'server',
  'access',
  'tokens',
]);
/** `a.b = () => …`: a function that is made where it is assigned to a member. */
const functionIntoMember =
  /[\w)\]]\.#?\w+ (?:\?\?)?= (?:async )?(?:function\b|\([^()]*\)(?:: [\w<>| ]+)? =>|\w+ =>)/;

// V8 puts such a function into the old generation, where it keeps alive what it sees until all is collected.
test('no function is made in its assignment to a member on the way of calls', () => {
  assert.match('    one.came = () => this.#won(side);', functionIntoMember);
  assert.match('    this.#now = async (at: number): Promise<void> => {', functionIntoMember);
  assert.doesNotMatch('    one.came = won;', functionIntoMember);
  assert.deepEqual(
    offenders(({ code, layer }) => onTheWayOfCalls.has(layer) && functionIntoMember.test(code)),
    [],
  );
});

test('no source file is longer than 600 lines', () => {
  assert.deepEqual(
    offenders(({ text }) => text.split('\n').length > 600),
    [],
  );
});

test('the lock file carries no download addresses', () => {
  assert.ok(!readFileSync(join(root, 'package-lock.json'), 'utf8').includes('"resolved"'));
});
