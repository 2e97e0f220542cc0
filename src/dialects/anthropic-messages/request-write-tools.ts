/** Tools and the choice among them (wire/translation.md §1.5, §1.6). */
import type { Conversation, JsonObject, Tool, ToolChoice } from '../../core/conversation.ts';
import { unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { allowedToolName } from '../tool-ids.ts';
import { maxToolName, type Writing } from './request-write-blocks.ts';
import type { JsonMembers } from './fields.ts';
import { strictSchema } from './schema-subset.ts';

/** `tools` and `tool_choice`, each only where there is something to say. */
export function writeTools(conversation: Conversation, writing: Writing): JsonObject {
  const offered = offeredTools(conversation, writing);
  if (offered.length === 0) return {};
  const choice = writeChoice(conversation, writing);
  return {
    tools: offered.map((tool, i) => writeTool(tool, i, writing)),
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
}

/** A choice among some tools offers only those: this dialect cannot narrow it otherwise. */
function offeredTools({ tools, toolChoice }: Conversation, { notes }: Writing): readonly Tool[] {
  if (toolChoice?.type !== 'allowed') return tools;
  const { names } = toolChoice;
  notes.changed(['tool_choice'], 'only the allowed tools are offered');
  return tools.filter((tool) => names.includes(tool.name));
}

/** @throws GatewayError `invalid_request` for tools that another provider defines or runs. */
function writeTool(tool: Tool, i: number, writing: Writing): JsonMembers {
  const { marks } = writing;
  if (tool.native !== undefined) {
    if (tool.native.dialect === 'anthropic-messages') return { ...tool.native.value };
    throw unsupported(['tools', i, 'type'], 'This model has no tool of this type.');
  }
  const written: JsonMembers = {
    name: allowedToolName(tool.name, maxToolName),
    ...(tool.description === undefined || tool.description === ''
      ? {}
      : { description: tool.description }),
    input_schema: objectSchema(tool.schema, i),
    ...tool.extras?.['anthropic-messages'],
  };
  if (tool.strict === true) writeStrict(written, i, writing);
  return marks.prefix(written, tool);
}

function writeStrict(written: JsonMembers, i: number, { traits, notes }: Writing): void {
  const { input_schema: schema } = written;
  if (traits.responseFormat !== 'schema' || !isObject(schema)) {
    notes.lost(['tools', i, 'strict'], 'the model does not enforce schemas');
    return;
  }
  const { schema: subset, moved } = strictSchema(schema);
  written['input_schema'] = subset;
  written['strict'] = true;
  if (moved.length > 0) {
    notes.changed(['tools', i], `only described in the schema: ${moved.join(', ')}`);
  }
}

function objectSchema(schema: JsonObject, i: number): JsonObject {
  const { type } = schema;
  if (type === 'object') return schema;
  if (type !== undefined && type !== null) {
    throw unsupported(
      ['tools', i, 'function', 'parameters'],
      'The parameters of a tool must be the schema of an object.',
    );
  }
  return { ...schema, type: 'object', properties: schema['properties'] ?? {} };
}

function writeChoice(
  { toolChoice, parallelTools }: Conversation,
  { traits, notes }: Writing,
): JsonObject | undefined {
  const single = parallelTools === false;
  if (!traits.toolChoice) {
    if (single || (toolChoice !== undefined && toolChoice.type !== 'auto')) {
      notes.lost(['tool_choice'], 'the model chooses by itself');
    }
    return undefined;
  }
  const choice = choiceOf(toolChoice, single);
  if (choice === undefined || !single) return choice;
  if (choice['type'] === 'none') {
    notes.lost(['parallel_tool_calls'], 'no tool may be called');
    return choice;
  }
  if (traits.parallelFlag) return { ...choice, disable_parallel_tool_use: true };
  notes.lost(['parallel_tool_calls'], 'the model may call several tools');
  return choice;
}

/** Without a choice, the limit to one call needs one to stand in. */
function choiceOf(choice: ToolChoice | undefined, single: boolean): JsonObject | undefined {
  switch (choice?.type) {
    case undefined:
      return single ? { type: 'auto' } : undefined;
    case 'auto':
    case 'none':
      return { type: choice.type };
    case 'required':
      return { type: 'any' };
    case 'tool':
      return { type: 'tool', name: allowedToolName(choice.name, maxToolName) };
    case 'allowed':
      return { type: choice.mode === 'required' ? 'any' : 'auto' };
    default:
      return choice satisfies never;
  }
}
