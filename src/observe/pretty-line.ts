/** A log line for a person at a terminal: time, level, event, and the fields that have a value. */
import type { LogFields } from '../core/runtime.ts';

export interface PrettyParts {
  /** ISO form. */
  readonly time: string;
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields | undefined;
}

/** SGR numbers: of the levels, and of what stands back. */
const colours: { readonly [level: string]: number } = { debug: 2, info: 36, warn: 33, error: 31 };
const faint = 2;
/** What needs no quotes. */
const plain = /^[\w./:@+-]+$/;

/** @param coloured false under NO_COLOR. Control characters are quoted as JSON has them (S13). */
export function prettyLine({ time, level, event, fields }: PrettyParts, coloured: boolean): string {
  const paint = (text: string, colour: number): string =>
    coloured ? `\u001b[${colour}m${text}\u001b[0m` : text;
  const named = Object.entries(fields ?? {}).flatMap(([name, value]) =>
    value === undefined || value === null
      ? []
      : [`${paint(`${wordOf(name)}=`, faint)}${wordOf(value)}`],
  );
  const head = [
    paint(time.slice(11, 23), faint),
    paint(level.toUpperCase().padEnd(5), colours[level] ?? faint),
    /^[\w :,.-]+$/.test(event) ? event : quoted(event),
  ];
  return [...head, ...named].join(' ');
}

function wordOf(value: string | number | boolean): string {
  const text = String(value);
  return plain.test(text) ? text : quoted(text);
}

/** All that a terminal may obey is written as its number. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (mark) => `\\u${(mark.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}
