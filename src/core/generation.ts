/** The canonical form of an answer: a stream is its events, a document is their fold. */
import type { Citation, Part } from './conversation.ts';
import type { JsonObject } from '../json/value.ts';
import type { GatewayError } from './errors.ts';
import { tokenClasses, type CountedUsage } from './token-classes.ts';

/**
 * Order of a stream: `start`, then parts, `usage` at any time after `start` (cumulative, the last
 * one holds), then exactly one of `finish` (only `usage` may follow) or `error` (nothing follows).
 * Parts are known by their index, counted from 0 in order of appearance; several may be open at once
 * (chat streams may interleave tool calls), and each index has one start and one end.
 */
export type GenerationEvent =
  | { readonly type: 'start'; readonly id: string; readonly model: string }
  | { readonly type: 'part-start'; readonly index: number; readonly part: Part }
  | {
      readonly type: 'part-delta';
      readonly index: number;
      readonly field: 'text' | 'arguments' | 'signature';
      readonly delta: string;
    }
  | { readonly type: 'part-citation'; readonly index: number; readonly citation: Citation }
  | { readonly type: 'part-end'; readonly index: number }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason }
  | { readonly type: 'error'; readonly error: GatewayError };

/** Token counts as reported. The three input classes are disjoint. */
export interface Usage extends CountedUsage {
  /**
   * What each request before the last one used, where it took several to make this one answer (a paused turn):
   * the counts hold theirs too, and each is billed by itself.
   */
  readonly earlier?: readonly Usage[];
  /** Calls of the provider's file search in the answer. */
  readonly fileSearches?: number;
  /** What other models used that the upstream asked for advice: not in the counts, and billed at their own prices. */
  readonly advice?: readonly Advice[];
  /** Service tier in the words of the upstream's dialect. */
  readonly serviceTier?: string;
  /** The usage object as the upstream wrote it, for the log. */
  readonly raw?: JsonObject;
}

export interface Advice {
  /** In the upstream's words. */
  readonly model: string;
  readonly usage: Usage;
}

export interface FinishReason {
  readonly kind:
    | 'stop'
    | 'stop-sequence'
    | 'length'
    | 'context-window'
    | 'tool-calls'
    | 'content-filter'
    | 'pause'
    | 'other';
  /** The upstream's own word. */
  readonly raw?: string;
  /** The stop sequence that matched, where the upstream says which. */
  readonly sequence?: string;
  /** A pause that ends when the same request is sent again with this token in it. */
  readonly resume?: string;
  /** Details in the upstream's words (messages `stop_details`). */
  readonly details?: JsonObject;
}

export interface Generation {
  readonly id: string;
  readonly model: string;
  readonly parts: readonly Part[];
  readonly finish: FinishReason;
  readonly usage?: Usage;
}

/** All input tokens of a usage report, or undefined when none of the classes is known. */
export function totalInputTokens(usage: Usage): number | undefined {
  const { freshInputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  if (
    freshInputTokens === undefined &&
    cacheReadTokens === undefined &&
    cacheWriteTokens === undefined
  ) {
    return undefined;
  }
  return (freshInputTokens ?? 0) + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0);
}

/** Whether any token count exists, even 0. A call without an upstream request has no counts. */
export function hasCounts(usage: Usage): boolean {
  return totalInputTokens(usage) !== undefined || usage.outputTokens !== undefined;
}

/** Overwrites field by field: what the later report does not know, the earlier one retains. */
export function mergeUsage(earlier: Usage | undefined, later: Usage): Usage {
  if (earlier === undefined) return later;
  const merged: Record<string, unknown> = { ...earlier };
  for (const [key, value] of Object.entries(later)) if (value !== undefined) merged[key] = value;
  return merged;
}

const counts = [...tokenClasses.map(({ member }) => member), 'fileSearches'] as const;

/** The sum of two requests' usage. A count that only one of them reported is used as the sum. */
export function addUsage(first: Usage | undefined, second: Usage | undefined): Usage | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = mergeUsage(first, second);
  for (const field of counts) {
    const known = [first[field], second[field]].filter((count) => count !== undefined);
    if (known.length > 0) sum[field] = known.reduce((total, count) => total + count, 0);
  }
  const advice = [...(first.advice ?? []), ...(second.advice ?? [])];
  if (advice.length > 0) sum.advice = advice;
  return sum;
}

