/**
 * An option of `gateway.yaml` is one row: its key, how its value is written, its default and one sentence.
 * The types of the settings, the checked form (schema.ts), the lines of `check` and docs/options.md are made
 * from the rows. Plain data: the schema library is loaded only when there is a file to check.
 */
import type { CheckedFile } from './config-file.ts';
import { pathText } from './errors.ts';
import type { OriginLine } from './settings.ts';

// Durations and sizes as people write them.

const durationUnits: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

const sizeUnits: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['KB', 1000],
  ['MB', 1000 ** 2],
  ['GB', 1000 ** 3],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
  ['TiB', 1024 ** 4],
]);

export const durationPattern = '^\\d+(\\.\\d+)?(ms|s|m|h)$';
export const sizePattern = '^\\d+(\\.\\d+)?(B|KB|MB|GB|KiB|MiB|GiB|TiB)$';
const durationForm = new RegExp(durationPattern);
const sizeForm = new RegExp(sizePattern);

/** Milliseconds of `500ms`, `2s`, `30m`, `1h`; undefined when the text is none of them. */
export function readDuration(text: string): number | undefined {
  return read(text, durationForm, durationUnits);
}

/** Bytes of `32MiB`, `10MB`, `512KiB`; undefined when the text is none of them. */
export function readSize(text: string): number | undefined {
  return read(text, sizeForm, sizeUnits);
}

function read(text: string, form: RegExp, units: ReadonlyMap<string, number>): number | undefined {
  if (!form.test(text)) return undefined;
  const unit = units.get(text.replace(/^[\d.]+/, ''));
  const value = Math.round(Number.parseFloat(text) * (unit ?? Number.NaN));
  return Number.isSafeInteger(value) ? value : undefined;
}

const spanUnits: ReadonlyMap<string, number> = new Map([
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
]);

export const spanPattern = '^(\\d{1,5}(h|d|w)|forever)$';
const spanForm = new RegExp(spanPattern);

/** Milliseconds of `36h`, `90d`, `26w`; Infinity of `forever`; undefined when the text is none of them. */
export function readSpan(text: string): number | undefined {
  if (text === 'forever') return Number.POSITIVE_INFINITY;
  return read(text, spanForm, spanUnits);
}

/** `90d`, `36h`, `forever`. */
export function spanText(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return 'forever';
  return ms % 86_400_000 === 0 ? `${ms / 86_400_000}d` : `${ms / 3_600_000}h`;
}

/** The shortest exact spelling: 90000 is `90s`, 1800000 is `30m`. */
export function durationText(ms: number): string {
  return ms === 0 ? '0s' : spell(ms, ['h', 'm', 's', 'ms'], durationUnits);
}

/** The shortest exact spelling: 33554432 is `32MiB`. */
export function sizeText(bytes: number): string {
  return spell(bytes, ['TiB', 'GiB', 'GB', 'MiB', 'MB', 'KiB', 'KB', 'B'], sizeUnits);
}

function spell(
  value: number,
  names: readonly string[],
  units: ReadonlyMap<string, number>,
): string {
  const name = names.find((each) => value > 0 && value % (units.get(each) ?? Infinity) === 0);
  return name === undefined ? String(value) : `${value / (units.get(name) ?? 1)}${name}`;
}

/** How a value is written in the file. Durations and spans become ms, sizes bytes. */
export type Form =
  | { readonly is: 'duration'; readonly min: number; readonly never?: number }
  | { readonly is: 'span'; readonly min: number }
  | { readonly is: 'size'; readonly min: number; readonly max: number; readonly examples: string[] }
  | { readonly is: 'whole'; readonly min: number; readonly max: number }
  /** 0 to 1. */
  | { readonly is: 'share' }
  | { readonly is: 'switch' }
  | { readonly is: 'choice'; readonly of: readonly string[]; readonly planned?: readonly string[] }
  | { readonly is: 'text'; readonly pattern?: RegExp; readonly message?: string }
  | { readonly is: 'list'; readonly pattern: RegExp; readonly message: string };

/** A form, and how a value of it is shown. */
export interface Kind<T> {
  readonly form: Form;
  text(value: T): string;
}

/** The same of a value that a flag or a variable may give as text. */
export interface TextKind<T> extends Kind<T> {
  read(text: string): { readonly value: T } | { readonly problem: string };
}

interface Row<K extends string, T> {
  /** In the file. */
  readonly key: K;
  readonly kind: Kind<T>;
  /** Of an option without a fixed default: what holds instead. */
  readonly otherwise?: string;
  /** The default with `storage: memory`, where it is another. */
  readonly defaultInMemory?: NoInfer<T>;
  /** One or two sentences; the default is added to them. */
  readonly about: string;
}

/** A row of any type. */
export interface Option {
  readonly key: string;
  readonly kind: Kind<never>;
  readonly default?: unknown;
  readonly defaultInMemory?: unknown;
  readonly otherwise?: string;
  readonly about: string;
}

/** The options of a section, by the names of their settings. */
export interface Options {
  readonly [setting: string]: Option;
}

/** One option; with a default its setting always has a value. */
export function option<const K extends string, T>(
  row: Row<K, T> & { readonly default: NoInfer<T> },
): Row<K, T> & { readonly default: T };
export function option<const K extends string, T>(row: Row<K, T>): Row<K, T>;
export function option<const K extends string, T>(row: Row<K, T>): Row<K, T> {
  return row;
}

