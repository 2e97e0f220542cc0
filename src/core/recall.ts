/**
 * Data that an upstream requires back with a turn that called tools, remembered for clients that drop it,
 * and where reasoning is in such a turn.
 */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../json/value.ts';
import type { Origin, Part, ReasoningPart, ToolCallPart, Turn } from './conversation.ts';

/** Reasoning and how many calls of its turn are before it. */
export interface PositionedReasoning {
  readonly callsBefore: number;
  readonly part: ReasoningPart;
}

export interface RecalledTurn {
  readonly origin: Origin;
  readonly reasoning: readonly PositionedReasoning[];
  /** The upstream's extras of single calls, by the client's id. */
  readonly calls: ReadonlyMap<string, JsonObject>;
}

/** The members by which a call is recognised. */
export type KnownCall = Pick<ToolCallPart, 'id' | 'name' | 'argumentsJson'>;

/**
 * Looks a turn up by one of its calls, for the key that asks.
 * @param asked the user's texts up to the turn; some ids are unique only together with them.
 */
export type Recall = (call: KnownCall, asked: PromptTrail) => RecalledTurn | undefined;

/** The texts that users said so far, as a digest. Tool results and instructions do not count. */
export class PromptTrail {
  /** Made when a digest is requested: most trails are of no use. */
  #hash: ReturnType<typeof createHash> | undefined;
  #pending: string[] = [];
  #fill: ((trail: PromptTrail) => void) | undefined;

  /** @param fill adds the texts, when they are requested: to look them up takes time. */
  constructor(fill?: (trail: PromptTrail) => void) {
    this.#fill = fill;
  }

  add(text: string): void {
    if (text !== '') this.#pending.push(text);
  }

  addTurn({ role, parts }: Turn): void {
    if (role !== 'user') return;
    for (const part of parts) if (part.type === 'text') this.add(part.text);
  }

  /** Digest of everything so far; texts are only hashed when this is called. */
  digest(): string {
    const fill = this.#fill;
    this.#fill = undefined;
    fill?.(this);
    const hash = (this.#hash ??= createHash('sha256'));
    for (const text of this.#pending) hash.update(`${text.length}:`).update(text);
    this.#pending = [];
    return hash.copy().digest('base64url');
  }
}

/** The reasoning of a turn with its position among the calls. */
export function positionedReasoning(parts: readonly Part[]): readonly PositionedReasoning[] {
  const placed: PositionedReasoning[] = [];
  let callsBefore = 0;
  for (const part of parts) {
    if (part.type === 'tool-call') callsBefore += 1;
    else if (part.type === 'reasoning') placed.push({ callsBefore, part });
  }
  return placed;
}

/** The other parts of a turn with this reasoning at its positions. Reasoning before any call comes first. */
export function withReasoning(
  others: readonly Part[],
  placed: readonly PositionedReasoning[],
): readonly Part[] {
  const parts: Part[] = [];
  let next = 0;
  let calls = 0;
  const insert = (): void => {
    for (let each = placed[next]; each !== undefined && each.callsBefore <= calls;) {
      parts.push(each.part);
      each = placed[(next += 1)];
    }
  };
  insert();
  for (const part of others) {
    parts.push(part);
    if (part.type !== 'tool-call') continue;
    calls += 1;
    insert();
  }
  // A call that the client omitted takes nothing of the reasoning with it.
  for (const { part } of placed.slice(next)) parts.push(part);
  return parts;
}
