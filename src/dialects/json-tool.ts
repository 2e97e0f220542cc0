/**
 * Structured output from models that have none: a forced tool whose input is the answer
 * (wire/translation.md §1.7). The request's writer offers it, and the answer's writer shows its input
 * as text (answer-shape.ts), so that nobody sees a call that nobody asked for.
 */
import type { Conversation, JsonObject } from '../core/conversation.ts';

/** Its name in the requests of all gateways that do this. */
export const jsonToolName = 'json';

export interface JsonTool {
  readonly name: typeof jsonToolName;
  readonly description: string;
  readonly schema: JsonObject;
}

/**
 * The tool that stands for the asked format; undefined where it cannot: beside tools of the client's
 * own, beside thinking (nothing can be forced then), and for answers that are no object.
 */
export function jsonTool({ output, tools }: Conversation, thinks: boolean): JsonTool | undefined {
  if (thinks || output.type !== 'json' || output.schema === undefined) return undefined;
  const { schema } = output;
  if (tools.length > 0 || (schema['type'] ?? 'object') !== 'object') return undefined;
  return {
    name: jsonToolName,
    description: output.description ?? 'Answers the user. Its input is the whole answer.',
    schema: { ...schema, type: 'object', properties: schema['properties'] ?? {} },
  };
}

/** Whether calls of that name may be the answer: the client itself offered no tool at all. */
export function answersByJsonTool({ output, tools }: Conversation): boolean {
  return output.type === 'json' && output.schema !== undefined && tools.length === 0;
}

/** Whether the client asked for any thinking. */
export function asksToThink({ reasoning }: Conversation): boolean {
  const { effort, budgetTokens, adaptive } = reasoning ?? {};
  if (effort !== undefined) return effort !== 'none';
  return budgetTokens !== undefined || adaptive === true;
}
