/** What of a Responses request the writers of other dialects look for: members without a canonical slot, and grammars. */
import type { Extras, Tool } from '../../core/conversation.ts';
import { type Notes, pathOf } from '../../core/notes.ts';
import { isObject } from '../../json/value.ts';

/** The members that another API may have as well; absent where they say what it does anyway. */
interface ResponsesOptions {
  readonly verbosity?: string;
  readonly serviceTier?: string;
}

export function responsesOptions(extras: Extras): ResponsesOptions {
  const { text, service_tier: tier } = extras['openai-responses'] ?? {};
  const verbosity = isObject(text) ? text['verbosity'] : undefined;
  return {
    ...(typeof verbosity === 'string' && verbosity !== 'medium' ? { verbosity } : {}),
    ...(typeof tier === 'string' && tier !== 'auto'
      ? { serviceTier: tier === 'ultrafast' ? 'fast' : tier }
      : {}),
  };
}

/** A grammar that the input of a free-text tool is held to. */
export interface Grammar {
  readonly syntax: string;
  readonly definition: string;
}

export function grammarOf({ extras }: Tool): Grammar | undefined {
  const format = extras?.['openai-responses']?.['format'];
  if (!isObject(format)) return undefined;
  const { syntax, definition } = format;
  return typeof syntax === 'string' && typeof definition === 'string'
    ? { syntax, definition }
    : undefined;
}

/** The description of a tool, with its grammar where the model can only be asked to keep to it. */
export function describedTool(tool: Tool, notes: Notes): string | undefined {
  const grammar = tool.freeText === true ? grammarOf(tool) : undefined;
  if (grammar === undefined) return tool.description;
  const path = [...pathOf(tool, ['tools']), 'format'];
  notes.changed(path, 'the model is asked to keep to the grammar, and not held to it');
  const { syntax, definition } = grammar;
  const rule = `The input must match this ${syntax} grammar:\n${definition}`;
  return tool.description === undefined ? rule : `${tool.description}\n\n${rule}`;
}
