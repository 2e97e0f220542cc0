// Checks what the project takes from others (S26): the lock file, the versions, the licences,
// the install scripts. Reads files only; with --age it also asks the registry how old the direct packages are.
// Usage: node scripts/check-supply-chain.mjs [--age] [FOLDER]
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  dashboardPackages,
  dashboardPlaces,
  nameAt,
  installPath,
  ownPlaces,
  unnamedLicences,
} from './lock-file.mjs';

/** Direct ones, optional ones included: each is a way to break in. */
const maxRuntimePackages = 17;
const minAgeDays = 7;

/** Licences that require no more than to be named. */
const licences = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'Unlicense',
]);

/** Packages that may run something when they are installed, with the reason. */
const installScripts = new Map([
  ['node-llama-cpp', 'builds llama.cpp; switched off by config.nodeLlamaCppPostinstall'],
  ['@google/genai', 'prints a line, for development only; switched off by allowScripts'],
]);
const installHooks = ['preinstall', 'install', 'postinstall'];

const sections = ['dependencies', 'optionalDependencies', 'devDependencies'];
const exactVersion = /^(npm:(@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/;

const args = process.argv.slice(2);
const root = args.find((arg) => !arg.startsWith('-')) ?? join(import.meta.dirname, '..');
const problems = [];

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

function entriesOf(object) {
  return Object.entries(object ?? {});
}

/** The direct runtime packages of a manifest. */
function checkVersions(manifest) {
  for (const section of sections) {
    for (const [name, version] of entriesOf(manifest[section])) {
      if (exactVersion.test(version)) continue;
      problems.push(`package.json: ${section}.${name} is "${version}"; write an exact version`);
    }
  }
  const overridden = (where, value) => {
    if (typeof value !== 'string') {
      for (const [name, inner] of entriesOf(value)) overridden(`${where}.${name}`, inner);
    } else if (!value.startsWith('$') && !exactVersion.test(value)) {
      problems.push(`package.json: ${where} is "${value}"; write an exact version`);
    }
  };
  overridden('overrides', manifest.overrides);
  return ['dependencies', 'optionalDependencies'].flatMap((section) =>
    Object.entries(manifest[section] ?? {})
      // Aliases of a build for another processor keep packages out (decision 0052).
      .filter(([, version]) => !version.startsWith('npm:@node-llama-cpp/linux-riscv64@'))
      .map(([name]) => name),
  );
}

/** The lock file says the same as package.json, and pins every package by its content. */
function checkLock(manifests, { packages = {} }) {
  for (const [folder, manifest] of manifests) {
    for (const section of sections) {
      const [wanted, locked] = [manifest[section] ?? {}, packages[folder]?.[section] ?? {}];
      for (const name of new Set([...Object.keys(wanted), ...Object.keys(locked)])) {
        const pinned = packages[`node_modules/${name}`]?.version;
        checkDirect(`${section}.${name}`, { wanted: wanted[name], locked: locked[name], pinned });
      }
    }
  }
  const { folders, links } = ownPlaces(packages);
  for (const [place, entry] of entriesOf(packages)) {
    if (links.includes(place)) continue;
    if (place !== '' && !folders.includes(place)) checkEntry(place, entry);
    checkPresent(packages, place, entry);
  }
}

function checkDirect(where, { wanted = 'missing', locked, pinned = 'missing' }) {
  if (wanted === locked && versionOf(wanted) === pinned) return;
  problems.push(
    `package-lock.json: ${where} is ${pinned}, in package.json ${wanted}; run npm install`,
  );
}

/** Of `1.2.3` and `npm:name@1.2.3`. */
function versionOf(wanted) {
  return wanted.slice(wanted.lastIndexOf('@') + 1);
}

function checkEntry(place, entry) {
  if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(entry.integrity ?? '')) {
    problems.push(`package-lock.json: ${place} has no sha512 integrity`);
  }
  if (entry.resolved !== undefined || entry.link !== undefined) {
    problems.push(
      `package-lock.json: ${place} names an address; install with omit-lockfile-registry-resolved`,
    );
  }
  if (entry.hasInstallScript === true && !installScripts.has(nameAt(place))) {
    problems.push(`package-lock.json: ${place} runs a script when it is installed`);
  }
}

function checkPresent(packages, place, entry) {
  const needed = { ...entry.dependencies, ...(place === '' ? entry.devDependencies : {}) };
  for (const name of Object.keys({ ...needed, ...entry.optionalDependencies })) {
    if (installPath(packages, place, name) !== undefined) continue;
    problems.push(`package-lock.json: ${name}, which ${place || 'the project'} needs, is missing`);
  }
}

/** `MIT`, `(A OR B)`: one of the choices must be allowed; of `A AND B` all. */
function isAllowed(licence) {
  return licence
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((each) => licences.has(each.trim())));
}

