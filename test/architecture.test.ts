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

/** By the longest folder path that a file lies under; a folder below a layer may be a layer of its own. */
const layers: { readonly [folder: string]: Layer } = {
  json: { imports: [], packages: [], pure: true },
  core: { imports: ['json'], packages: [], pure: true },
  dialects: { imports: ['core', 'json'], packages: [], pure: true },
  wire: { imports: ['core', 'json'], packages: [] },
  config: { imports: ['core', 'json'], packages: ['yaml', 'zod'] },
  store: { imports: ['core', 'json'], packages: ['pg', 'ioredis'] },
  access: { imports: ['core', 'json', 'store'], packages: ['@pydantic/genai-prices'] },
  tokens: { imports: ['core', 'json'], packages: ['gpt-tokenizer'] },
  'local-models': { imports: ['core', 'json', 'store', 'wire'], packages: ['undici'] },
  providers: {
    imports: ['core', 'json', 'dialects', 'wire', 'local-models'],
    packages: ['google-auth-library', '@aws-sdk/credential-providers'],
  },
  gateway: { imports: ['core', 'json', 'dialects', 'providers', 'wire', 'tokens'], packages: [] },
  observe: { imports: ['core', 'json'], packages: [] },
  'observe/metrics': {
    imports: ['core', 'json', 'store', 'access', 'providers', 'gateway', 'observe'],
    packages: [],
  },
  'observe/traces': {
    imports: ['core', 'json', 'store', 'gateway', 'observe'],
    packages: ['@opentelemetry/exporter-trace-otlp-proto'],
  },
  features: { imports: ['core', 'json', 'wire', 'gateway', 'access', 'store'], packages: [] },
  http: {
    imports: [
      'core',
      'json',
      'dialects',
      'providers',
      'gateway',
      'local-models',
      'access',
      'store',
      'features',
      'observe/traces',
    ],
    packages: [],
  },
  admin: {
    imports: [
      'core',
      'json',
      'dialects',
      'config',
      'gateway',
      'access',
      'store',
      'observe/metrics',
      'features',
      'http',
    ],
    packages: ['zod', 'openid-client'],
  },
  // Processes of one gateway: what they say to each other, and the store of the one that has it.
  'compose/workers': { imports: ['core', 'json', 'store'], packages: [] },
  // The template library is the engine library's own and is loaded through it.
  engine: { imports: [], packages: ['node-llama-cpp', '@huggingface/jinja'] },
  cli: { imports: ['core', 'json', 'config'], packages: ['yaml'] },
};

const builtinsOfPureLayers = new Set([
  'node:buffer',
  'node:crypto',
  'node:util',
  'node:string_decoder',
]);

/** The composition root imports every layer. */
const compositionRoot = new Set(['', 'compose']);

interface Source {
  /** Path from src/, with forward slashes. */
  readonly path: string;
  /** The folder below src/ that is its layer; '' for files directly in src/. */
  readonly layer: string;
  readonly text: string;
  readonly code: string;
}

const root = join(import.meta.dirname, '..');
const sources: readonly Source[] = globSync('src/**/*.{ts,mts,cts,js,mjs}', { cwd: root }).map(
  (file) => {
    const path = relative('src', file).replaceAll('\\', '/');
    const text = readFileSync(join(root, file), 'utf8');
    return { path, layer: layerAt(path), text, code: withoutComments(text) };
  },
);

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[\s;{(])\/\/.*$/gm, '$1');
}

