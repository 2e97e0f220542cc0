/** The answers of a scripted model, in no particular dialect. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';

/** What an upstream speaks. */
export type Wire = Dialect | 'responses';
export const wires: readonly Wire[] = ['chat', 'messages', 'responses'];

export interface AgentCall {
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
  /** Of a tool that takes a free text, `input.input`: a Responses upstream calls it as such. */
  readonly free?: true;
}

/** One answer of the model, in no particular dialect. */
export interface Turn {
  readonly thinking?: string;
  /** Of a messages upstream only. */
  readonly signature?: string;
  readonly text?: string;
  readonly calls?: readonly AgentCall[];
}

/** What every answer reports. */
export const reported = { fresh: 1200, cacheRead: 3000, cacheWrite: 0, output: 77 } as const;
