// Builds the dashboard (dashboard/) into dist/dashboard/: hashed files with a gzip beside each, and the licences of
// what is in them. Usage: node scripts/build-dashboard.mjs [--if-possible] [--out FOLDER]
// With --if-possible (npm's `prepare`, after `npm ci`) a missing or failing bundler is one line, not a failed install:
// the gateway runs without its dashboard and says how to build it. npm runs `prepare` when it packs, too, where
// scripts/build-package.mjs has built the dashboard: nothing is left to do there.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { gzipSync, constants } from 'node:zlib';
import { ownNode, rerunWithOwnNode } from './own-node.mjs';

const root = join(import.meta.dirname, '..');
const sources = join(root, 'dashboard');
const outAt = process.argv.indexOf('--out');
const output =
  outAt === -1 ? join(root, 'dist', 'dashboard') : resolve(process.argv[outAt + 1] ?? '');
const isOptional = process.argv.includes('--if-possible');

// Sources may be absent in a partial copy, the bundler in an install without development packages.
const isPossible =
  existsSync(join(sources, 'index.html')) &&
  existsSync(join(root, 'node_modules', 'vite', 'package.json'));

/** Pages by their folder: in the list of requests one sees which is which. */
function nameOfChunk({ facadeModuleId }) {
  const page = /\/pages\/([a-z]+)\/page\.tsx$/.exec(facadeModuleId ?? '')?.[1];
  return `assets/${page ?? '[name]'}-[hash].js`;
}

/** The day of the build, or that of the sources where packagers say it (reproducible-builds.org). */
function builtOn() {
  const seconds = Number(process.env.SOURCE_DATE_EPOCH ?? Date.now() / 1000);
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

async function buildPages(folder) {
  const { build } = await import('vite');
  await build({
    root: sources,
    configFile: false,
    envDir: false,
    logLevel: 'warn',
    // The page of diagnostics shows how old the program is; a day, so that builds of one day are equal.
    define: { __BUILT_ON__: JSON.stringify(builtOn()) },
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'baseline-widely-available',
      // Inlined files would be `data:` addresses, which the CSP has for images only.
      assetsInlineLimit: 0,
      // The one minifier that Vite 8 has for CSS is omitted (docs/maintainer/dependencies.md).
      cssMinify: false,
      // The polyfill examines every link of the page; browsers that run these pages have it built in.
      modulePreload: { polyfill: false },
      license: { fileName: 'licenses.md' },
      reportCompressedSize: false,
      rolldownOptions: {
        output: { chunkFileNames: nameOfChunk },
        // "use client" means nothing where there is no server that draws pages.
        onLog: (level, log, handle) =>
          log.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : handle(level, log),
      },
    },
  });
}

/** Compressed once, here, instead of for each browser. */
function compress(folder) {
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!/\.(html|js|css|svg)$/.test(name)) continue;
    const bytes = readFileSync(join(folder, name));
    writeFileSync(
      join(folder, `${name}.gz`),
      gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION }),
    );
  }
}

/**
 * Replaces the folder of an earlier build as a whole. Two builds may end at the same moment. Between the two renames the
 * folder is missing; a running gateway then serves the files that it has read (src/admin/dashboard.ts).
 */
function replace(folder) {
  const before = `${folder}-before`;
  for (let tries = 0; ; tries += 1) {
    try {
      if (existsSync(output)) renameSync(output, before);
      renameSync(folder, output);
      break;
    } catch (error) {
      // Another build was quicker between the two.
      if (tries === 10 || !['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
      rmSync(before, { recursive: true, force: true });
    }
  }
  rmSync(before, { recursive: true, force: true });
}

async function buildAll() {
  mkdirSync(dirname(output), { recursive: true });
  const folder = mkdtempSync(`${output}-`);
  try {
    // It is made for its owner alone.
    chmodSync(folder, 0o777 & ~process.umask());
    await buildPages(folder);
    compress(folder);
    replace(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main() {
  if (!isPossible) {
    // An installed package has it built already.
    if (isOptional) return 0;
    process.stderr.write(
      'dashboard: not built: vite is missing in node_modules. Run "npm ci" first.\n',
    );
    return 1;
  }
  const status = rerunWithOwnNode();
  if (status !== undefined) return isOptional ? 0 : status;
  try {
    await buildAll();
    return 0;
  } catch (error) {
    process.stderr.write(
      `dashboard: not built: ${error instanceof Error ? error.message : error}\n`,
    );
    if (!isOptional) return 1;
    process.stderr.write(
      'dashboard: the gateway runs without it; "npm run build:dashboard" tries again.\n',
    );
    return 0;
  }
}

/** The last line of `npm ci`: what was installed, and what is next. */
function tellInstalled() {
  const version = spawnSync(existsSync(ownNode) ? ownNode : process.execPath, ['--version']);
  const dashboard = existsSync(join(output, 'index.html')) ? '' : ', without its dashboard';
  process.stdout.write(
    `Model Gateway is installed with Node ${String(version.stdout).trim()}${dashboard}. Next: npm start\n`,
  );
}

const isPacking = ['pack', 'publish'].includes(process.env.npm_command);
process.exitCode = isOptional && isPacking ? 0 : await main();
if (
  isOptional &&
  !isPacking &&
  process.exitCode === 0 &&
  process.env.MODEL_GATEWAY_BUILD_NODE !== 'own'
) {
  tellInstalled();
}
