/** Reads `tools`, `tool_choice` and `parallel_tool_calls`. */
import {
  type Json,
  type JsonObject,
  invalid,
  isArray,
  isObject,
  member,
  unsupported,
} from './engine-error.ts';

/** A tool as chat templates print it. */
export interface TemplateTool {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description?: string;
    readonly parameters?: JsonObject;
  };
}

/** Where a tool is in the request, and whether its arguments must keep to its schema. */
export interface ToolOrigin {
  readonly path: string;
  readonly strict: boolean;
}

/** What the model may call in this answer. */
export interface ToolUse {
  /** Shown to the model; empty when there are none or none may be called. */
  readonly offered: readonly TemplateTool[];
  /** One for each offered tool. */
  readonly origins: readonly ToolOrigin[];
  /** The answer must be a call. */
  readonly required: boolean;
  /** More than one call is allowed. */
  readonly parallel: boolean;
}

const namePattern = /^[A-Za-z0-9_-]{1,64}$/;
const noTools: ToolUse = { offered: [], origins: [], required: false, parallel: true };

/** @throws EngineError 400 that names the tool or the choice. */
export function readTools(body: JsonObject): ToolUse {
  const tools = readList(member(body, 'tools'));
  const parallelFlag = member(body, 'parallel_tool_calls');
  if (parallelFlag !== undefined && typeof parallelFlag !== 'boolean') {
    throw invalid('"parallel_tool_calls" must be a boolean.', 'parallel_tool_calls');
  }
  const choice = readChoice(member(body, 'tool_choice'));
  if (tools.length === 0) {
    if (!choice.required) return noTools;
    throw invalid('"tool_choice" asks for a call, but there are no tools.', 'tool_choice');
  }
  const chosen = chosenTools(tools, choice);
  return {
    offered: chosen.map(({ tool }) => tool),
    origins: chosen.map(({ origin }) => origin),
    required: choice.required,
    parallel: choice.single !== true && (parallelFlag ?? true),
  };
}

interface ListedTool {
  readonly tool: TemplateTool;
  readonly origin: ToolOrigin;
}

function chosenTools(tools: readonly ListedTool[], choice: Choice): readonly ListedTool[] {
  const { names } = choice;
  if (names === undefined) return tools;
  if (choice.required && names.length === 0) {
    throw invalid('"tool_choice" asks for a call, but allows no tool.', 'tool_choice');
  }
  for (const name of names) {
    if (!tools.some(({ tool }) => tool.function.name === name)) {
      throw invalid(`"tool_choice" names the tool "${name}", which is not listed.`, 'tool_choice');
    }
  }
  return tools.filter(({ tool }) => names.includes(tool.function.name));
}

interface Choice {
  readonly required: boolean;
  /** Only these may be called; absent = all. */
  readonly names?: readonly string[];
  /** Exactly one call. */
  readonly single?: boolean;
}

function readChoice(value: Json | undefined): Choice {
  switch (value) {
    case undefined:
    case 'auto':
      return { required: false };
    case 'none':
      // The surest way to have no call is not to show the tools.
      return { required: false, names: [] };
    case 'required':
    case 'any':
      return { required: true };
    default:
      return readNamedChoice(value);
  }
}

function readNamedChoice(value: Json): Choice {
  if (isObject(value) && value['type'] === 'function') {
    return { required: true, single: true, names: [readName(value)] };
  }
  const allowed = isObject(value) ? value['allowed_tools'] : undefined;
  if (isObject(value) && value['type'] === 'allowed_tools' && isObject(allowed)) {
    const list = allowed['tools'];
    if (!isArray(list)) throw invalid('"allowed_tools.tools" must be an array.', 'tool_choice');
    return { required: allowed['mode'] === 'required', names: list.map(readName) };
  }
  throw invalid('"tool_choice" has no form that is known.', 'tool_choice');
}

function readName(value: Json): string {
  const chosen = isObject(value) ? value['function'] : undefined;
  const name = isObject(chosen) ? chosen['name'] : undefined;
  if (typeof name === 'string') return name;
  throw invalid('"tool_choice" must name a function.', 'tool_choice');
}

function readList(value: Json | undefined): readonly ListedTool[] {
  if (value === undefined) return [];
  if (!isArray(value)) throw invalid('"tools" must be an array.', 'tools', 'invalid_type');
  const names = new Set<string>();
  return value.map((item, index) => {
    const path = `tools[${index}]`;
    const tool = readTool(item, path);
    if (names.has(tool.function.name)) {
      throw invalid(`The tool "${tool.function.name}" is listed twice.`, path);
    }
    names.add(tool.function.name);
    return { tool, origin: { path, strict: isStrict(item, path) } };
  });
}

function isStrict(value: Json, path: string): boolean {
  const definition = isObject(value) ? member(value, 'function') : undefined;
  const strict = isObject(definition) ? member(definition, 'strict') : undefined;
  if (strict === undefined || typeof strict === 'boolean') return strict === true;
  throw invalid('"strict" must be a boolean.', `${path}.function.strict`);
}

function readTool(value: Json, path: string): TemplateTool {
  if (!isObject(value)) throw invalid('A tool must be an object.', path, 'invalid_type');
  if (value['type'] !== 'function') {
    throw unsupported('Only tools of type "function" are supported.', `${path}.type`);
  }
  const definition = member(value, 'function');
  if (!isObject(definition)) throw invalid('A tool needs a "function".', `${path}.function`);
  const name = member(definition, 'name');
  if (typeof name !== 'string' || !namePattern.test(name)) {
    const message = 'A tool name has 1 to 64 letters, digits, underscores or hyphens.';
    throw invalid(message, `${path}.function.name`);
  }
  const description = member(definition, 'description');
  const parameters = member(definition, 'parameters');
  if (parameters !== undefined && !isObject(parameters)) {
    throw invalid('"parameters" must be a JSON Schema object.', `${path}.function.parameters`);
  }
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' ? { description } : {}),
      ...(parameters === undefined ? {} : { parameters }),
    },
  };
}
