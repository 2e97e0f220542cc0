// Makes build/model-gateway: the gateway, its packages, the dashboard and Node in one file for this platform, without the
// embedded engine (decision 0066). Usage: npm run bundle [-- --out FILE] [--no-build]
// With --no-build it takes dist/ as it is.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { serialize } from 'node:v8';
import { constants, zstdCompressSync } from 'node:zlib';

const root = join(import.meta.dirname, '..', '..');
const outAt = process.argv.indexOf('--out');
const output = resolve(
  outAt === -1 ? join(root, 'build', 'model-gateway') : process.argv[outAt + 1],
);
// Node's own mark in its program, which says whether a script is inside.
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

/** Of the packages that a gateway without engine needs; what only compilers, editors and readers use is omitted. */
function packageFiles() {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const unused = /\.(map|[cm]?ts)$|(?<!licen[cs]e|notice)\.md$/i;
  return Object.entries(packages)
    .filter(([place]) => place.startsWith('node_modules/'))
    .filter(([, { dev, optional, devOptional }]) => !(dev || optional || devOptional))
    .flatMap(([place]) =>
      globSync(`${place}/**/*`, { cwd: root, exclude: [`${place}/node_modules`] }),
    )
    .filter((name) => !unused.test(name));
}

/** Files by their name in the program, in a fixed order. */
function readFiles() {
  const own = [
    'package.json',
    'LICENSE',
    'CHANGELOG.md',
    'dist/**/*',
    'docs/*',
    'docs/{user,operator}/*',
  ];
  const names = [
    ...globSync(own, { cwd: root, exclude: ['dist/program/**'] }),
    ...packageFiles(),
  ].sort();
  const files = names
    .filter((name) => statSync(join(root, name)).isFile())
    .map((name) => [name, readFileSync(join(root, name))]);
  const load = 'import(require("node:url").pathToFileURL(process.argv[1]));\n';
  return [...files, ['load.cjs', Buffer.from(load)]];
}

function run(...args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

/** The file that Node puts into a program. */
function preparation(folder) {
  const raw = serialize(readFiles());
  const id = createHash('sha256').update(raw).digest('hex').slice(0, 16);
  const files = zstdCompressSync(raw, { params: { [constants.ZSTD_c_compressionLevel]: 15 } });
  const assets = { id: join(folder, 'id'), files: join(folder, 'files') };
  writeFileSync(assets.id, id);
  writeFileSync(assets.files, files);
  const settings = {
    main: join(import.meta.dirname, 'start.cjs'),
    output: join(folder, 'prepared'),
    disableExperimentalSEAWarning: true,
    // As bin/model-gateway gives them.
    execArgv: [
      '--disable-warning=ExperimentalWarning',
      '--min-semi-space-size=4',
      '--max-semi-space-size=8',
      '--no-parallel-scavenge',
      '--no-memory-reducer',
      '--v8-pool-size=1',
    ],
    assets,
  };
  const file = join(folder, 'settings.json');
  writeFileSync(file, JSON.stringify(settings));
  run('--experimental-sea-config', file);
  return readFileSync(settings.output);
}

async function main() {
  if (process.platform !== 'linux') {
    process.stderr.write(
      'bundle: it is made on Linux only; elsewhere a program must be signed again.\n',
    );
    return 1;
  }
  if (!readFileSync(process.execPath).includes(`${fuse}:0`)) {
    process.stderr.write(`bundle: ${process.execPath} cannot carry a script inside.\n`);
    return 1;
  }
  if (!process.argv.includes('--no-build')) run(join(root, 'scripts', 'build-package.mjs'));
  const folder = mkdtempSync(join(tmpdir(), 'gw-bundle-'));
  try {
    const prepared = preparation(folder);
    const program = join(folder, basename(output));
    copyFileSync(process.execPath, program);
    const { inject } = await import('postject');
    await inject(program, 'NODE_SEA_BLOB', prepared, { sentinelFuse: fuse });
    chmodSync(program, 0o755);
    mkdirSync(dirname(output), { recursive: true });
    copyFileSync(program, output);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  process.stdout.write(`${output}: ${Math.round(statSync(output).size / 1e6)} MB\n`);
  return 0;
}

process.exitCode = await main();
