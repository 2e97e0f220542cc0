// Runs after `npm ci` and removes what the install brings but nothing here ever reads (about 220 MB):
// the C headers of the Node package, the llama.cpp source that is only there to be compiled (we never
// compile: docs/decisions/0002-install.md), engine binaries of another processor, and what the tokenizer
// package holds besides the two vocabularies in use, all source maps, CommonJS builds beside ES modules, and of the
// development packages their sources and the server side of react-dom. Only zod's English messages stay.
// It also links the Node of a clone, which npm 10 does not.
// Safe to skip: without it everything works and takes more room, with the Node of the system where npm 10 installed.
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const modules = join(import.meta.dirname, '..', 'node_modules');

function list(folder) {
  try {
    return readdirSync(join(modules, folder));
  } catch {
    return [];
  }
}

function filesUnder(folder) {
  try {
    const entries = readdirSync(join(modules, folder), { recursive: true });
    return entries.map((name) => join(folder, name));
  } catch {
    return [];
  }
}

const nodePackages = list('.').filter((name) => /^node-(bin-)?(linux|darwin|win)-/.test(name));
const foreignEngines = list('@node-llama-cpp').filter(
  (name) =>
    !name.startsWith({ darwin: 'mac', win32: 'win' }[process.platform] ?? process.platform) ||
    !name.includes(`-${process.arch}`),
);
const tokenizer = [
  'src',
  'cjs',
  'data',
  'esm/model',
  'esm/bpeRanks/p50k_base.js',
  'esm/bpeRanks/r50k_base.js',
];
const telemetry = [
  'core',
  'exporter-trace-otlp-proto',
  'otlp-exporter-base',
  'otlp-transformer',
  'resources',
  'sdk-logs',
  'sdk-metrics',
  'sdk-trace',
  'semantic-conventions',
].flatMap((name) => filesUnder(join('@opentelemetry', name, 'dist')));
// Node takes the CommonJS builds.
const aws = ['@aws-sdk', '@smithy'].flatMap((scope) =>
  list(scope).map((name) => join(scope, name, 'dist-es')),
);
const sdks = ['openai', 'openai-4', '@anthropic-ai/sdk', '@anthropic-ai/sdk-0'];
const sourceMaps = filesUnder('.').filter((name) => name.endsWith('.map'));
// The bundler takes the ES modules.
const commonJs = filesUnder('@base-ui').filter((name) => /\.(js|d\.ts)$/.test(name));
const queryParts = ['react-query', 'query-core', 'react-virtual', 'virtual-core'].flatMap(
  (name) => [join('@tanstack', name, 'src'), join('@tanstack', name, 'build', 'legacy')],
);
const serverParts = list('react-dom/cjs').filter((name) => /-(server|profiling|test)/.test(name));
// An import of zod loads all 70 languages of its messages: a quarter of what zod adds to a start with a config file.
const zodLocales = join('zod', 'v4', 'locales');
const otherLanguages = list(zodLocales).filter((name) => name.endsWith('.js') && name !== 'en.js');
const unused = [
  ...sdks.map((name) => join(name, 'src')),
  ...sourceMaps,
  ...commonJs,
  ...queryParts,
  ...aws,
  ...serverParts.map((name) => join('react-dom', 'cjs', name)),
  join('@base-ui', 'react', 'docs'),
  join('zod', 'src'),
  ...otherLanguages.map((name) => join(zodLocales, name)),
  ...telemetry.filter((name) => /\.(cjs|d\.cts)$/.test(name)),
  ...tokenizer.map((name) => join('gpt-tokenizer', name)),
  ...nodePackages.map((name) => join(name, 'include')),
  join('node-llama-cpp', 'llama', 'gitRelease.bundle'),
  ...foreignEngines.map((name) => join('@node-llama-cpp', name)),
  // For Node before 18 (google-auth-library). In a clone the one on top is read by the SDKs that tests drive.
  ...(list('formdata-node').length > 0 ? [] : ['web-streams-polyfill']),
  join('fetch-blob', 'node_modules', 'web-streams-polyfill'),
  // Viewers of recordings: the tests only drive a browser.
  join('playwright-core', 'lib', 'vite'),
  join('axe-core', 'axe.js'),
  join('axe-core', 'locales'),
];
for (const path of unused) rmSync(join(modules, path), { recursive: true, force: true });
if (otherLanguages.length > 0) {
  writeFileSync(
    join(modules, zodLocales, 'index.js'),
    'export { default as en } from "./en.js";\n',
  );
}
linkOwnNode();

/** npm 10, which comes with Node 20 and 22, does not link the programs of what a workspace brings. */
function linkOwnNode() {
  const own = nodePackages.find((name) => existsSync(join(modules, name, 'bin', 'node')));
  const link = join(modules, '.bin', 'node');
  if (own === undefined || existsSync(link)) return;
  mkdirSync(join(modules, '.bin'), { recursive: true });
  // Of a link that leads nowhere, which existsSync does not see.
  rmSync(link, { force: true });
  symlinkSync(join('..', own, 'bin', 'node'), link);
}