type ValueOf<O> = O extends { readonly kind: Kind<infer T> } ? T : never;

/** What the section of the file holds once it is checked. */
type FileForm<R extends Options> = {
  readonly [O in R[keyof R] as O['key']]?: ValueOf<O> | undefined;
};

/** The settings of a section: those with a default always have a value. */
export type SettingsOf<R extends Options> = {
  readonly [K in keyof R]: R[K] extends { readonly default: unknown }
    ? ValueOf<R[K]>
    : ValueOf<R[K]> | undefined;
};

/** The settings that are set, e.g. of one provider. */
export type GivenOf<R extends Options> = { readonly [K in keyof R]?: ValueOf<R[K]> };

/** The settings of a section: what the file says, else the default. */
export function readOptions<R extends Options>(
  options: R,
  form: FileForm<R> | null | undefined,
  inMemory = false,
): SettingsOf<R> {
  const given: { readonly [key: string]: unknown } = { ...form };
  return made(
    Object.entries(options).map(([name, { key, default: usual, defaultInMemory }]) => [
      name,
      given[key] ?? (inMemory ? (defaultInMemory ?? usual) : usual),
    ]),
  );
}

/** The settings that the file gives. */
export function givenOptions<R extends Options>(
  options: R,
  form: FileForm<R> | null | undefined,
): GivenOf<R> {
  const given: { readonly [key: string]: unknown } = { ...form };
  return made(
    Object.entries(options)
      .map(([name, { key }]) => [name, given[key]])
      .filter(([, value]) => value !== undefined),
  );
}

/** Typed by the caller, whose type follows from the rows. */
function made<T>(entries: readonly (readonly unknown[])[]): T {
  return Object.fromEntries(entries);
}

/** Where a section is in the file. */
type Path = readonly (string | number)[];

/**
 * The lines of `check` for a section: each value and where it comes from. Options without a value and without
 * a text for that are omitted.
 */
export function optionLines(
  options: Options,
  settings: object,
  { path, file }: { readonly path: Path; readonly file: CheckedFile | undefined },
): readonly OriginLine[] {
  const values = new Map<string, unknown>(Object.entries(settings));
  return Object.entries(options).flatMap(([name, { key, kind, otherwise }]) => {
    const value = values.get(name);
    const shown = value === undefined ? otherwise : textOf(kind, value);
    if (shown === undefined) return [];
    const isSet = file?.isSet([...path, key]) === true;
    const origin = isSet ? file.where([...path, key]) : 'default';
    return [{ path: pathText([...path, key]), value: shown, origin }];
  });
}

/** The default as the file would say it; undefined where there is none. */
export function defaultText({ kind, default: usual, otherwise }: Option): string | undefined {
  return usual === undefined ? otherwise : textOf(kind, usual);
}

function textOf(kind: { text(value: unknown): string }, value: unknown): string {
  return kind.text(value);
}

/** @param min ms */
export function duration(min = 1): Kind<number> {
  return { form: { is: 'duration', min }, text: durationText };
}

/** `never`, which is `never` ms, or a duration. */
export function durationOrNever(never: number): Kind<number> {
  return {
    form: { is: 'duration', min: 1, never },
    text: (ms) => (ms === never ? 'never' : durationText(ms)),
  };
}

/** Hours, days, weeks or `forever`. @param min ms */
export function span(min: number): Kind<number> {
  return { form: { is: 'span', min }, text: spanText };
}

/** @param min bytes, as max */
export function size(min: number, max: number, examples: string[]): Kind<number> {
  return { form: { is: 'size', min, max, examples }, text: sizeText };
}

export function whole(min: number, max: number): TextKind<number> {
  return {
    form: { is: 'whole', min, max },
    text: String,
    read: (text) => {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return { value };
      return { problem: `expected a whole number from ${min} to ${max}` };
    },
  };
}

export const share: Kind<number> = { form: { is: 'share' }, text: String };

export const onOff: TextKind<boolean> = {
  form: { is: 'switch' },
  text: String,
  read: (text) => {
    if (['yes', 'true', '1'].includes(text)) return { value: true };
    if (['no', 'false', '0'].includes(text)) return { value: false };
    return { problem: 'expected yes or no' };
  },
};

/** @param planned values that are refused as not available yet */
export function choice<const T extends string>(
  of: readonly T[],
  planned?: readonly string[],
): TextKind<T> {
  return {
    form: { is: 'choice', of, ...(planned === undefined ? {} : { planned }) },
    text: (value) => value,
    read: (given) => {
      const value = of.find((each) => each === given);
      return value === undefined ? { problem: `expected one of ${of.join(', ')}` } : { value };
    },
  };
}

/** A text that is not empty. */
export const text: TextKind<string> = {
  form: { is: 'text' },
  text: (value) => value,
  read: (value) => ({ value }),
};

/** @param message what is said of a text that does not match */
export function textLike(pattern: RegExp, message: string): Kind<string> {
  return { form: { is: 'text', pattern, message }, text: (value) => value };
}

export function list(pattern: RegExp, message: string): Kind<readonly string[]> {
  return { form: { is: 'list', pattern, message }, text: (values) => values.join(', ') };
}
