/**
 * The names under which a model may be meant: what limits on models and prices are compared with, so that
 * another spelling of a name is no way around either.
 */

/** `claude-sonnet-5-20260930`, `gpt-5-mini-2025-08-07`, `claude-sonnet-4@20250514`. */
const date = /[-@]20\d\d(?:-[01]\d-[0-3]\d|[01]\d[0-3]\d)(?=$|[-:@])/;
/** Names that vendors point at one date: `claude-3-5-haiku-latest`. */
const latest = /[-@:]latest$/;
/** Variants and quantizations of one model: `gpt-5:nitro`, `llama3:8b`. */
const tag = /:[^/:]+$/;

/** The name without its date; the same text where it has none. */
export function withoutDate(model: string): string {
  return model.replace(date, '');
}

/** All spellings of what a call may be for, in lower case. */
export interface ModelNames {
  /** With and without what stands before a slash. */
  readonly own: readonly string[];
  /** The same without date, `latest` and tag, where they have one. */
  readonly families: readonly string[];
}

/** The spellings of these names: `openai/gpt-5-2025-08-07` is `gpt-5` as well. */
export function modelNames(names: Iterable<string>): ModelNames {
  const own = new Set<string>();
  const families = new Set<string>();
  for (const given of names) {
    const name = given.trim().toLowerCase();
    for (let from = 0; ; from = name.indexOf('/', from) + 1) {
      const rest = name.slice(from);
      if (rest !== '') own.add(rest);
      if (!rest.includes('/')) break;
    }
  }
  for (const name of own) {
    for (const family of familiesOf(name)) if (!own.has(family)) families.add(family);
  }
  return { own: [...own], families: [...families] };
}

/** Its steps towards the name that has nothing behind it. */
function familiesOf(name: string): readonly string[] {
  const untagged = name.replace(latest, '').replace(tag, '');
  return [withoutDate(name), untagged, withoutDate(untagged)];
}
