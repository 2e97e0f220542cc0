/**
 * Settings as one text, for another process of the same gateway: with their secrets, so it is for no log. What
 * the other process reads is what this one has read, whatever became of the file since.
 */
import { parseOwn } from '../core/json.ts';
import { Secret } from '../core/secret.ts';
import { HeaderSettings, type Settings } from './settings.ts';

/** No setting has a member of this name. */
const kind = '\u0000kind';

export function packSettings(settings: Settings): string {
  // `toJSON` of what hides itself was called already: the holder has the value.
  return JSON.stringify(settings, function packed(this: object, name: string, value: unknown) {
    const raw: unknown = Reflect.get(this, name);
    if (raw instanceof Secret) return { [kind]: 'secret', text: raw.reveal() };
    if (raw instanceof HeaderSettings) return { [kind]: 'headers', entries: [...raw.entries()] };
    if (raw === Number.POSITIVE_INFINITY) return { [kind]: 'infinity' };
    return value;
  });
}

export function unpackSettings(text: string): Settings {
  return parseOwn<Settings>(text, unpacked);
}

function unpacked(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !(kind in value)) return value;
  if ('text' in value) return new Secret(String(value.text));
  if (!('entries' in value)) return Number.POSITIVE_INFINITY;
  const { entries } = value;
  return new HeaderSettings(Array.isArray(entries) ? entries : []);
}
