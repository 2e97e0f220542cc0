/**
 * How the tools of a request want their calls back: under the client's own names, free text
 * unwrapped, and in the deprecated form for clients that asked in it.
 */
import type { Tool, ToolCallPart } from '../../core/conversation.ts';
import type { AnswerContext } from '../../core/dialect.ts';
import { tryParseInnerObject } from '../../core/json-inner.ts';
import { AnswerCallIds } from '../answer-call-ids.ts';
import { originalToolName } from '../tool-ids.ts';

/** Marks a tool that came in the deprecated `functions` field. */
export const legacyFunction = { legacy_function: true } as const;

export class AnsweredTools {
  readonly #tools: readonly Tool[];
  readonly #ids: AnswerCallIds;
  /** Calls are answered as `function_call`. */
  readonly legacy: boolean;

  constructor(context: AnswerContext) {
    this.#tools = context.conversation?.tools ?? [];
    this.#ids = new AnswerCallIds(context, { prefix: 'call_', anyText: true });
    this.legacy = this.#tools.some(
      (tool) => tool.extras?.['openai-chat']?.['legacy_function'] === true,
    );
  }

  /** The client's own name of the tool. */
  name(name: string): string {
    return this.#tools.length === 0 ? name : originalToolName(name, this.#tools);
  }

  /** The id to show for the upstream's: there is one, and no other call of the conversation has it. */
  id(id: string): string {
    return this.#ids.show(id);
  }

  /** Whether the client declared this tool as a `custom` one. */
  isFreeText(name: string): boolean {
    return this.#tools.some((tool) => tool.freeText === true && tool.name === name);
  }
}

/** The text of a call to a free-text tool, out of `{"input": …}`. */
export function freeTextInput(argumentsJson: string): string {
  const input = tryParseInnerObject(argumentsJson)?.['input'];
  return typeof input === 'string' ? input : argumentsJson;
}

/** Arguments are never the empty string (wire/translation.md §3.6). */
export function callArguments(part: ToolCallPart): string {
  return part.argumentsJson.trim() === '' ? '{}' : part.argumentsJson;
}

/** `chatcmpl-` and the upstream's id. */
export function answerId(upstreamId: string, context: AnswerContext): string {
  if (upstreamId === '') return context.newId('chatcmpl-');
  return upstreamId.startsWith('chatcmpl-') ? upstreamId : `chatcmpl-${upstreamId}`;
}
