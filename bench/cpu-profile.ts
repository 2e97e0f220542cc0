/** Reads the files of `node --cpu-prof`, and sums the time by function. */

export interface Frame {
  readonly functionName: string;
  readonly url: string;
  /** From 0; -1 where there is none. */
  readonly lineNumber: number;
}

/** A function as it was called from one place, with all that it called. */
export interface Branch {
  readonly frame: Frame;
  /** µs in itself. */
  readonly selfUs: number;
  /** µs with all that it called. */
  readonly totalUs: number;
  readonly children: readonly Branch[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: Frame;
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const idle = '(idle)';

/** The tree of a profile without the time in which nothing ran. @throws Error for what is none */
export function readProfile(text: string): Branch {
  const profile: unknown = JSON.parse(text);
  if (!isProfile(profile)) throw new Error('This is no CPU profile of Node.');
  const own = new Map<number, number>();
  profile.samples.forEach((id, index) => {
    own.set(id, (own.get(id) ?? 0) + Math.max(0, profile.timeDeltas[index] ?? 0));
  });
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const branchOf = (node: ProfileNode): Branch => {
    const children = (node.children ?? [])
      .flatMap((id) => nodes.get(id) ?? [])
      .filter(({ callFrame }) => callFrame.functionName !== idle)
      .map(branchOf);
    const selfUs = own.get(node.id) ?? 0;
    const totalUs = children.reduce((sum, child) => sum + child.totalUs, selfUs);
    return { frame: node.callFrame, selfUs, totalUs, children };
  };
  const [root] = profile.nodes;
  if (root === undefined) throw new Error('The CPU profile is empty.');
  return branchOf(root);
}

/** Where a function is, as a reader of the sources would say it. */
export function locationOf({ functionName, url, lineNumber }: Frame): string {
  const name = functionName === '' ? '(anonymous)' : functionName;
  const file = fileOf(url);
  return file === '' ? name : `${name} ${file}:${lineNumber + 1}`;
}

/** The file of a URL within this project, within a package, or within Node. */
export function fileOf(url: string): string {
  return url.replace(/^.*\/(src|node_modules)\//, '$1/').replace(/^src\//, '');
}

/** µs by what `nameOf` says, in itself, the most first. */
export function selfTimes(
  root: Branch,
  nameOf: (frame: Frame) => string,
): readonly (readonly [name: string, us: number])[] {
  const times = new Map<string, number>();
  const visit = ({ frame, selfUs, children }: Branch): void => {
    const name = nameOf(frame);
    times.set(name, (times.get(name) ?? 0) + selfUs);
    children.forEach(visit);
  };
  visit(root);
  return [...times].sort(([, a], [, b]) => b - a);
}

/**
 * µs by folder of this project, the most first: what a folder's functions take in themselves and with what
 * they call of Node and of packages. Functions that no code of this project called are under their own names.
 */
export function folderTimes(root: Branch): readonly (readonly [name: string, us: number])[] {
  const times = new Map<string, number>();
  const visit = ({ frame, selfUs, children }: Branch, caller: string | undefined): void => {
    const owner = folderOf(frame.url) ?? caller;
    const name = owner ?? frame.functionName;
    times.set(name, (times.get(name) ?? 0) + selfUs);
    for (const child of children) visit(child, owner);
  };
  visit(root, undefined);
  return [...times].sort(([, a], [, b]) => b - a);
}

function folderOf(url: string): string | undefined {
  return /^.*\/src\/(.*)\/[^/]*$/.exec(/\/node_modules\//.test(url) ? '' : url)?.[1];
}

function isProfile(value: unknown): value is Profile {
  return typeof value === 'object' && value !== null && 'nodes' in value && 'samples' in value;
}
