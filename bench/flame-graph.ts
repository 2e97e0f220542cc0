/**
 * A profile as a picture: time from left to right, who called whom from top to bottom. Plain SVG that any
 * browser opens; a pointer over a box shows its function, its share and its own time.
 */
import { fileOf, locationOf, type Branch, type Frame } from './cpu-profile.ts';

const width = 1400;
const rowHeight = 17;
const headHeight = 40;
/** Narrower boxes are omitted, since a pointer cannot reach them. */
const minWidth = 0.4;
/** What a letter takes. */
const letterWidth = 6.1;

interface Box {
  readonly x: number;
  readonly width: number;
  readonly depth: number;
  readonly branch: Branch;
}

/** @param title what was measured */
export function flameGraph(root: Branch, title: string): string {
  const boxes: Box[] = [];
  const scale = root.totalUs === 0 ? 0 : width / root.totalUs;
  const place = (branch: Branch, x: number, depth: number): void => {
    const boxWidth = branch.totalUs * scale;
    if (boxWidth < minWidth) return;
    boxes.push({ x, width: boxWidth, depth, branch });
    let at = x;
    for (const child of merged(branch.children)) {
      place(child, at, depth + 1);
      at += child.totalUs * scale;
    }
  };
  place(root, 0, 0);
  const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
  const height = headHeight + depth * rowHeight + 10;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="monospace" font-size="10">`,
    '<rect width="100%" height="100%" fill="#fff"/>',
    `<text x="8" y="20" font-size="14">${escaped(title)}</text>`,
    ...boxes.map((box) => drawn(box, root.totalUs)),
    '</svg>',
    '',
  ].join('\n');
}

/** Calls of one function from one place are beside each other as one box, the longest first. */
function merged(children: readonly Branch[]): readonly Branch[] {
  const byPlace = new Map<string, Branch[]>();
  for (const child of children) {
    const place = locationOf(child.frame);
    byPlace.set(place, [...(byPlace.get(place) ?? []), child]);
  }
  return [...byPlace.values()]
    .flatMap(([first, ...more]) => (first === undefined ? [] : [joined(first, more)]))
    .sort((a, b) => b.totalUs - a.totalUs);
}

function joined(first: Branch, more: readonly Branch[]): Branch {
  const all = [first, ...more];
  return {
    frame: first.frame,
    selfUs: all.reduce((sum, { selfUs }) => sum + selfUs, 0),
    totalUs: all.reduce((sum, { totalUs }) => sum + totalUs, 0),
    children: all.flatMap(({ children }) => children),
  };
}

function drawn({ x, width: boxWidth, depth, branch }: Box, totalUs: number): string {
  const y = headHeight + depth * rowHeight;
  const share = ((100 * branch.totalUs) / totalUs).toFixed(2);
  const own = ((100 * branch.selfUs) / totalUs).toFixed(2);
  const label = locationOf(branch.frame);
  const fits = Math.floor((boxWidth - 4) / letterWidth);
  const shown = fits < 3 ? '' : label.slice(0, fits);
  return (
    `<g><title>${escaped(`${label}: ${share} %, ${own} % in itself`)}</title>` +
    `<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.2, boxWidth - 0.4).toFixed(2)}" height="${rowHeight - 1}" rx="1" fill="${colourOf(branch.frame)}"/>` +
    (shown === '' ? '' : `<text x="${(x + 2).toFixed(2)}" y="${y + 12}">${escaped(shown)}</text>`) +
    '</g>'
  );
}

/** The gateway's own files stand out from packages, Node, and what has no file (collections, native code). */
function colourOf({ url }: Frame): string {
  const file = fileOf(url);
  if (file === '') return '#d9d9d9';
  if (file.startsWith('node:')) return '#b8d4ea';
  if (file.startsWith('node_modules/')) return '#d8c8ea';
  return '#f6b26b';
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
