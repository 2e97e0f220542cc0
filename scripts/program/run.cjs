// Runs the joined program (scripts/build-program.mjs) with the code that V8 made of it in an earlier run. Node's compile
// cache has what V8 compiles while a module loads. This one has every function that the earlier run called: 1,200 of them
// are called until the first answer, and take a third of the CPU of a start where V8 has to compile them.
'use strict';
const {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} = require('node:fs');
const { tmpdir } = require('node:os');
const { basename, dirname, join, relative } = require('node:path');
const { Script, constants } = require('node:vm');
const { isMainThread } = require('node:worker_threads');
const { crc32 } = require('node:zlib');

const { env } = process;
/** A run whose code is larger than the saved one by this has called more. */
const growth = 1.1;
/** What is loaded later than this after the start is not waited for. */
const keptMs = 5_000;
/** Code that was written longer ago is removed; what is still in use is written again. */
const unusedMs = 30 * 24 * 60 * 60 * 1000;

/** Absent: nothing is saved. */
function folderOfCode() {
  if (env.NODE_DISABLE_COMPILE_CACHE) return undefined;
  const folder = env.NODE_COMPILE_CACHE || join(tmpdir(), 'node-compile-cache');
  return join(folder, `model-gateway-${process.getuid?.() ?? 0}`);
}

/** Code by module. It is run: a file that another user wrote, or may write, is none. */
function readCode(path) {
  try {
    const file = openSync(path, 'r');
    try {
      const { uid, mode } = fstatSync(file);
      const isOwn = process.getuid === undefined || (uid === process.getuid() && !(mode & 0o022));
      const bytes = isOwn ? readFileSync(file) : Buffer.alloc(4);
      // V8 trusts what it reads.
      const isWhole = isOwn && crc32(bytes.subarray(4)) === bytes.readUInt32LE(0);
      return isWhole ? unpack(bytes) : new Map();
    } finally {
      closeSync(file);
    }
  } catch {
    return new Map();
  }
}

/** Checksum of the rest, length of the list, the list of names and lengths as JSON, the code. */
function unpack(bytes) {
  const code = new Map();
  let at = 8 + bytes.readUInt32LE(4);
  for (const [name, length] of JSON.parse(bytes.latin1Slice(8, at))) {
    code.set(name, bytes.subarray(at, (at += length)));
  }
  return code;
}

function pack(code) {
  const list = Buffer.from(JSON.stringify([...code].map(([name, { length }]) => [name, length])));
  const head = Buffer.alloc(8);
  head.writeUInt32LE(list.length, 4);
  const bytes = Buffer.concat([head, list, ...code.values()]);
  bytes.writeUInt32LE(crc32(bytes.subarray(4)));
  return bytes;
}

function writeCode(path, code) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const making = `${path}.${process.pid}`;
  try {
    writeFileSync(making, pack(code), { mode: 0o600, flag: 'wx' });
    renameSync(making, path);
  } finally {
    rmSync(making, { force: true });
  }
  removeOld(dirname(path));
}

/** Each build of the program has files of its own. */
function removeOld(folder) {
  const before = Date.now() - unusedMs;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).mtimeMs < before) rmSync(path);
  }
}

function sizeOf(code) {
  return [...code.values()].reduce((sum, { length }) => sum + length, 0);
}

class Program {
  #entry;
  #folder = folderOfCode();
  #modules = new Map();
  #scripts = new Map();
  #saved;
  #savedSize;

  constructor(entry) {
    this.#entry = entry;
    this.#saved = this.#folder === undefined ? new Map() : readCode(this.#path);
    this.#savedSize = sizeOf(this.#saved);
    setTimeout(() => this.#saved.clear(), keptMs).unref();
    process.once('exit', () => this.#save());
  }

  /** Each command calls functions of its own. */
  get #path() {
    const command = /^[a-z]+$/.exec(process.argv[2] ?? '')?.[0] ?? 'none';
    return join(this.#folder, `${basename(this.#entry, '.cjs')}-${command}-${process.version}`);
  }

  load(path) {
    const loaded = this.#modules.get(path);
    if (loaded !== undefined) return loaded.exports;
    const made = { exports: {} };
    this.#modules.set(path, made);
    const requireFrom = (id) =>
      id.startsWith('.') ? this.load(join(dirname(path), id)) : require(id);
    const run = this.#compile(path).runInThisContext();
    run.call(made.exports, made.exports, requireFrom, made, path, dirname(path));
    return made.exports;
  }

  #compile(path) {
    const name = relative(__dirname, path);
    // The build writes ASCII.
    const text = readFileSync(path, 'latin1');
    const script = new Script(
      `(function (exports, require, module, __filename, __dirname) { 'use strict'; ${text}\n})`,
      {
        filename: path,
        cachedData: this.#saved.get(name),
        importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      },
    );
    this.#saved.delete(name);
    if (script.cachedDataRejected) this.#savedSize = 0;
    this.#scripts.set(name, script);
    return script;
  }

  #save() {
    if (this.#folder === undefined) return;
    try {
      const code = new Map();
      for (const [name, script] of this.#scripts) code.set(name, script.createCachedData());
      if (sizeOf(code) > growth * this.#savedSize) writeCode(this.#path, code);
    } catch {
      // A disk that is full or read-only: the next start compiles, as this one did.
    }
  }
}

/** @param entry name of a module, which has a hash of all that it loads */
module.exports = (entry) => {
  const path = join(__dirname, entry);
  // A thread calls little, and is ended without an event of its own.
  if (isMainThread) new Program(path).load(path);
  else require(path);
};
