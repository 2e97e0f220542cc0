// Runs an entry of the joined program (scripts/build-program.mjs) with the code that V8 made of it right after the build
// (scripts/program/save-code.mjs). Node's compile cache has what V8 compiles while a module loads. The saved code also has
// each function that a start and a first call run: a start takes a sixth less of CPU, the very first one a third less.
'use strict';
const { closeSync, openSync, readFileSync, readSync } = require('node:fs');
const { join } = require('node:path');
const { Script, constants } = require('node:vm');
const { crc32 } = require('node:zlib');

const lengthBytes = 4;
const modules = new Map();

/** The file beside the entry. V8 checks its own version, and no processor. */
const codePath = (entry) => join(__dirname, `${entry}.${process.arch}.code`);

/** Length of the list, the list of modules (name, length of the code, checksum) as JSON, the code of each. */
function pack(code) {
  const list = Buffer.from(
    JSON.stringify([...code].map(([name, part]) => [name, part.length, crc32(part)])),
  );
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(list.length);
  return Buffer.concat([length, list, ...code.values()]);
}

/** The file stays open: most modules load later. @throws Error where there is no whole list */
function openCode(entry) {
  const file = openSync(codePath(entry), 'r');
  try {
    return { file, parts: listOf(file) };
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/** Where the code of each module lies. */
function listOf(file) {
  const listLength = read(file, 0, lengthBytes).readUInt32LE();
  const list = read(file, lengthBytes, listLength);
  const parts = new Map();
  let at = lengthBytes + listLength;
  for (const [name, length, sum] of JSON.parse(list)) {
    parts.set(name, { at, length, sum });
    at += length;
  }
  return parts;
}

function read(file, at, length) {
  const bytes = Buffer.allocUnsafeSlow(length);
  return bytes.subarray(0, readSync(file, bytes, 0, length, at));
}

/** Absent where there is none, or where it is damaged: V8 trusts what it reads. */
function codeOf(name, { file, parts }) {
  const part = parts.get(name);
  if (part === undefined) return undefined;
  const bytes = read(file, part.at, part.length);
  return crc32(bytes) === part.sum ? bytes : undefined;
}

function compile(name, cachedData) {
  const path = join(__dirname, name);
  // The build writes ASCII.
  const text = readFileSync(path, 'latin1');
  const whole = `(function (exports, require, module, __filename, __dirname) { 'use strict'; ${text}\n})`;
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  return new Script(whole, { filename: path, cachedData, importModuleDynamically });
}

/** @param compiled the script of a module by its name */
function load(name, compiled) {
  const loaded = modules.get(name);
  if (loaded !== undefined) return loaded.exports;
  const made = { exports: {} };
  modules.set(name, made);
  // The build makes no folders of modules.
  const requireFrom = (id) =>
    id.startsWith('./') ? load(id.slice('./'.length), compiled) : require(id);
  try {
    const run = compiled(name).runInThisContext();
    run(made.exports, requireFrom, made, join(__dirname, name), __dirname);
  } catch (error) {
    modules.delete(name);
    throw error;
  }
  return made.exports;
}

/** @param entry name of a module, which has a hash of all that it loads */
function run(entry) {
  const code = savedCode(entry);
  // Node's own way, with its compile cache.
  if (code === undefined) return require(`./${entry}`);
  return load(entry, (name) => compile(name, codeOf(name, code)));
}

/** Absent where none was saved, or where V8 refuses it: it is of another version, or V8 has other options. */
function savedCode(entry) {
  try {
    const code = openCode(entry);
    if (compile(entry, codeOf(entry, code)).cachedDataRejected === false) return code;
    closeSync(code.file);
  } catch {
    // There is none, or it is damaged.
  }
  return undefined;
}

module.exports = { codePath, compile, load, pack, run };