/** The usage of the last request of the answer. */
export function lastRequest(usage: Usage): Usage {
  const { earlier, ...all } = usage;
  if (earlier === undefined) return usage;
  const last: { -readonly [K in keyof Usage]: Usage[K] } = all;
  for (const field of counts) {
    const count = last[field];
    if (count === undefined) continue;
    const before = earlier.reduce((sum, each) => sum + (each[field] ?? 0), 0);
    last[field] = Math.max(0, count - before);
  }
  return last;
}

/** Turns a whole generation into the events that a stream of it would have. `collect` undoes it. */
export function replay(generation: Generation): readonly GenerationEvent[] {
  const events: GenerationEvent[] = [{ type: 'start', id: generation.id, model: generation.model }];
  generation.parts.forEach((part, index) => {
    events.push({ type: 'part-start', index, part }, { type: 'part-end', index });
  });
  if (generation.usage !== undefined) events.push({ type: 'usage', usage: generation.usage });
  events.push({ type: 'finish', reason: generation.finish });
  return events;
}

/** Folds events into a generation, one at a time; `result` is undefined until `finish` was seen. */
export class Collector {
  #id = '';
  #model = '';
  readonly #parts: (Part | undefined)[] = [];
  #finish: FinishReason | undefined;
  #usage: Usage | undefined;

  add(event: GenerationEvent): void {
    switch (event.type) {
      case 'start':
        this.#id = event.id;
        this.#model = event.model;
        return;
      case 'part-start':
        this.#parts[event.index] = event.part;
        return;
      case 'part-delta':
        this.#append(event.index, event.field, event.delta);
        return;
      case 'part-citation': {
        const part = this.#parts[event.index];
        if (part?.type === 'text') {
          this.#parts[event.index] = {
            ...part,
            citations: [...(part.citations ?? []), event.citation],
          };
        }
        return;
      }
      case 'usage':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return;
      case 'finish':
        this.#finish ??= event.reason;
        return;
      case 'part-end':
      case 'error':
        return;
      default:
        event satisfies never;
    }
  }

  /** The parts of the answer so far, finished or not. */
  parts(): readonly Part[] {
    return this.#parts.filter((part) => part !== undefined);
  }

  /** The generation so far, or undefined while no finish was seen. */
  result(): Generation | undefined {
    if (this.#finish === undefined) return undefined;
    return {
      id: this.#id,
      model: this.#model,
      parts: this.parts(),
      finish: this.#finish,
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
    };
  }

  #append(index: number, field: 'text' | 'arguments' | 'signature', delta: string): void {
    const part = this.#parts[index];
    if (part === undefined) return;
    if (field === 'arguments') {
      if (part.type === 'tool-call') {
        this.#parts[index] = { ...part, argumentsJson: part.argumentsJson + delta };
      }
    } else if (field === 'signature') {
      if (part.type === 'reasoning') {
        this.#parts[index] = { ...part, signature: (part.signature ?? '') + delta };
      }
    } else if (part.type === 'text' || part.type === 'reasoning' || part.type === 'refusal') {
      this.#parts[index] = { ...part, text: part.text + delta };
    }
  }
}

/** Folds a whole sequence; undefined when it has no finish. */
export function collect(events: Iterable<GenerationEvent>): Generation | undefined {
  const collector = new Collector();
  for (const event of events) collector.add(event);
  return collector.result();
}

/**
 * Whether a reader of the stream has received a part of the answer with this event (R1). The start of a text
 * without content does not count: servers open it at once, and may fail before the first word.
 */
export function isContent(event: GenerationEvent): boolean {
  switch (event.type) {
    case 'part-start':
      return event.part.type !== 'text' || event.part.text !== '';
    case 'part-delta':
      return event.delta !== '';
    case 'part-citation':
    case 'finish':
      return true;
    case 'start':
    case 'part-end':
    case 'usage':
    case 'error':
      return false;
    default:
      return event satisfies never;
  }
}
