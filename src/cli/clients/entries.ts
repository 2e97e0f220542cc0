/** What the rows of the table of clients are made of. */
import type { Json } from '../../json/value.ts';
import type { Ask, Environment, SettingsEdit, Step } from './client.ts';
import type { Connection, Variable } from '../connection.ts';

/** The gateway's name in settings of clients that know several providers. */
export const provider = 'model-gateway';
export const title = 'Model Gateway';

/** The key as it is in a file: the variable that holds it, where the client reads variables there. */
export function fileKey(
  { key, keyVariable }: Connection,
  reference: (variable: string) => string,
): Pick<SettingsEdit, 'value' | 'secret'> {
  return { value: keyVariable === undefined ? key : reference(keyVariable), secret: true };
}

/** An edit for a limit that is known. */
export function known(path: readonly Step[], tokens: number | undefined): readonly SettingsEdit[] {
  return tokens === undefined ? [] : [{ path, value: tokens }];
}

/** What the client wants to find, whatever it is. */
export function onlyIfMissing(path: readonly Step[], value: Json): readonly SettingsEdit[] {
  return [{ path, value, onlyIfMissing: true }];
}

/** `connect` sees to it that it is set. */
export function home(env: Environment): string {
  return env['HOME'] ?? '~';
}

export function configHome(env: Environment): string {
  const root = env['XDG_CONFIG_HOME'];
  return root === undefined || root === '' ? `${home(env)}/.config` : root;
}

export function isSet(env: Environment, name: string): boolean {
  return (env[name] ?? '') !== '';
}

/** Fields of a form and what goes into them. */
export function form(fields: readonly Variable[]): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => `  ${name.padEnd(width)}  ${value}\n`).join('');
}

export function claudeCodeNotes({ modelGiven, env }: Ask): readonly string[] {
  return [
    ...(isSet(env, 'ANTHROPIC_API_KEY')
      ? [
          'ANTHROPIC_API_KEY is set here: Claude Code would send both keys and the gateway refuses two different ones; unset it.',
        ]
      : []),
    ...(modelGiven
      ? []
      : [
          'Where no model is named, Claude Code asks for its own model names, which some provider must have.',
        ]),
  ];
}
