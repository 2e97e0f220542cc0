/** The region of a profile in the shared file of AWS's own tools, where nothing nearer names one. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { CloudSettings, Environment } from '../../../core/cloud.ts';
import { set } from '../declaration.ts';

/** Undefined where the file cannot be read, or names none. */
export function profileRegion({ profile }: CloudSettings, env: Environment): string | undefined {
  const file = set(env, 'AWS_CONFIG_FILE') ?? join(set(env, 'HOME') ?? homedir(), '.aws', 'config');
  const name = profile ?? set(env, 'AWS_PROFILE') ?? 'default';
  try {
    return regionIn(readFileSync(file, 'utf8'), name);
  } catch {
    // The credential is read from the same file: its own error says more.
    return undefined;
  }
}

/** @param text sections with members, of which indented ones belong to the member before them */
export function regionIn(text: string, profile: string): string | undefined {
  let isOwn = false;
  for (const line of text.split(/\r?\n/)) {
    const section = /^\[([^\]]*)\]/.exec(line)?.[1];
    if (section !== undefined) isOwn = nameIn(section) === profile;
    const region = isOwn ? /^region\s*=\s*([\w-]+)/.exec(line) : null;
    if (region !== null) return region[1];
  }
  return undefined;
}

/** `default`, `profile dev` or `profile "dev"`: the name of the profile, between brackets. */
function nameIn(section: string): string {
  const name = section
    .trim()
    .replace(/^profile\s/, '')
    .trim();
  return name.replace(/^(["'])(.*)\1$/, '$2');
}
