/** Arguments of tool calls that are no JSON object (wire/translation.md §3.6; B55, F59). */
import type { JsonObject } from '../core/conversation.ts';
import { isObject, tryParse, tryParseObject } from '../core/json.ts';

export interface ToolInput {
  readonly input: JsonObject;
  /** The text was no object and had to be wrapped. */
  readonly wrapped: boolean;
}

/** Nothing becomes `{}`, other values `{value}`, and what is no JSON `{_raw}`: no turn is bricked. */
export function toolInput(argumentsJson: string): ToolInput {
  if (argumentsJson.trim() === '') return { input: {}, wrapped: false };
  const parsed = tryParse(argumentsJson);
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
 * shows them; undefined when they do not begin like an object.
 */
export function truncatedInput(argumentsJson: string): JsonObject | undefined {
  let safe: string | undefined;
  let open = '';
  for (let i = 0; i < argumentsJson.length; i++) {
    const char = argumentsJson[i] ?? '';
    if (char === '"') i = stringEnd(argumentsJson, i);
    else if (char === '{' || char === '[') {
      open = (char === '{' ? '}' : ']') + open;
      safe = argumentsJson.slice(0, i + 1) + open;
    } else if (char === '}' || char === ']') {
      open = open.slice(1);
      safe = argumentsJson.slice(0, i + 1) + open;
    } else if (char === ',') {
      safe = argumentsJson.slice(0, i) + open;
    }
  }
  return safe === undefined ? undefined : tryParseObject(safe);
}

function stringEnd(text: string, start: number): number {
  let i = start + 1;
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}
