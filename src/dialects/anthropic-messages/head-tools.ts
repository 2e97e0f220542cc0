/** Checks tool definitions and the choice among them (wire/messages.md §5; B56, B57). */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { type FieldPath, invalidRequest } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import {
  isPresent,
  readArray,
  readBoolean,
  readObject,
  readString,
  required,
  requireString,
  wrongType,
} from './fields.ts';

const maxTools = 512;
/** Dots and colons come with tool servers; an upstream that refuses them gets another name (B7). */
const toolName = /^[a-zA-Z0-9_.:-]{1,128}$/;

/** @throws GatewayError `invalid_request` with the path of the first fault. */
export function checkTools(body: JsonObject): void {
  const tools = readArray({ of: body, key: 'tools' }) ?? [];
  if (tools.length > maxTools) {
    throw invalidRequest(`List should have at most ${maxTools} items`, ['tools']);
  }
  const names = new Set<string>();
  let allKnown = true;
  tools.forEach((tool, i) => {
    const name = checkTool(tool, ['tools', i]);
    if (name === undefined) {
      allKnown = false;
      return;
    }
    if (names.has(name)) throw invalidRequest('Tool names must be unique.', ['tools', i, 'name']);
    names.add(name);
  });
  checkChoice(body, { names, allKnown, none: tools.length === 0 });
}

/** A tool with `type: "custom"` or without a type is the client's; others are defined elsewhere. */
export function isClientTool(tool: JsonObject): boolean {
  return !isPresent(tool['type']) || tool['type'] === 'custom';
}

/** The tool's name; undefined for a kind that brings several tools or names of its own. */
function checkTool(tool: Json, path: FieldPath): string | undefined {
  if (!isObject(tool)) throw wrongType(path, 'a valid dictionary');
  readString({ of: tool, key: 'type', at: path });
  if (!isClientTool(tool)) return readString({ of: tool, key: 'name', at: path });
  const name = requireString({ of: tool, key: 'name', at: path });
  if (!toolName.test(name)) {
    throw invalidRequest("String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", [...path, 'name']);
  }
  readString({ of: tool, key: 'description', at: path });
  const schema = readObject({ of: tool, key: 'input_schema', at: path });
  // The placeholder that keeps tool search alive has no schema (clients.md §2.7).
  const deferred = readBoolean({ of: tool, key: 'defer_loading', at: path }) === true;
  if (schema === undefined && !deferred) throw required([...path, 'input_schema']);
  return name;
}

interface KnownTools {
  readonly names: ReadonlySet<string>;
  readonly allKnown: boolean;
  readonly none: boolean;
}

function checkChoice(body: JsonObject, tools: KnownTools): void {
  const choice = readObject({ of: body, key: 'tool_choice' });
  if (choice === undefined) return;
  const at = ['tool_choice'];
  readBoolean({ of: choice, key: 'disable_parallel_tool_use', at });
  const type = requireString({ of: choice, key: 'type', at });
  switch (type) {
    case 'auto':
    case 'none':
      return;
    case 'any':
    case 'tool':
      if (tools.none) {
        throw invalidRequest('tool_choice may only be specified while providing tools', at);
      }
      if (type === 'tool') checkNamed(requireString({ of: choice, key: 'name', at }), tools);
      return;
    default:
      throw wrongType([...at, 'type'], "'auto', 'any', 'tool' or 'none'");
  }
}

function checkNamed(name: string, { names, allKnown }: KnownTools): void {
  if (!allKnown || names.has(name)) return;
  throw invalidRequest(`Tool '${name.slice(0, 128)}' not found in provided tools`, [
    'tool_choice',
    'name',
  ]);
}
