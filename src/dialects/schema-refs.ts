/**
 * Local references of a JSON Schema, for servers that take none (B8). A reference to what is being
 * resolved already is a cycle; it is cut. Small schemas can mean huge ones, so what references add is
 * bounded.
 */
import type { Json, JsonObject } from '../core/conversation.ts';
import { isObject } from '../core/json.ts';
import type { Steps } from '../core/steps.ts';

/** Sub-schemas that references of one tool may add. */
const maxAdded = 4000;
/** References that may lead through each other. */
const maxChain = 24;

export class SchemaRefs {
  readonly #root: JsonObject;
  /** What is being resolved, outermost first. */
  readonly #open: string[] = [];
  #added = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /**
   * Calls `use` with the schema that a reference points to, or with undefined when it is foreign,
   * broken, a cycle, or more than a schema may grow.
   */
  *follow<T>(ref: string, use: (target: JsonObject | undefined) => Steps<T>): Steps<T> {
    const tooMuch = this.#added >= maxAdded || this.#open.length >= maxChain;
    const target = tooMuch || this.#open.includes(ref) ? undefined : this.#find(ref);
    if (target === undefined) return yield* use(undefined);
    this.#open.push(ref);
    try {
      return yield* use(target);
    } finally {
      this.#open.pop();
    }
  }

  /** Counts a sub-schema that is read; only those behind a reference are bounded. */
  count(): void {
    if (this.#open.length > 0) this.#added += 1;
  }

  /** No more may be added: what is left of the schemas behind references is left open. */
  get full(): boolean {
    return this.#open.length > 0 && this.#added >= maxAdded;
  }

  #find(ref: string): JsonObject | undefined {
    if (!ref.startsWith('#')) return undefined;
    let at: Json | undefined = this.#root;
    for (const step of ref.slice(1).split('/').slice(1)) at = member(at, unescaped(step));
    // `#name` points to an anchor, which nobody uses in tools.
    if (ref.length > 1 && !ref.startsWith('#/')) return undefined;
    return isObject(at) ? at : undefined;
  }
}

function member(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return Object.getOwnPropertyDescriptor(value, key)?.value;
}

function unescaped(step: string): string {
  let text = step;
  try {
    text = decodeURIComponent(step);
  } catch {
    // A lone percent sign stands for itself.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}
