/** Arguments of tool calls that are no JSON object (wire/translation.md §3.6; B55, F59). */
import type { JsonObject } from '../core/conversation.ts';
import { isObject } from '../core/json.ts';
import { stringEnd, tryParseInner, tryParseInnerObject } from '../core/json-inner.ts';

export interface ToolInput {
  readonly input: JsonObject;
  /** The text was no object and had to be wrapped. */
  readonly wrapped: boolean;
}

/**
 * Nothing becomes `{}`, other values `{value}`, and what is no JSON, or too deep or long to be parsed,
 * `{_raw}`: no turn is bricked.
 */
export function toolInput(argumentsJson: string): ToolInput {
  if (argumentsJson.trim() === '') return { input: {}, wrapped: false };
  const parsed = tryParseInner(argumentsJson);
  if (isObject(parsed)) return { input: parsed, wrapped: false };
  return {
    input: parsed === undefined ? { _raw: argumentsJson } : { value: parsed },
    wrapped: true,
  };
}

/** The same as text, in the words of the model where they are an object. */
export function wrappedArguments(argumentsJson: string): string {
  const { input, wrapped } = toolInput(argumentsJson);
  return wrapped ? JSON.stringify(input) : argumentsJson;
}

/**
 * Arguments that the token limit cut off, without their incomplete last member, as the native service
 * shows them; undefined when they do not begin like an object, or are too deep or long to be parsed.
 */
export function truncatedInput(argumentsJson: string): JsonObject | undefined {
  const open: string[] = [];
  let safeEnd: number | undefined;
  for (let i = 0; i < argumentsJson.length; i++) {
    const char = argumentsJson[i] ?? '';
    if (char === '"') i = stringEnd(argumentsJson, i + 1);
    else if (char === '{' || char === '[') {
      open.push(char === '{' ? '}' : ']');
      safeEnd = i + 1;
    } else if (char === '}' || char === ']') {
      open.pop();
      safeEnd = i + 1;
    } else if (char === ',') safeEnd = i;
  }
  if (safeEnd === undefined) return undefined;
  return tryParseInnerObject(argumentsJson.slice(0, safeEnd) + open.toReversed().join(''));
}
