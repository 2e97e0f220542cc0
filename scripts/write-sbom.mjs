// Writes the bill of materials (CycloneDX 1.5, JSON): every package of the lock file that is not for development
// alone, on all platforms, and those that are built into the dashboard, with hash, licence and what it needs. Equal lock files give equal bills. Not by
// `npm sbom`: with development packages omitted, npm 11.19 omits undici, zod and others that both need.
// Usage: npm run --silent sbom [-- FILE]   (default: standard output)
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  dashboardPackages,
  dashboardPlaces,
  nameAt,
  installPath,
  ownPlaces,
  unnamedLicences,
} from './lock-file.mjs';

const root = join(import.meta.dirname, '..');
const lockText = readFileSync(join(root, 'package-lock.json'), 'utf8');
const { packages } = JSON.parse(lockText);
const built = dashboardPlaces(packages, root);
const { folders, links } = ownPlaces(packages);
const places = Object.keys(packages)
  .filter((place) => packages[place].dev !== true || built.has(place))
  // What they need, the project needs.
  .filter((place) => !folders.includes(place) && !links.includes(place));

/** An alias is known by the name of what it really is. */
function purlOf(place) {
  const { name = nameAt(place), version } = packages[place];
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function licenceOf(place) {
  const licence = packages[place].license ?? unnamedLicences.get(nameAt(place));
  if (licence === undefined) return {};
  const isExpression = licence.includes(' ');
  return { licenses: [isExpression ? { expression: licence } : { license: { id: licence } }] };
}

function component(place) {
  const { name = nameAt(place), version, optional, integrity } = packages[place];
  const hash = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
  return {
    type: 'library',
    'bom-ref': purlOf(place),
    name,
    version,
    scope: optional === true ? 'optional' : 'required',
    hashes: [{ alg: 'SHA-512', content: hash }],
    ...licenceOf(place),
    purl: purlOf(place),
    ...(built.has(place)
      ? { properties: [{ name: 'model-gateway:part', value: 'dashboard' }] }
      : {}),
  };
}

function needs(place) {
  const { dependencies, optionalDependencies } = packages[place];
  const pages = place === '' ? dashboardPackages(root) : [];
  const own = place === '' ? folders.map((folder) => packages[folder].optionalDependencies) : [];
  const all = Object.assign({}, dependencies, optionalDependencies, ...own);
  const names = [...Object.keys(all), ...pages];
  const found = names.flatMap((name) => installPath(packages, place, name) ?? []);
  return { ref: purlOf(place), dependsOn: [...new Set(found.map(purlOf))].sort() };
}

/** Aliases and copies of the same version are one component. */
function unique(items, keyOf) {
  return [...new Map(items.map((item) => [keyOf(item), item])).values()];
}

const digest = createHash('sha256').update(lockText).digest('hex');
const uuid = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
const { name, version } = packages[''];
const bill = {
  $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  serialNumber: `urn:uuid:${uuid}`,
  version: 1,
  metadata: {
    component: {
      type: 'application',
      'bom-ref': `pkg:npm/${name}@${version}`,
      name,
      version,
      purl: `pkg:npm/${name}@${version}`,
      licenses: [{ license: { id: packages[''].license } }],
    },
  },
  components: unique(
    places.filter((place) => place !== '').map((place) => component(place)),
    ({ purl }) => purl,
  ),
  dependencies: unique(
    places.map((place) => needs(place)),
    ({ ref }) => ref,
  ),
};
const text = `${JSON.stringify(bill, null, 2)}\n`;
const file = process.argv[2];
if (file === undefined) process.stdout.write(text);
else writeFileSync(file, text);
