// The script of the single-file program that `npm run bundle` makes. Node's single executables run one script, and the
// gateway loads worker threads and packages as files: so this one unpacks the files that the program carries, once for
// each build, into the cache folder of the user, and goes on with them.
const {
  mkdirSync,
  mkdtempSync,
  existsSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} = require('node:fs');
const { createRequire } = require('node:module');
const { homedir, tmpdir } = require('node:os');
const { dirname, join } = require('node:path');
const { getAsset } = require('node:sea');
const { deserialize } = require('node:v8');
const { zstdDecompressSync } = require('node:zlib');

const { env } = process;

/** The folder of the files; it is whole or not there, since it gets its name by a rename. */
function unpacked() {
  const caches = env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(caches, 'model-gateway');
  const home = join(folder, getAsset('id', 'utf8'));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  requireOwn(folder);
  if (existsSync(home)) return home;
  const making = mkdtempSync(join(folder, '.unpacking-'));
  try {
    const files = deserialize(zstdDecompressSync(new Uint8Array(getAsset('files'))));
    for (const [name, bytes] of files) {
      const path = join(making, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, bytes);
    }
    renameSync(making, home);
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    // Another start was faster.
    if (!existsSync(home)) throw error;
  }
  return home;
}

/** What lies there is run: a folder that others can write is refused. */
function requireOwn(folder) {
  const { uid, mode } = statSync(folder);
  if (uid !== process.getuid() || (mode & 0o022) !== 0) {
    throw new Error(`${folder} belongs to another user, or others may write it.`);
  }
}

/** As bin/model-gateway sets them; the C library reads the first one when the process begins. */
function startAgain() {
  if (env.MALLOC_MMAP_THRESHOLD_ !== undefined) return;
  process.execve(process.execPath, [process.execPath, ...process.argv.slice(2)], {
    ...env,
    MALLOC_MMAP_THRESHOLD_: '1048576',
    NODE_COMPILE_CACHE: env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'node-compile-cache'),
  });
}

/** The program starts itself with Node's options and a file of its own, for another process of the gateway. */
function ownFile(home, args) {
  const rest = args.slice(args.findIndex((arg) => !process.execArgv.includes(arg)));
  return rest[0]?.startsWith(home) ? rest : undefined;
}

startAgain();
try {
  const home = unpacked();
  const args = process.argv.slice(2);
  const [entry, ...rest] = ownFile(home, args) ?? [join(home, 'dist', 'main.js'), ...args];
  process.argv = [process.execPath, entry, ...rest];
  // From a file: a script inside of the program can import Node's own modules only.
  createRequire(join(home, 'load.cjs'))('./load.cjs');
} catch (error) {
  process.stderr.write(
    `model-gateway: could not unpack its files: ${error.message}\nSet XDG_CACHE_HOME to a folder that can be written.\n`,
  );
  process.exitCode = 1;
}
