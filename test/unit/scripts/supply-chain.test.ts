/** scripts/check-supply-chain.mjs on small projects, each with one thing wrong; and the bill of materials. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { listAt, objectAt, textAt } from '../../support/reading.ts';

const scripts = join(import.meta.dirname, '..', '..', '..', 'scripts');
const integrity = `sha512-${'A'.repeat(86)}==`;

interface Project {
  readonly manifest?: JsonObject;
  /** Of the lock file's entry for the package `one`; undefined takes a member out. */
  readonly entry?: { readonly [name: string]: JsonObject[string] | undefined };
  /** Further entries of the lock file. */
  readonly packages?: JsonObject;
  /** The package.json of `one` as it is installed. */
  readonly installed?: JsonObject;
  /** Further files in the installed folder of `one`. */
  readonly files?: readonly string[];
}

/** A project with one package, all in order but for what is said. */
function check(project: Project = {}): { status: number | null; text: string } {
  const root = temporaryFolder('supply-chain');
  const sections = { dependencies: { one: '1.2.3' } };
  const entry = { version: '1.2.3', integrity, license: 'MIT', ...project.entry };
  const packages = { '': sections, 'node_modules/one': entry, ...project.packages };
  const installed = { name: 'one', version: '1.2.3', license: 'MIT', ...project.installed };
  const folder = join(root, 'node_modules', 'one');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(root, 'package.json'), JSON.stringify({ ...sections, ...project.manifest }));
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages }));
  writeFileSync(join(folder, 'package.json'), JSON.stringify(installed));
  for (const name of project.files ?? []) writeFileSync(join(folder, name), '');
  const script = join(scripts, 'check-supply-chain.mjs');
  const { status, stdout } = spawnSync(process.execPath, [script, root], { encoding: 'utf8' });
  return { status, text: stdout };
}

test('S26: a project in order passes, and its packages are counted', () => {
  const { status, text } = check();
  assert.equal(status, 0, text);
  assert.match(text, /1 direct runtime packages of at most 17, 1 with theirs.*; 0 problems/);
});

test('S26: the project itself passes', () => {
  const script = join(scripts, 'check-supply-chain.mjs');
  const { status, stdout } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});

const eighteen = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`p${at}`, '1.0.0']));

const wrong: readonly (readonly [string, Project, RegExp])[] = [
  [
    'no integrity',
    { entry: { integrity: undefined } },
    /node_modules\/one has no sha512 integrity/,
  ],
  ['a weak hash', { entry: { integrity: 'sha1-abc=' } }, /one has no sha512 integrity/],
  ['an address', { entry: { resolved: 'https://example.com/one.tgz' } }, /one names an address/],
  ['a link', { entry: { link: true } }, /one names an address/],
  [
    'a version in the lock file that nobody asked for',
    { entry: { version: '1.2.4' }, installed: { version: '1.2.4' } },
    /dependencies\.one is 1\.2\.4, in package\.json 1\.2\.3/,
  ],
  [
    'a package that the lock file has not',
    { manifest: { optionalDependencies: { two: '1.0.0' } } },
    /optionalDependencies\.two is missing, in package\.json 1\.0\.0/,
  ],
  [
    'a lock file that lacks what a package needs',
    { entry: { dependencies: { deep: '^1.0.0' } } },
    /deep, which node_modules\/one needs, is missing/,
  ],
  [
    'another version installed',
    { installed: { version: '9.9.9' } },
    /9\.9\.9 is installed, 1\.2\.3/,
  ],
  [
    'a range',
    { manifest: { dependencies: { one: '^1.2.3' } } },
    /one is "\^1\.2\.3"; write an exact/,
  ],
  [
    'an address as version',
    { manifest: { devDependencies: { x: 'github:a/b' } } },
    /x is "github:a/,
  ],
  [
    'a range among the overrides',
    { manifest: { overrides: { one: { two: 'npm:other@^1.0.0' } } } },
    /overrides\.one\.two is "npm:other@\^1/,
  ],
  ['too many', { manifest: { optionalDependencies: eighteen } }, /18 runtime packages, at most 17/],
  ['a licence with duties', { installed: { license: 'AGPL-3.0' } }, /licence AGPL-3\.0 is not/],
  ['no licence', { installed: { license: null } }, /its licence none is not allowed/],
  [
    'one of two licences at once',
    { installed: { license: '(MIT AND GPL-2.0)' } },
    /licence \(MIT AND GPL-2\.0\) is not/,
  ],
  [
    'a licence of a package of another platform',
    {
      packages: { 'node_modules/far': { version: '1.0.0', integrity, license: 'GPL-3.0' } },
    },
    /node_modules\/far: its licence GPL-3\.0/,
  ],
  [
    'an install script that the lock file tells of',
    { entry: { hasInstallScript: true } },
    /one runs a script when it is installed/,
  ],
  [
    'an install script that it does not tell of',
    { installed: { scripts: { postinstall: 'curl' } } },
    /node_modules\/one: runs postinstall when/,
  ],
  ['something to compile', { files: ['binding.gyp'] }, /one: runs a compiler when/],
];

for (const [name, project, problem] of wrong) {
  test(`S26: ${name} is a problem`, () => {
    const { status, text } = check(project);
    assert.match(text, problem);
    assert.equal(status, 1);
  });
}

test('S26: a choice of licences is enough, and tools of the developers may have any', () => {
  const choice = check({ installed: { license: '(GPL-2.0 OR MIT)' } });
  assert.equal(choice.status, 0, choice.text);
  const tool = check({ entry: { dev: true }, installed: { license: 'MPL-2.0' } });
  assert.equal(tool.status, 0, tool.text);
});

test('S26: the bill of materials has every runtime package with hash and licence, and is the same twice', () => {
  const write = (): string =>
    spawnSync(process.execPath, [join(scripts, 'write-sbom.mjs')], { encoding: 'utf8' }).stdout;
  const text = write();
  assert.equal(write(), text);
  const bill = tryParseObject(text) ?? {};
  assert.equal(bill['bomFormat'], 'CycloneDX');
  assert.equal(textAt(objectAt(objectAt(bill, 'metadata'), 'component'), 'name'), 'model-gateway');
  const components = listAt(bill, 'components');
  const names = new Set(components.map((each) => textAt(each, 'name')));
  for (const name of ['undici', 'zod', 'yaml', 'pg', 'ioredis', 'node-llama-cpp']) {
    assert.ok(names.has(name), name);
  }
  // Built into the dashboard, with what they need.
  for (const name of ['react', 'react-dom', 'scheduler', 'uplot', 'wouter', '@floating-ui/core']) {
    assert.ok(names.has(name), name);
  }
  assert.ok(!names.has('prettier') && !names.has('openai') && !names.has('vite'));
  for (const component of components) {
    assert.equal(listAt(component, 'licenses').length, 1, textAt(component, 'name'));
    const [hash] = listAt(component, 'hashes');
    assert.match(textAt(hash ?? {}, 'content'), /^[0-9a-f]{128}$/);
  }
});
