/** How this program is called here, for lines that a person pastes. */
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { isSea } from 'node:sea';

/** The single-file program is its own launcher. */
const launcher = isSea() ? process.execPath : join(import.meta.dirname, '../../bin/model-gateway');
const isPackage = !isSea() && !existsSync(join(import.meta.dirname, '../main.ts'));
const name = 'model-gateway';

/** `model-gateway` where the PATH has this program, else a path to it, or npx where a project has installed it. */
export function programName(
  env: { readonly [name: string]: string | undefined },
  cwd: string,
): string {
  if (isOnPath(env['PATH'] ?? '')) return name;
  if (isPackage) return `npx ${name}`;
  const near = relative(cwd, launcher);
  return near.startsWith('..') ? launcher : `./${near}`;
}

/** npm and npx add a project's folder of programs to the PATH of what they start: the shell of the person lacks it. */
const addedByNpm = join('node_modules', '.bin');

function isOnPath(path: string): boolean {
  return path.split(delimiter).some((folder) => {
    if (folder.endsWith(addedByNpm)) return false;
    try {
      const file = join(folder, name);
      accessSync(file, constants.X_OK);
      return realpathSync(file) === realpathSync(launcher);
    } catch {
      return false;
    }
  });
}
