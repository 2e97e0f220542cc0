/** The agents that `npm run agents:install` put into `.agents/`. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isObject, tryParseObject } from '../../src/core/json.ts';

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
