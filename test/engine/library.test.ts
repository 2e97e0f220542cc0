/** How the engine starts its library. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isObject, tryParse } from '../../src/engine/engine-error.ts';
import { binaryOf, loadLibrary } from '../../src/engine/library.ts';
import { temporaryFolder } from '../support/folders.ts';
import { reasonToSkip } from './engine-client.ts';

const skip = await reasonToSkip();

test('llama.cpp starts without a trial run in a second process', { skip }, async () => {
  const started: unknown[] = [];
  const note = (process: unknown): void => void started.push(process);
  subscribe('child_process', note);
  try {
    const { llama } = await loadLibrary(1);
    assert.equal(llama.gpu, false);
    assert.equal(llama.maxThreads, 1);
  } finally {
    unsubscribe('child_process', note);
  }
  assert.equal(started.length, 0);
});

/** A folder with the engine's modules and a library of version 9.9.9. */
function engineWith(library: string): string {
  const folder = temporaryFolder('library');
  cpSync(join(import.meta.dirname, '..', '..', 'src', 'engine'), join(folder, 'engine'), {
    recursive: true,
  });
  const place = join(folder, 'node_modules', 'node-llama-cpp');
  mkdirSync(join(place, 'dist'), { recursive: true });
  const manifest = { version: '9.9.9', type: 'module', exports: './dist/index.js' };
  writeFileSync(join(place, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(place, 'dist', 'index.js'), library);
  return pathToFileURL(join(folder, 'engine', 'library.ts')).href;
}

async function refusalOf(module: string): Promise<string> {
  const loaded: { readonly loadLibrary: typeof loadLibrary } = await import(module);
  const refused = loaded.loadLibrary(1);
  const error = await refused.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Error);
  return error.message;
}

test('A15 without a binary of its version the library is refused, and the binary is named', async () => {
  const module = engineWith('export class Llama { static _create() {} }');
  assert.match(
    await refusalOf(module),
    /no binary for this machine\. Install it with: npm install @node-llama-cpp\/[\w-]+@9\.9\.9/,
  );
});

test('A15 a binary that is there and does not load says why, and not that it is to be installed', async () => {
  const module = engineWith(
    'export class Llama { static _create() {} static defaultConsoleLogger() {} }',
  );
  const { name, folder } = binaryOf(process.platform, process.arch);
  const root = join(fileURLToPath(module), '..', '..', 'node_modules', name);
  mkdirSync(join(root, 'bins', folder), { recursive: true });
  mkdirSync(join(root, 'dist'));
  writeFileSync(join(root, 'package.json'), '{"version":"9.9.9","main":"dist/index.js"}');
  writeFileSync(join(root, 'dist', 'index.js'), '');
  writeFileSync(join(root, 'bins', folder, '_nlcBuildMetadata.json'), '{}');
  writeFileSync(join(root, 'bins', folder, 'llama-addon.node'), 'half a file');
  const message = await refusalOf(module);
  assert.match(message, /^The binary of the local engine could not be loaded: .*llama-addon\.node/);
  assert.ok(!message.includes(root) && !message.includes('npm install'), message);
});

test('the binary of each machine is the package that node-llama-cpp publishes for it', () => {
  const published = tryParse(
    readFileSync(
      join(import.meta.dirname, '../../node_modules/node-llama-cpp/package.json'),
      'utf8',
    ),
  );
  const names = isObject(published) ? published['optionalDependencies'] : undefined;
  assert.ok(isObject(names));
  const machines = ['linux x64', 'linux arm64', 'linux arm', 'linux riscv64'];
  for (const machine of [...machines, 'darwin x64', 'darwin arm64', 'win32 x64', 'win32 arm64']) {
    const [platform = '', arch = ''] = machine.split(' ');
    assert.ok(binaryOf(platform, arch).name in names, machine);
  }
  assert.equal(binaryOf('darwin', 'arm64').folder, 'mac-arm64-metal');
  assert.equal(binaryOf('linux', 'arm').folder, 'linux-arm');
});

test('a library with other internals is refused', async () => {
  const module = engineWith('export class Llama {}');
  assert.match(await refusalOf(module), /another version than this gateway needs/);
});
