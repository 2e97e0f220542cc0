/** What the references of one config file stand for, so that no message quotes it: such values may be secrets. */
import { posix } from 'node:path';
import { type ConfigIssue, pathText } from './errors.ts';
import type { ConfigPath } from './yaml-text.ts';

/** Shorter values are words of every message. */
const minScrubbed = 4;

export class Referred {
  /** By path: the text as the file has it. */
  readonly #written = new Map<string, string>();
  /** Whole texts, with their references filled in. */
  readonly #filled = new Set<string>();
  /** By what a reference stands for: the reference. */
  readonly #references = new Map<string, string>();

  /** @param written the text at the path, which has a reference; `filled` is what it becomes */
  noteText(path: ConfigPath, written: string, filled: string): void {
    this.#written.set(pathText(path), written);
    this.#filled.add(filled);
  }

  /** @param reference `${NAME}` */
  noteValue(reference: string, value: string): void {
    this.#references.set(value, reference);
  }

  /** Whether a value of the file came from a reference, and does not stand in the file itself. */
  isFilled(value: string): boolean {
    return this.#filled.has(value);
  }

  /** The text with references instead of their values, in each form that messages have. */
  scrub(text: string): string {
    // A value may be a part of another one.
    const longestFirst = [...this.#references].toSorted(([a], [b]) => b.length - a.length);
    return longestFirst.reduce((shown, [value, reference]) => {
      if (value.length < minScrubbed) return shown;
      return formsOf(value).reduce((each, form) => each.replaceAll(form, () => reference), shown);
    }, text);
  }

  /** The issue without values of references. What it quotes at a text with references is that text. */
  issue(issue: ConfigIssue): ConfigIssue {
    const written = this.#written.get(issue.path);
    const { message } = issue;
    const [from, to] = [message.indexOf('"'), message.lastIndexOf('"')];
    // A message may quote a part of a value, such as the name before its first slash.
    const own =
      written === undefined || from === to
        ? message
        : `${message.slice(0, from + 1)}${written}${message.slice(to)}`;
    return { ...issue, message: this.scrub(own) };
  }
}

/** As it is, in JSON, in an address and in a path, and each without capitals. */
function formsOf(value: string): readonly string[] {
  const forms = [value, JSON.stringify(value).slice(1, -1), posix.normalize(value)];
  if (value.isWellFormed()) forms.push(encodeURI(value), encodeURIComponent(value));
  const all = new Set(forms.flatMap((form) => [form, form.toLowerCase()]));
  return [...all].filter(({ length }) => length >= minScrubbed);
}
