// Makes a release of the repository in the working directory: the section of the changelog gets its version and date,
// package.json, the lock file, the Helm chart and the image the version, the bill of materials is written, and the commit gets an annotated tag with
// the section. Nothing is pushed or published: .github/workflows/release.yml does that with the tag.
// Usage: node scripts/release.mjs VERSION           says what it would do
//        node scripts/release.mjs VERSION --write   does it
//        node scripts/release.mjs --notes           prints the section of the version in package.json
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const args = process.argv.slice(2);
const version = args.find((each) => !each.startsWith('--'));
const doesWrite = args.includes('--write');

function fail(message) {
  process.stderr.write(`release: ${message}\n`);
  process.exit(1);
}

function git(...words) {
  return execFileSync('git', words, { encoding: 'utf8' }).trim();
}

/** The text below a heading of the second level, to the next one. */
function sectionOf(changelog, heading) {
  const lines = changelog.split('\n');
  const from = lines.findIndex((line) => heading.test(line));
  if (from === -1) return undefined;
  const length = lines.slice(from + 1).findIndex((line) => line.startsWith('## '));
  const to = length === -1 ? lines.length : from + 1 + length;
  return {
    heading: lines[from],
    text: lines
      .slice(from + 1, to)
      .join('\n')
      .trim(),
  };
}

/** Whether a is a later version than b; versions are MAJOR.MINOR.PATCH. */
function isLater(a, b) {
  const [first, second] = [a, b].map((each) => each.split('.').map(Number));
  const at = first.findIndex((part, i) => part !== second[i]);
  return at !== -1 && first[at] > second[at];
}

const changelog = readFileSync('CHANGELOG.md', 'utf8');
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));

if (args.includes('--notes')) {
  const { version: own } = manifest;
  const section = sectionOf(changelog, new RegExp(`^## ${own.replaceAll('.', '\\.')} `));
  if (section === undefined) fail(`CHANGELOG.md has no section ${own}.`);
  process.stdout.write(`${section.text}\n`);
  process.exit(0);
}

if (version === undefined || !/^\d{1,5}\.\d{1,5}\.\d{1,5}$/.test(version)) {
  fail('give a version, such as 0.2.0.');
}
const tag = `v${version}`;
const tags = git('tag', '--list', 'v*').split('\n').filter(Boolean);
if (tags.includes(tag)) fail(`the tag ${tag} is there already.`);
const newer = tags.find((each) => !isLater(version, each.slice(1)));
if (newer !== undefined) fail(`${newer} was released already; ${version} is not later.`);
const changed = git('status', '--porcelain');
if (changed !== '') fail(`the working tree has changes:\n${changed}`);
const unreleased = sectionOf(changelog, /^## Unreleased\b/);
if (unreleased === undefined || unreleased.text === '') {
  fail('CHANGELOG.md has no section "## Unreleased" with text.');
}

const date = new Date().toISOString().slice(0, 10);
const bill = `model-gateway-${version}.cdx.json`;
const chart = 'deploy/helm/model-gateway/Chart.yaml';
const image = 'deploy/container/Containerfile';
const steps = [
  `CHANGELOG.md: "${unreleased.heading}" becomes "## ${version} (${date})", with an empty section above it`,
  `package.json, package-lock.json, ${chart}, ${image}: version ${manifest.version} becomes ${version}`,
  `commit "Release ${version}", annotated tag ${tag} with the section (${unreleased.text.split('\n').length} lines)`,
  `${bill}: the bill of materials, beside the repository's files and not in the commit`,
];
process.stdout.write(`${steps.map((step) => `- ${step}`).join('\n')}\n`);
if (!doesWrite) {
  process.stdout.write('Nothing was changed. Add --write to do it.\n');
  process.exit(0);
}

const released = `## Unreleased\n\n## ${version} (${date})`;
writeFileSync(
  'CHANGELOG.md',
  changelog.replace(unreleased.heading, () => released),
);
writeFileSync('package.json', `${JSON.stringify({ ...manifest, version }, null, 2)}\n`);
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
lock.version = version;
lock.packages[''].version = version;
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`);
const edit = (path, form, text) =>
  writeFileSync(path, readFileSync(path, 'utf8').replace(form, text));
edit(chart, /^(version|appVersion): .*$/gm, `$1: ${version}`);
edit(image, /^ARG VERSION=.*$/m, `ARG VERSION=${version}`);
git('add', 'CHANGELOG.md', 'package.json', 'package-lock.json', chart, image);
git('commit', '--quiet', '--message', `Release ${version}`);
// Headings of the section begin with the sign of comments.
git('tag', '--annotate', tag, '--cleanup=verbatim', '--message', `${tag}\n\n${unreleased.text}\n`);
execFileSync(process.execPath, ['scripts/write-sbom.mjs', bill], { stdio: 'inherit' });
process.stdout.write(`Done. Push the commit and ${tag}; the release workflow publishes them.\n`);