const importForms = [
  /\b(?:import|export)\b[^;'"`]*?\bfrom\s*['"]([^'"]+)['"]/g,
  // Behind a quote it is the name of the command.
  /(?<!['"])\bimport\s*['"]([^'"]+)['"]/g,
  /\bimport\(\s*['"]([^'"]+)['"]/g,
];

function importsOf(source: Source): readonly string[] {
  return importForms.flatMap((form) =>
    [...source.code.matchAll(form)].map((match) => match[1] ?? ''),
  );
}

/** The layer that a relative import leads to. */
function layerOf(source: Source, specifier: string): string {
  return layerAt(join(dirname(source.path), specifier).replaceAll('\\', '/'));
}

/** The layer of a path from src/: its first two folders where they are one, else its first; '' without a folder. */
function layerAt(path: string): string {
  const [first = '', second = '', file] = path.split('/');
  if (file !== undefined && `${first}/${second}` in layers) return `${first}/${second}`;
  return path.includes('/') ? first : '';
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

/** Dialects that carry members of another one in their own requests and answers. */
const carriedDialects: { readonly [dialect: string]: string } = {
  // The vendor of both: errors, limits, and bodies in the form of chat that are counted.
  'openai-responses': 'openai-chat',
  // Options of Claude.
  'bedrock-converse': 'anthropic-messages',
};

/** The folder below src/dialects that a path lies in; undefined for other paths. */
function dialectAt(path: string): string | undefined {
  const [first, second, third] = path.split('/');
  return first === 'dialects' && third !== undefined ? second : undefined;
}

test('dialects import what is in dialects/shared, and no other dialect', () => {
  const wrong = sources.flatMap((source) => {
    const own = dialectAt(source.path);
    if (own === undefined) return [];
    const allowed = new Set([own, 'shared', carriedDialects[own]]);
    return importsOf(source)
      .filter((specifier) => specifier.startsWith('.'))
      .map((specifier) => join(dirname(source.path), specifier).replaceAll('\\', '/'))
      .filter((path) => dialectAt(path) !== undefined && !allowed.has(dialectAt(path)))
      .map((path) => `${source.path} imports ${path}`);
  });
  assert.deepEqual(wrong, []);
});

test('relative imports name their file ending', () => {
  const wrong = sources.flatMap((source) =>
    importsOf(source)
      .filter((specifier) => specifier.startsWith('.') && !/\.(ts|json|js|mjs)$/.test(specifier))
      .map((specifier) => `${source.path} imports ${specifier}`),
  );
  assert.deepEqual(wrong, []);
});

test('no import of values of node:http, which loads the undici of Node; they are in core/node-http.ts', () => {
  const ofValues = /^import (?!type\b)[^;]*?from 'node:http';/m;
  assert.match("import { type Server, request } from 'node:http';", ofValues);
  assert.deepEqual(
    offenders(({ code }) => ofValues.test(code)),
    [],
  );
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

test('JSON.parse stands in src/json only, and in one place of the engine', () => {
  const users = offenders(({ code }) => code.includes('JSON.parse'));
  const allowed = (path: string): boolean => path.startsWith('json/') || path.startsWith('engine/');
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

/** Members of request bodies. Those with an underscore stand for nothing else; the others only where they are read. */
const bodyMembers =
  'max_tokens|max_completion_tokens|tool_choice|tool_calls|tool_call_id|parallel_tool_calls|response_format|output_config|output_format|stop_sequences|stream_options|prompt_cache_key|service_tier|safety_identifier|reasoning_effort|web_search_options|search_parameters|image_url|input_audio|file_data|cache_control|top_p|top_k|logit_bias|max_uses|tool_use_id|input_schema|budget_tokens';
const plainMembers =
  'messages|tools|system|stop|metadata|user|plugins|fallbacks|functions|thinking|temperature|seed|speed|modalities|prediction|role';
const memberNamed = new RegExp(
  `(?<![\\w.])(?:${bodyMembers})(?!\\w)|\\[['"](?:${plainMembers})['"]\\]`,
);

/** Dialects read and write bodies, providers tell what vendors refuse; the engine and the command line are programs of their own. */
const mayNameMembers = new Set(['dialects', 'providers', 'engine', 'cli', 'json']);
/** Names that are values of traits, members of the list of models, or what the scanner of bodies looks for. */
const memberTables =
  /^(?:core\/traits|core\/json-marks|core\/wasm\/json-walk|admin\/handler|http\/models)\.ts$/;

test('no code outside a dialect names a member of a body', () => {
  assert.match(`body['messages']`, memberNamed);
  assert.match('const { service_tier: tier } = body;', memberNamed);
  assert.doesNotMatch(`'gen_ai.request.max_tokens': caps`, memberNamed);
  assert.deepEqual(
    sources
      .filter(({ layer, path }) => !mayNameMembers.has(layer) && !memberTables.test(path))
      .flatMap(({ path, code }) =>
        code
          .split('\n')
          .filter((line) => memberNamed.test(line))
          .map((line) => `${path}: ${line.trim()}`),
      ),
    [],
  );
});

const onTheWayOfCalls = new Set([
  'core',
  'json',
  'dialects',
  'wire',
  'gateway',
  'features',
  'http',
  'admin',
  'observe/metrics',
  'observe/traces',
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

test('no source file is longer than 800 lines', () => {
  assert.deepEqual(
    offenders(({ text }) => text.split('\n').length > 800),
    [],
  );
});

test('the lock file carries no download addresses', () => {
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const places = [...lock.matchAll(/"resolved": "(.*)"/g)].map(([, place]) => place);
  assert.deepEqual(places, ['scripts/own-node'], 'a folder of the repository');
});
