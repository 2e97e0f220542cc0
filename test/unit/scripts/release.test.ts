/** scripts/release.mjs in a throwaway repository. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tryParseObject } from '../../../src/json/parse.ts';
import { temporaryFolder } from '../../support/folders.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const chart = 'deploy/helm/model-gateway/Chart.yaml';
const image = 'deploy/container/Containerfile';
const changelog = `# Changelog

## Unreleased (0.1.0)

### What it does

- Everything.

## 0.0.9 (2026-01-01)

- Nothing.
`;

function repository() {
  const cwd = temporaryFolder('release');
  mkdirSync(join(cwd, 'scripts'));
  for (const name of ['release.mjs', 'write-sbom.mjs', 'lock-file.mjs']) {
    copyFileSync(join(root, 'scripts', name), join(cwd, 'scripts', name));
  }
  for (const name of ['package.json', 'package-lock.json', chart, image]) {
    mkdirSync(join(cwd, name, '..'), { recursive: true });
    copyFileSync(join(root, name), join(cwd, name));
  }
  writeFileSync(join(cwd, 'CHANGELOG.md'), changelog);
  // No hook, signature or name of this machine's user.
  const env = {
    ...process.env,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@example.org',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@example.org',
  };
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd, env, encoding: 'utf8' });
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '--message', 'first');
  const release = (...args: readonly string[]) =>
    spawnSync(process.execPath, ['scripts/release.mjs', ...args], { cwd, env, encoding: 'utf8' });
  const read = (name: string): string => readFileSync(join(cwd, name), 'utf8');
  return { cwd, git, release, read };
}

test('a release is dry by default, and with --write has section, versions, tag and bill of materials', () => {
  const { cwd, git, release, read } = repository();
  const dry = release('0.2.0');
  assert.equal(dry.status, 0, dry.stderr);
  assert.match(dry.stdout, /Nothing was changed\. Add --write/);
  assert.equal(git('status', '--porcelain') + git('tag'), '');

  const done = release('0.2.0', '--write');
  assert.equal(done.status, 0, done.stderr);
  assert.match(
    read('CHANGELOG.md'),
    /^## Unreleased\n\n## 0\.2\.0 \(\d{4}-\d\d-\d\d\)\n\n### What it does/m,
  );
  assert.equal(tryParseObject(read('package.json'))?.['version'], '0.2.0');
  assert.match(read(chart), /^version: 0\.2\.0\nappVersion: 0\.2\.0$/m);
  assert.match(read(image), /^ARG VERSION=0\.2\.0$/m);
  const lock = read('package-lock.json');
  assert.equal(tryParseObject(lock)?.['version'], '0.2.0');
  assert.doesNotMatch(lock, /"resolved": "https?:/);
  assert.match(git('cat-file', 'tag', 'v0.2.0'), /v0\.2\.0\n\n### What it does\n\n- Everything\./);
  assert.equal(git('log', '-1', '--format=%s').trim(), 'Release 0.2.0');
  const bill = tryParseObject(read('model-gateway-0.2.0.cdx.json'));
  assert.equal(bill?.['bomFormat'], 'CycloneDX');
  assert.equal(release('--notes').stdout, '### What it does\n\n- Everything.\n');
  assert.ok(existsSync(cwd));
});

test('a release refuses what cannot be one', () => {
  const { cwd, git, release } = repository();
  const refused = (...args: readonly string[]): string => {
    const { status, stderr } = release(...args);
    assert.equal(status, 1);
    return stderr;
  };
  assert.match(refused(), /give a version/);
  assert.match(refused('1.0'), /give a version/);
  git('tag', 'v0.3.0');
  assert.match(refused('0.3.0'), /the tag v0\.3\.0 is there already/);
  assert.match(refused('0.2.9'), /v0\.3\.0 was released already/);
  writeFileSync(join(cwd, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n\n## 0.0.9\n');
  assert.match(refused('0.4.0'), /the working tree has changes/);
  git('commit', '--quiet', '--all', '--message', 'emptied');
  assert.match(refused('0.4.0', '--write'), /no section "## Unreleased" with text/);
  assert.match(refused('--notes'), /has no section/);
});
