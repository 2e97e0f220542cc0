/**
 * A bounded skeleton of a long body, for code that examines its options: prompts and functions are omitted, and of other
 * members no more is kept than readers of options look at (`describe.ts`).
 */
import type { Span } from '../../../json/scan.ts';
import { isObject, type Json, type JsonObject } from '../../../json/value.ts';

/** Members that are prompts. */
const prompts: ReadonlySet<string> = new Set(['messages', 'system', 'prompt', 'input']);
/** Lists that keep only the entries that a provider runs itself. */
const toolLists: ReadonlySet<string> = new Set(['tools', 'functions']);
const ownTypes: ReadonlySet<unknown> = new Set([undefined, null, 'function', 'custom']);
/** Members whose names are known; each has a bound of its own. */
const known: ReadonlySet<string> = new Set(
  `plugins response_format output_config output_format metadata stop stop_sequences logit_bias modalities thinking
  web_search_options search_parameters models fallbacks context_management provider mcp_servers container reasoning
  reasoning_effort stream_options tool_choice function_call audio service_tier extra_body`
    .trim()
    .split(/\s+/),
);

/** Values of one member: more than readers of options look at, which then take it as one without a bound. */
const maxOfMember = 1100;
const maxOfTools = 10_000;
const maxOfUnknown = 20_000;
const maxText = 4096;
/** More values than any reader examines. */
const unreadable: readonly Json[] = Array.from({ length: maxOfMember }, () => null);
/** A tool of an unknown type. */
const unknownTool: JsonObject = { type: 'unread' };

/** Where the members of the top level are that are the prompt, or a part of it. */
export function promptSpans(spans: ReadonlyMap<string, Span>): readonly Span[] {
  return [...spans].flatMap(([name, span]) =>
    prompts.has(name) || toolLists.has(name) || name === 'instructions' ? [span] : [],
  );
}

export function thinSkeleton(body: JsonObject): JsonObject {
  const skeleton: { [name: string]: Json } = {};
  const unknown = new Thinning(maxOfUnknown);
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    const thin = thinMember(name, value, unknown);
    if (thin !== undefined) define(skeleton, name, thin);
  }
  return skeleton;
}

function thinMember(name: string, value: Json, unknown: Thinning): Json | undefined {
  if (typeof value === 'string') return prompts.has(name) ? '' : cut(value);
  if (typeof value !== 'object' || value === null) return value;
  if (prompts.has(name)) return Array.isArray(value) ? [] : {};
  if (toolLists.has(name)) return Array.isArray(value) ? thinTools(value) : {};
  // Its text is what counts.
  if (name === 'prediction') return JSON.stringify(value);
  if (known.has(name)) return new Thinning(maxOfMember).value(value, 0);
  if (unknown.left <= 0) return undefined;
  const thin = unknown.value(value, 0, maxOfMember);
  return unknown.left > 0 ? thin : unreadable;
}

function thinTools(tools: readonly Json[]): Json {
  const thinning = new Thinning(maxOfTools);
  const thin: Json[] = [];
  for (const tool of tools) {
    if (isObject(tool) && ownTypes.has(tool['type'])) continue;
    if (thinning.left <= 0) return [...thin, unknownTool];
    thin.push(thinning.value(tool, 0, maxOfMember));
  }
  return thin;
}

/** Counts the values that are kept. */
class Thinning {
  left: number;

  constructor(left: number) {
    this.left = left;
  }

  /** @param most how many of its values are kept, with their order. */
  value(value: Json, depth: number, most = this.left): Json {
    const until = this.left - Math.min(most, this.left);
    return this.#thin(value, depth, until);
  }

  #thin(value: Json, depth: number, until: number): Json {
    this.left -= 1;
    if (typeof value === 'string') return cut(value);
    if (Array.isArray(value)) {
      const kept: Json[] = [];
      for (const each of value) {
        if (this.left <= until) break;
        kept.push(this.#thin(each, depth + 1, until));
      }
      return kept;
    }
    if (!isObject(value)) return value;
    const kept: { [name: string]: Json } = {};
    for (const [name, each] of Object.entries(value)) {
      if (this.left <= until) break;
      if (each !== undefined) define(kept, cut(name), this.#thin(each, depth + 1, until));
    }
    return kept;
  }
}

function cut(text: string): string {
  return text.length <= maxText ? text : text.slice(0, maxText);
}

/** `__proto__` is a name like any other. */
function define(object: object, name: string, value: Json): void {
  Object.defineProperty(object, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}
