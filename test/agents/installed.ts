/** The agents that `npm run agents:install` put into `.agents/`. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';

const folder = join(import.meta.dirname, '..', '..', '.agents');

/** The command of an agent; undefined where it is not installed. */
function commandOf(name: string): readonly string[] | undefined {
  const agent = tryParseObject(listText())?.[name];
  const program = isObject(agent) ? agent['program'] : undefined;
  if (typeof program !== 'string') return undefined;
  const path = join(folder, program);
  if (!existsSync(path)) return undefined;
  return path.endsWith('.js') ? [process.execPath, path] : [path];
}

/** The folder whose packages the libraries are; undefined where they are not installed. */
function librariesFolder(): string | undefined {
  const packages = join(folder, 'libraries', 'node_modules');
  return commandOf('libraries') === undefined ? undefined : packages;
}

function listText(): string {
  try {
    return readFileSync(join(folder, 'agents.json'), 'utf8');
  } catch {
    return '{}';
  }
}

/** Declares an agent's tests where it is installed, and else one skipped test that says what to do. */
export function withAgent(name: string, declare: (command: readonly string[]) => void): void {
  const command = commandOf(name);
  if (command !== undefined) declare(command);
  else test(name, { skip: 'not installed: npm run agents:install' }, () => undefined);
}

/** The same for the libraries; the tests get the folder of their packages. */
export function withLibraries(declare: (packages: string) => void): void {
  const packages = librariesFolder();
  if (packages !== undefined) declare(packages);
  else test('libraries', { skip: 'not installed: npm run agents:install' }, () => undefined);
}
