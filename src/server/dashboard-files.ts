/** The built dashboard in memory: its files by address, compressed where the build did so. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';

export interface DashboardFile {
  readonly type: string;
  readonly bytes: Buffer;
  /** The same, compressed; undefined where that would not pay. */
  readonly gzip: Buffer | undefined;
  /** Of `bytes`, for an ETag. */
  readonly hash: string;
}

export interface DashboardFiles {
  /** The file of an address such as `/assets/index-3fa9.js`; undefined when there is none. */
  file(path: string): DashboardFile | undefined;
  /** The page that all pages begin with; undefined: it is not built. */
  index(): DashboardFile | undefined;
}

const types: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.md', 'text/plain; charset=utf-8'],
]);

const indexPath = '/index.html';

/**
 * Files of a folder, read when the first is asked for, and again when the folder was built anew.
 * @param folder `dist/dashboard`; it need not be there.
 */
export function dashboardFiles(folder: string): DashboardFiles {
  let files: ReadonlyMap<string, DashboardFile> = new Map();
  let builtAt: number | undefined;
  const current = (): ReadonlyMap<string, DashboardFile> => {
    const found = statSync(join(folder, indexPath), { throwIfNoEntry: false })?.mtimeMs;
    if (found === undefined) return new Map();
    if (found !== builtAt) {
      files = readFiles(folder);
      builtAt = found;
    }
    return files;
  };
  return {
    file: (path) => current().get(path),
    index: () => current().get(indexPath),
  };
}

function readFiles(folder: string): ReadonlyMap<string, DashboardFile> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const known = new Set(names);
  const files = new Map<string, DashboardFile>();
  for (const name of names) {
    const type = types.get(extname(name));
    if (type === undefined) continue;
    const bytes = readFileSync(join(folder, name));
    const gzip = known.has(`${name}.gz`) ? readFileSync(join(folder, `${name}.gz`)) : undefined;
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    files.set(`/${name.replaceAll('\\', '/')}`, { type, bytes, gzip, hash });
  }
  return files;
}
