/**
 * `gateway.yaml` as plain data that still knows its lines. References are resolved on the way; keys
 * that occur twice, unknown tags and other silent mistakes are errors.
 */
import {
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type Node,
  type YAMLMap,
} from 'yaml';
import type { Finding } from './errors.ts';

export type ConfigPath = readonly (string | number)[];

export interface YamlText {
  /** Undefined when the text is not YAML at all, or empty. */
  readonly value: unknown;
  readonly findings: readonly Finding[];
  /** The line of the key or list item at the path, or of the nearest thing around it. */
  lineOf(path: readonly PropertyKey[]): number | undefined;
}

/** Text of a scalar with its references filled in, or what is wrong with it. */
export type Resolve = (
  text: string,
  path: ConfigPath,
) => { readonly text: string } | { readonly problem: string; readonly unresolved?: true };

export interface YamlSource {
  readonly text: string;
  readonly resolve: Resolve;
}

/** Reads the text. Never throws: what is wrong is in `findings`. */
export function readYaml(source: YamlSource): YamlText {
  const lines = new LineCounter();
  const document = parseDocument(source.text, {
    lineCounter: lines,
    schema: 'core',
    // Repeated keys are found below, where their path and the first one's line are known.
    uniqueKeys: false,
    prettyErrors: false,
  });
  const reader = new Reader(source, document, lines);
  const broken = [...document.errors, ...document.warnings].map(({ message, pos }) =>
    reader.syntaxFinding(message, pos[0]),
  );
  if (broken.length > 0) {
    // The parser takes up again after such a brace, and finds a dozen mistakes that are none.
    const cause = broken.find(({ message }) => message === unquotedReference);
    const findings = cause === undefined ? broken : [cause];
    return { value: undefined, findings, lineOf: () => undefined };
  }
  const value = document.contents === null ? undefined : reader.read(document.contents, []);
  return { value, findings: reader.findings, lineOf: (path) => reader.lineOf(path) };
}

/** In { … } and [ … ] the braces of a reference end the value, which the parser words oddly. */
const unquotedReference = 'inside { } and [ ] a reference needs quotes: "${NAME}"';

const severalDocuments = 'a second document begins here: remove the line ---';

const mergeKey =
  'merge keys are not read: repeat the settings here (an alias for a whole value, NAME: *anchor, is read)';

/**
 * Aliases of one file. Each is searched for in the whole document, and aliases of aliases multiply: without a bound a
 * file of a few lines takes the process for minutes.
 */
const maxAliases = 1000;

class Reader {
  readonly findings: Finding[] = [];
  #aliases = 0;
  readonly #source: YamlSource;
  readonly #document: Document;
  readonly #lines: LineCounter;

  constructor(source: YamlSource, document: Document, lines: LineCounter) {
    this.#source = source;
    this.#document = document;
    this.#lines = lines;
  }

  syntaxFinding(message: string, offset: number): Finding {
    const { line } = this.#lines.linePos(offset);
    const text = this.#source.text.split('\n')[line - 1] ?? '';
    const isUnquoted = /[{[,][^#]*[:[,{]\s*\$\{/.test(text);
    const firstLine = message.split('\n')[0] ?? message;
    // The parser names a function of its own.
    const said = message.includes('multiple documents') ? severalDocuments : firstLine;
    return { path: [], line, message: isUnquoted ? unquotedReference : said };
  }

  /** The node as plain data. Values of every type of YAML's core schema come through. */
  read(node: unknown, path: ConfigPath): unknown {
    if (isAlias(node) && !this.#mayResolve(node, path)) return null;
    const target = this.#target(node);
    if (isMap(target)) return this.#readMap(target, path);
    if (isSeq(target)) return target.items.map((item, i) => this.read(item, [...path, i]));
    if (!isScalar(target)) return null;
    const { value } = target;
    if (typeof value !== 'string') return value;
    const resolved = this.#source.resolve(value, path);
    if ('text' in resolved) return resolved.text;
    this.#report(path, resolved.problem, target, resolved.unresolved);
    return value;
  }

  lineOf(path: readonly PropertyKey[]): number | undefined {
    let node = this.#target(this.#document.contents);
    let line: number | undefined;
    for (const step of path) {
      const found = isMap(node) ? pairOf(node, String(step)) : undefined;
      const next = isSeq(node) && typeof step === 'number' ? node.items[step] : found?.value;
      const at = found?.key ?? next;
      if (at === undefined) break;
      line = this.#line(at) ?? line;
      node = this.#target(next);
    }
    return line;
  }

  #readMap(map: YAMLMap, path: ConfigPath): { readonly [key: string]: unknown } {
    const entries = new Map<string, unknown>();
    const firstLines = new Map<string, number | undefined>();
    for (const { key, value } of map.items) {
      const name = keyText(key);
      // Objects give `__proto__` a meaning of their own: as a name it would vanish.
      if (name === undefined || name === '__proto__') {
        this.#report(path, 'a key must be a plain text, and not __proto__', key);
        continue;
      }
      if (name === '<<') {
        this.#report([...path, name], mergeKey, key);
        continue;
      }
      if (firstLines.has(name)) {
        const first = firstLines.get(name);
        this.#report([...path, name], `occurs twice (first on line ${first ?? '?'})`, key);
        continue;
      }
      firstLines.set(name, this.#line(key));
      entries.set(name, this.read(value, [...path, name]));
    }
    return Object.fromEntries(entries);
  }

  #mayResolve(alias: unknown, path: ConfigPath): boolean {
    this.#aliases += 1;
    if (this.#aliases === maxAliases + 1) {
      this.#report(
        path,
        `more than ${maxAliases} aliases, counted as often as they are used`,
        alias,
      );
    }
    return this.#aliases <= maxAliases;
  }

  #report(path: ConfigPath, message: string, node: unknown, unresolved?: true): void {
    const line = this.#line(node);
    this.findings.push({
      path,
      message,
      ...(line === undefined ? {} : { line }),
      ...(unresolved === undefined ? {} : { unresolved }),
    });
  }

  #target(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.#document) : node;
  }

  #line(node: unknown): number | undefined {
    const offset = isNode(node) ? node.range?.[0] : undefined;
    return offset === undefined ? undefined : this.#lines.linePos(offset).line;
  }
}

function isNode(value: unknown): value is Node {
  return isScalar(value) || isMap(value) || isSeq(value) || isAlias(value);
}

function pairOf(
  map: YAMLMap,
  name: string,
): { readonly key: unknown; readonly value: unknown } | undefined {
  return map.items.find((item) => isPair(item) && keyText(item.key) === name);
}

function keyText(key: unknown): string | undefined {
  const value = isScalar(key) ? key.value : key;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}
