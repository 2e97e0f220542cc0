/** Grammar rules of objects and arrays. */
import { literal, type GrammarRules } from './grammar.ts';

export interface Property {
  readonly name: string;
  readonly required: boolean;
  /** What its value follows. */
  readonly rule: string;
}

export interface ItemCount {
  readonly least: number;
  readonly most: number | undefined;
  readonly brackets?: '[]' | '{}';
}

/** So many items between two brackets; `most` undefined = any number. */
export function arrayRule(item: string, { least, most, brackets = '[]' }: ItemCount): string {
  const [open, close] = brackets;
  if (most === 0) return `"${open}" "${close}"`;
  const more = `("," space ${item}){${Math.max(0, least - 1)},${most === undefined ? '' : most - 1}}`;
  const items = `${item} ${more}`;
  return `"${open}" space ${least > 0 ? items : `(${items})?`} "${close}"`;
}

/** An object with these properties and no others, in this order; optional ones may be left out. */
export function objectRule(rules: GrammarRules, properties: readonly Property[]): string {
  // From the end: what may follow when nothing was written yet, and when something was.
  let first = '""';
  let after = '""';
  for (const { name, required, rule } of properties.toReversed()) {
    const pair = rules.add(`${literal(JSON.stringify(name))} ":" space ${rule}`);
    const begun = `${pair} ${after}`;
    first = rules.add(required ? begun : `${begun} | ${first}`);
    const next = `"," space ${pair} ${after}`;
    after = rules.add(required ? next : `${next} | ${after}`);
  }
  return rules.add(`"{" space ${first} "}"`);
}
