/** Grammars in llama.cpp's GBNF: a set of named rules, and the rules of JSON itself. */

/** Values as compact JSON; one space may stand where models like to put one. */
const jsonRules = String.raw`
object ::= "{" space (member ("," space member)*)? "}"
member ::= string ":" space value
array ::= "[" space (value ("," space value)*)? "]"
value ::= object | array | string | number | boolean | null
boolean ::= "true" | "false"
null ::= "null"
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" ([0-9a-cA-CefEF] hex | [dD] [0-7]) hex hex)
hex ::= [0-9a-fA-F]
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,14})
space ::= " "?
`;

/** Rules of one grammar, each body kept once. */
export class GrammarRules {
  readonly #bodies = new Map<string, string>();
  readonly #names = new Map<string, string>();
  #visits = 0;

  get size(): number {
    return this.#bodies.size;
  }

  /** How many schemas were looked at for this grammar, this one included. */
  visit(): number {
    this.#visits += 1;
    return this.#visits;
  }

  /** The name of a rule with this body. */
  add(body: string): string {
    const known = this.#names.get(body);
    if (known !== undefined) return known;
    const name = this.reserve();
    this.#bodies.set(name, body);
    this.#names.set(body, name);
    return name;
  }

  /** A name whose body comes later, for rules that need themselves. */
  reserve(): string {
    const name = `r${this.#bodies.size}`;
    this.#bodies.set(name, '');
    return name;
  }

  define(name: string, body: string): void {
    this.#bodies.set(name, body);
  }

  /** The whole grammar. */
  text(root: string): string {
    const rules = [...this.#bodies].map(([name, body]) => `${name} ::= ${body}`);
    return [`root ::= ${root}`, ...rules].join('\n') + jsonRules;
  }
}

/** Any text as a literal. */
export function literal(text: string): string {
  const escaped = text.replace(/[\\"\n\r]/g, (character) => escapes[character] ?? character);
  return `"${escaped}"`;
}

const escapes: { readonly [character: string]: string } = {
  '\\': String.raw`\\`,
  '"': String.raw`\"`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
};

/** One of several rules. */
export function oneOf(rules: readonly string[]): string {
  return [...new Set(rules)].join(' | ');
}
