/**
 * The names under which a model may be meant: what limits on models and prices are compared with, so that
 * another spelling of a name is not a way around either.
 */

/** `claude-sonnet-5-20260930`, `gpt-5-mini-2025-08-07`, `claude-sonnet-4@20250514`. */
const date = /[-@]20\d\d(?:-[01]\d-[0-3]\d|[01]\d[0-3]\d)(?=$|[-:@])/;
/**
 * Short dates, at the end of a name only, where versions and sizes are too: year and month
 * (`mistral-large-2411`), month and day (`gpt-4-0613`), month and year (`command-r-08-2024`). 1024 is a size.
 */
const shortDate =
  /(?<=\w)-(?:2[3-9](?:0[1-9]|1[0-2])|(?!1024)(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])|(?:0[1-9]|1[0-2])-20[2-9]\d)(?=$|[:@])/;
/** Names that vendors point at one date: `claude-3-5-haiku-latest`. */
const latest = /[-@:]latest$/;
/** Variants and quantizations of one model: `gpt-5:nitro`, `llama3:8b`. */
const tag = /:[^/:]+$/;

/** The name without its date; the same text where it has none. */
export function withoutDate(model: string): string {
  const undated = model.replace(date, '');
  return undated === model ? model.replace(shortDate, '') : undated;
}

/** All spellings of what a call may be for, in lower case. */
export interface ModelNames {
  /** With and without what is before a slash. */
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

/** Its steps towards the name that has nothing after it. */
function familiesOf(name: string): readonly string[] {
  const untagged = name.replace(latest, '').replace(tag, '');
  return [withoutDate(name), untagged, withoutDate(untagged)];
}

// Patterns of model names: `*` matches any text, everything else itself (B50: no RegExp).

/** No provider has longer model names; longer ones are refused without matching. */
const maxModelNameLength = 512;

export class Glob {
  readonly #first: string;
  readonly #middle: readonly string[];
  readonly #last: string | undefined;

  constructor(pattern: string) {
    const parts = pattern.split('*').filter((part, i, all) => {
      // `a**b` means the same as `a*b`.
      return part !== '' || i === 0 || i === all.length - 1;
    });
    this.#first = parts[0] ?? '';
    this.#last = parts.length > 1 ? parts.at(-1) : undefined;
    this.#middle = parts.slice(1, -1);
  }

  /** One pass from left to right: a pattern without alternatives never backtracks. */
  matches(name: string): boolean {
    if (name.length > maxModelNameLength) return false;
    if (this.#last === undefined) return name === this.#first;
    const end = name.length - this.#last.length;
    let at = this.#first.length;
    if (at > end || !name.startsWith(this.#first) || !name.endsWith(this.#last)) return false;
    for (const part of this.#middle) {
      const found = name.indexOf(part, at);
      if (found === -1 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  }
}