function checkInstalled(lock) {
  const built = dashboardPlaces(lock.packages, root);
  let looked = 0;
  const { folders, links } = ownPlaces(lock.packages);
  for (const [place, entry] of entriesOf(lock.packages)) {
    if (place === '' || folders.includes(place) || links.includes(place)) continue;
    const name = nameAt(place);
    // Packages of other platforms are not here: what the lock file says of them must do.
    const isHere = existsSync(join(root, place, 'package.json'));
    const found = isHere ? readJson(join(place, 'package.json')) : entry;
    if (isHere) looked += 1;
    if (found.version !== entry.version) {
      problems.push(`${place}: ${found.version} is installed, ${entry.version} locked; run npm ci`);
    }
    if (isHere && !installScripts.has(name)) checkScripts(place, found);
    // Only what is delivered: licences of tools that stay here may require more.
    const isDelivered = entry.dev !== true || built.has(place);
    if (isDelivered) checkLicence(place, found.license ?? unnamedLicences.get(name));
  }
  return looked;
}

function checkLicence(place, said = 'none') {
  const licence = typeof said === 'string' ? said : String(said.type);
  if (!isAllowed(licence)) problems.push(`${place}: its licence ${licence} is not allowed`);
}

function checkScripts(place, { scripts, gypfile }) {
  const hook = installHooks.find((each) => scripts?.[each] !== undefined);
  const compiles = gypfile !== false && existsSync(join(root, place, 'binding.gyp'));
  if (hook === undefined && !compiles) return;
  problems.push(`${place}: runs ${hook ?? 'a compiler'} when it is installed`);
}

/** What the registry says of the direct packages that are delivered; one line, and no failure without an answer. */
async function checkAge(names, lock) {
  const youngest = Date.now() - minAgeDays * 86_400_000;
  try {
    for (const name of names) {
      const { stdout } = await promisify(execFile)('npm', ['view', name, 'time', '--json'], {
        timeout: 15_000,
        maxBuffer: 64 * 1024 * 1024,
      });
      const version = lock.packages[`node_modules/${name}`]?.version;
      const published = Date.parse(JSON.parse(stdout)[version]);
      if (Number.isNaN(published)) throw new Error(`no date of ${name}`);
      if (published <= youngest) continue;
      problems.push(`${name} ${version} is younger than ${minAgeDays} days; take an older one`);
    }
    return `the direct ones are older than ${minAgeDays} days`;
  } catch {
    return 'their age left out, the registry does not say';
  }
}

const manifest = readJson('package.json');
const lock = readJson('package-lock.json');
const manifests = ['', ...(manifest.workspaces ?? [])].map((folder) => [
  folder,
  readJson(join(folder, 'package.json')),
]);
const runtime = manifests.flatMap(([, each]) => checkVersions(each));
if (runtime.length > maxRuntimePackages) {
  problems.push(
    `package.json: ${runtime.length} runtime packages, at most ${maxRuntimePackages}; do without one`,
  );
}
checkLock(manifests, lock);
const looked = checkInstalled(lock);
const age = args.includes('--age')
  ? `, ${await checkAge([...runtime, ...dashboardPackages(root)], lock)}`
  : '';
for (const problem of problems) process.stdout.write(`${problem}\n`);
const delivered = entriesOf(lock.packages).filter(
  ([, { dev, integrity }]) => integrity !== undefined && !dev,
);
process.stdout.write(
  `supply chain: ${runtime.length} direct runtime packages of at most ${maxRuntimePackages}, ${delivered.length} with theirs on all platforms, ${looked} packages installed here${age}; ${problems.length} problems\n`,
);
process.exitCode = problems.length === 0 ? 0 : 1;
