// Runs after `npm ci` and removes what the install brings but nothing here ever reads (about 150 MB):
// the C headers of the Node package, the llama.cpp source that is only there to be compiled (we never
// compile: docs/decisions/0002-install.md), engine binaries of another processor, and what the tokenizer
// package holds besides the two vocabularies in use.
// Safe to skip: without it everything works and takes more room.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const modules = join(import.meta.dirname, '..', 'node_modules');

function list(folder) {
  try {
    return readdirSync(join(modules, folder));
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
const unused = [
  ...tokenizer.map((name) => join('gpt-tokenizer', name)),
  ...nodePackages.map((name) => join(name, 'include')),
  join('node-llama-cpp', 'llama', 'gitRelease.bundle'),
  ...foreignEngines.map((name) => join('@node-llama-cpp', name)),
];
for (const path of unused) rmSync(join(modules, path), { recursive: true, force: true });
