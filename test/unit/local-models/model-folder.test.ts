import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { contextOf, nameOfFile } from '../../../src/local-models/model-file.ts';
import { readModelFolder, removeModel } from '../../../src/local-models/model-folder.ts';
import { PullError } from '../../../src/local-models/part-file.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { ggufBytes, ordinary } from './gguf-file.ts';

function folderOf(files: { readonly [name: string]: Buffer | string } = {}): string {
  const folder = temporaryFolder('model-folder');
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

test('§4 files become models by their names; the demonstration model comes first', async () => {
  const folder = folderOf({
    'b.gguf': ggufBytes(),
    'a.gguf': ggufBytes(),
    'a.json': JSON.stringify({ source: 'hf:x/y', sha256: 'c'.repeat(64), bytes: 1 }),
    'b.gguf.part': 'GGUF',
    'notes.txt': 'hello',
  });
  const { models, problems } = await readModelFolder(folder);
  assert.deepEqual(problems, []);
  assert.deepEqual(
    models.map(({ name, demo, sha256 }) => [name, demo === true, sha256?.slice(0, 4)]),
    [
      ['tiny', true, models[0]?.sha256?.slice(0, 4)],
      ['a', false, 'cccc'],
      ['b', false, undefined],
    ],
  );
  assert.deepEqual(models.map(contextOf), [2048, 8192, 8192]);
  assert.equal(models[1]?.path, join(folder, 'a.gguf'));
});

test('§4 what cannot be called is told and keeps nothing from the rest', async () => {
  const folder = folderOf({
    'good.gguf': ggufBytes(),
    'page.gguf': '<html>',
    'empty.gguf': '',
    'cut.gguf': ggufBytes().subarray(0, 200),
    'UPPER.GGUF': ggufBytes(),
    'has space.gguf': ggufBytes(),
    'big-00001-of-00002.gguf': ggufBytes(),
    'tiny.gguf': ggufBytes(),
    'clip.gguf': ggufBytes({ entries: { 'general.architecture': { type: 8, text: 'clip' } } }),
  });
  mkdirSync(join(folder, 'folder.gguf'));
  const { models, problems } = await readModelFolder(folder, [{ name: 'gone', context: 4096 }]);
  assert.deepEqual(
    models.map(({ name }) => name),
    ['tiny', 'good'],
  );
  assert.equal(models[0]?.demo, true);
  const why = new Map(problems.map((problem) => [problem.subject, problem.why]));
  const expected: readonly (readonly [string, RegExp])[] = [
    ['page.gguf', /not a GGUF file/],
    ['empty.gguf', /is empty/],
    ['cut.gguf', /cut off/],
    ['UPPER.GGUF', /small letters/],
    ['has space.gguf', /no usable name/],
    ['big-00001-of-00002.gguf', /split model/],
    ['tiny.gguf', /name of the demonstration model/],
    ['clip.gguf', /projector/],
    ['folder.gguf', /directory/],
    ['gone', /is in the config, but .* has no gone.gguf/],
  ];
  assert.equal(problems.length, expected.length);
  for (const [subject, text] of expected) assert.match(why.get(subject) ?? '', text, subject);
});

test(
  '§4 a pipe in the folder is reported, not waited for',
  { skip: process.platform === 'win32' },
  async () => {
    const folder = folderOf({ 'good.gguf': ggufBytes() });
    execFileSync('mkfifo', [join(folder, 'pipe.gguf')]);
    const { models, problems } = await readModelFolder(folder);
    assert.deepEqual(
      models.map(({ name }) => name),
      ['tiny', 'good'],
    );
    assert.match(problems[0]?.why ?? '', /not a regular file/);
  },
);

test('§4 the config adds files of other folders and says how models are run', async () => {
  const folder = folderOf({ 'a.gguf': ggufBytes() });
  const other = folderOf({ 'deep.gguf': ggufBytes() });
  const { models } = await readModelFolder(folder, [
    { name: 'a', context: 16_384, parallel: 2 },
    { name: 'far', path: join(other, 'deep.gguf'), sha256: 'd'.repeat(64), idleUnloadMs: 0 },
    { name: 'tiny', parallel: 8 },
  ]);
  assert.deepEqual(
    models.map(({ name, settings }) => [name, settings]),
    [
      ['tiny', { parallel: 8 }],
      ['a', { context: 16_384, parallel: 2 }],
      ['far', { idleUnloadMs: 0 }],
    ],
  );
  assert.equal(models[2]?.sha256, 'd'.repeat(64));
  assert.equal(models[1] === undefined ? 0 : contextOf(models[1]), 16_384);
});

test('§4 entries of the config without a file are reported by their names there', async () => {
  const folder = folderOf();
  const { models, problems } = await readModelFolder(folder, [
    { name: 'missing', context: 512 },
    { name: 'far', path: '/nowhere/deep.gguf' },
  ]);
  assert.equal(models.length, 1);
  assert.deepEqual(problems, [
    { subject: 'missing', why: `is in the config, but ${folder} has no missing.gguf` },
    { subject: 'far', why: 'has the path /nowhere/deep.gguf in the config, which is not there' },
  ]);
});

test('§4 a folder that is not there is empty', async () => {
  const { models, problems } = await readModelFolder('/nowhere/models');
  assert.deepEqual([models.length, problems], [1, []]);
});

test('§4 a file without a chat template is listed as such', async () => {
  const { 'tokenizer.chat_template': _, ...entries } = ordinary;
  const folder = folderOf({ 'base.gguf': ggufBytes({ entries }) });
  assert.equal((await readModelFolder(folder)).models[1]?.hasChatTemplate, false);
});

test('§4 remove deletes all that belongs to a model and nothing else', async () => {
  const folder = folderOf({
    'a.gguf': ggufBytes(),
    'a.json': '{}',
    'b.gguf.part': 'GGUF',
    'b.gguf.part.json': '{}',
    'ab.gguf': ggufBytes(),
  });
  assert.equal(await removeModel(folder, 'a'), ggufBytes().length);
  assert.equal(await removeModel(folder, 'b'), 6);
  assert.deepEqual(readdirSync(folder), ['ab.gguf']);
  for (const [name, text] of [
    ['a', /There is no model local\/a/],
    ['tiny', /ships with the gateway/],
    ['../ab', /a name is/],
  ] as const) {
    await assert.rejects(removeModel(folder, name), (error: unknown) => {
      assert.ok(error instanceof PullError);
      assert.match(error.message, text);
      return true;
    });
  }
  assert.deepEqual(readdirSync(folder), ['ab.gguf']);
});

test('§4 remove leaves a folder alone that has the name of a model, and says so', async () => {
  const folder = folderOf({ 'a.gguf.part': 'GGUF' });
  mkdirSync(join(folder, 'a.gguf'));
  writeFileSync(join(folder, 'a.gguf', 'mine.txt'), 'mine');
  await assert.rejects(removeModel(folder, 'a'), (error: unknown) => {
    assert.ok(error instanceof PullError);
    assert.match(error.message, /a\.gguf is a folder.*nothing was removed/);
    return true;
  });
  assert.deepEqual(readdirSync(folder).sort(), ['a.gguf', 'a.gguf.part']);
  assert.deepEqual(readdirSync(join(folder, 'a.gguf')), ['mine.txt']);
});

test('§4 remove takes a link to nowhere away', async () => {
  const folder = folderOf({});
  symlinkSync('/nowhere/at-all.gguf', join(folder, 'a.gguf'));
  await removeModel(folder, 'a');
  assert.deepEqual(readdirSync(folder), []);
});

test('names that files get', () => {
  const names: readonly (readonly [string, string | undefined])[] = [
    ['Qwen3-0.6B-Q8_0.gguf', 'qwen3-0.6b-q8_0'],
    ['My Model (v2).GGUF', 'my-model-v2'],
    ['..%2f..%2fx.gguf', '2f..-2fx'],
    ['日本語.gguf', undefined],
    ['.gguf', undefined],
    ['con.gguf', undefined],
  ];
  for (const [file, name] of names) assert.equal(nameOfFile(file), name, file);
});
