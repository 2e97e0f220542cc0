/** Tools of relayed requests and the choice among them, in the forms that the upstream knows. */
import type { JsonSource } from '../../../core/client-body.ts';
import type { FieldPath } from '../../../core/errors.ts';
import type { SchemaRules, UpstreamTraits } from '../../../core/traits.ts';
import { tryParse } from '../../../json/parse.ts';
import { type Json, type JsonObject, isObject, isArray, textOf } from '../../../json/value.ts';
import type { Notes } from '../../../core/notes.ts';
import { cleanSchema } from '../../shared/request/tool-schema.ts';
import { findUntranslatable } from '../request/read.ts';
import type { Relayed } from './edits.ts';

export const toolMembers = [
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
] as const;

export function relayTools(request: Relayed): void {
  const { traits } = request;
  const tools = request.value('tools');
  const legacy = traits.known !== true || traits.legacyFunctions === true;
  if (isArray(tools) && tools.length > 0) {
    if (!legacy) dropFunctions(request, 'the tools are offered in its place');
    return relayOffered(request, tools);
  }
  if (traits.known !== true) return;
  // An empty list, and a choice among nothing, are refused by some and mean nothing.
  for (const key of ['tools', 'tool_choice', 'parallel_tool_calls']) {
    request.drop(key, 'no tools are offered');
  }
  if (legacy) return;
  if (isOffered(request.value('functions'))) relayFunctions(request);
  else dropFunctions(request, 'no tools are offered');
}

/**
 * Whether a request offers functions in the deprecated form alone, to an upstream that would skip or refuse them. It
 * is translated, so that its calls come back in that form, unless a translation cannot carry what it asks for.
 */
export function offersLegacyFunctions(
  { skeleton, spans }: Pick<JsonSource, 'skeleton' | 'spans'>,
  traits: UpstreamTraits,
  notes: Notes,
): boolean {
  if (!spans.has('functions') || traits.legacyFunctions === true) return false;
  const { tools, functions, function_call: choice } = skeleton;
  if (!isOffered(functions) || isOffered(tools)) return false;
  if (findUntranslatable(skeleton) !== undefined) return false;
  notes.changed(['functions'], 'sent as tools: calls come back as function_call');
  if ((choice ?? 'auto') !== 'auto') {
    notes.changed(['function_call'], 'sent as tool_choice');
  }
  return true;
}

function isOffered(list: Json | undefined): boolean {
  return isArray(list) && list.length > 0;
}

function dropFunctions(request: Relayed, why: string): void {
  for (const key of ['functions', 'function_call']) request.drop(key, why);
}

function relayOffered(request: Relayed, tools: readonly Json[]): void {
  const { traits } = request;
  const custom = tools.findIndex((tool) => isObject(tool) && tool['type'] === 'custom');
  if (custom !== -1 && traits.known === true && traits.customTools !== true) {
    request.refuse(['tools', custom, 'type'], 'This model calls tools with JSON arguments only.');
  }
  if (!traits.parallelFlag) {
    request.drop('parallel_tool_calls', 'the model decides how many tools it calls at once');
  }
  const left = relayChoice(request, tools);
  if (left === 'none') return;
  if (traits.strictSchemas === false) loosen(request, tools);
  if (traits.schemaRules !== undefined) cleanTools(request, traits.schemaRules, left);
}

/** The tools that stay, by their indexes; `none` where they are not offered at all. */
type Left = 'none' | ReadonlySet<number> | undefined;

function relayChoice(request: Relayed, tools: readonly Json[]): Left {
  const { known, toolChoice, allowedTools, anyToolWord } = request.traits;
  const choice = request.value('tool_choice');
  if (isObject(choice) && choice['type'] === 'allowed_tools') {
    const narrows = known === true && allowedTools !== true;
    return narrows ? relayAllowed(request, choice, tools) : undefined;
  }
  if (!toolChoice) return withoutChoice(request, choice);
  if (choice === 'any' && known === true && anyToolWord !== true) {
    request.change(['tool_choice'], 'required', 'sent as required: this API calls it so');
  }
  return undefined;
}

/** For a model that always chooses by itself. */
function withoutChoice(request: Relayed, choice: Json | undefined): Left {
  const held = choice === 'none';
  for (const key of held ? ['tools', 'tool_choice', 'parallel_tool_calls'] : ['tool_choice']) {
    if (request.source.spans.has(key)) request.edits.push({ path: [key], text: undefined });
  }
  if (held) {
    const why = 'the tools are not sent: the model does not support tool_choice none';
    for (const key of ['tools', 'tool_choice']) request.notes.changed([key], why);
    return 'none';
  }
  if (choice !== undefined && choice !== 'auto') {
    request.notes.lost(['tool_choice'], 'the model chooses by itself');
  }
  return undefined;
}

/** Only those that are allowed are offered, which comes to the same. */
function relayAllowed(request: Relayed, choice: JsonObject, tools: readonly Json[]): Left {
  const { allowed_tools: allowed } = choice;
  const list = isObject(allowed) && isArray(allowed['tools']) ? allowed['tools'] : [];
  const names = new Set(list.map(nameOf));
  const left = new Set<number>();
  tools.forEach((tool, i) => {
    if (names.has(nameOf(tool))) left.add(i);
    else request.edits.push({ path: ['tools', i], text: undefined });
  });
  if (left.size < tools.length)
    request.notes.changed(['tools'], 'only those that are allowed are offered');
  const mode = isObject(allowed) && allowed['mode'] === 'required' ? 'required' : undefined;
  const demanded = mode !== undefined && request.traits.toolChoice;
  request.edits.push({ path: ['tool_choice'], text: demanded ? '"required"' : undefined });
  const why = 'only the allowed tools are offered';
  if (mode !== undefined && !demanded)
    request.notes.lost(['tool_choice'], 'the model chooses by itself');
  else request.notes.changed(['tool_choice'], why);
  return left;
}

function nameOf(tool: Json): Json | undefined {
  if (!isObject(tool)) return undefined;
  const named = tool[textOf(tool['type']) || 'function'];
  return isObject(named) ? named['name'] : tool['name'];
}

/** The deprecated form as tools, for a vendor that does not know it, in a request that is relayed. */
function relayFunctions(request: Relayed): void {
  const { traits, source } = request;
  const { functions } = source.value;
  if (!isArray(functions)) return;
  const choice = request.value('function_call');
  request.edits.push({ path: ['functions'], text: undefined });
  const held = choice === 'none' && !traits.toolChoice;
  if (!held) {
    const tools = functions.map((each) => {
      const definition = isObject(each) ? each : {};
      return { type: 'function', function: cleanFunction(definition, traits.schemaRules) };
    });
    request.put(['tools'], tools);
  }
  request.notes.changed(['functions'], 'sent as tools: calls come back as tool_calls');
  if (choice === undefined) return;
  request.edits.push({ path: ['function_call'], text: undefined });
  if (choice === 'auto' || held) return;
  if (!traits.toolChoice) {
    request.notes.lost(['function_call'], 'the model chooses by itself');
    return;
  }
  const named = isObject(choice)
    ? { type: 'function', function: { name: choice['name'] ?? null } }
    : choice;
  request.put(['tool_choice'], named);
  request.notes.changed(['function_call'], 'sent as tool_choice');
}

function cleanFunction(definition: JsonObject, rules: SchemaRules | undefined): JsonObject {
  const { parameters } = definition;
  if (rules === undefined || !isObject(parameters)) return definition;
  return { ...definition, parameters: cleanSchema(parameters, rules).schema };
}

/** Learned of a model that refuses the promise. */
function loosen(request: Relayed, tools: readonly Json[]): void {
  tools.forEach((tool, i) => {
    const definition = isObject(tool) ? tool['function'] : undefined;
    if (!isObject(definition) || definition['strict'] !== true) return;
    const path = ['tools', i, 'function', 'strict'];
    request.edits.push({ path, text: undefined });
    request.notes.lost(path, 'the model does not enforce this schema');
  });
}

function cleanTools(request: Relayed, rules: SchemaRules, left: Left): void {
  const { source } = request;
  if (rules === 'resolved' && !mayNeedCleaning(source)) return;
  const tools = wholeTools(source);
  for (const [i, tool] of tools.entries()) {
    const definition = isObject(tool) ? tool['function'] : undefined;
    const parameters = isObject(definition) ? definition['parameters'] : undefined;
    if (!isObject(parameters) || (left instanceof Set && !left.has(i))) continue;
    const { schema, removed } = cleanSchema(parameters, rules);
    if (JSON.stringify(schema) === JSON.stringify(parameters)) continue;
    const path: FieldPath = ['tools', i, 'function', 'parameters'];
    const why =
      removed.length > 0
        ? `the model knows no ${removed.join(', ')}`
        : 'the schema is rewritten with the keywords that the model knows';
    request.change(path, schema, why);
  }
}

const telling = /"(?:\$ref|\$dynamicRef|const|object|properties)"/g;

/** Scans the text, since most schemas need no cleaning and parsing them costs more than all else. */
function mayNeedCleaning(source: JsonSource): boolean {
  let withoutProperties = 0;
  for (const [word] of bytesOfTools(source).toString('latin1').matchAll(telling)) {
    // An object without `properties` is refused by some.
    if (word === '"object"') withoutProperties += 1;
    else if (word === '"properties"') withoutProperties -= 1;
    else return true;
  }
  return withoutProperties > 0;
}

function bytesOfTools(source: JsonSource): Buffer {
  const { start = 0, end = 0 } = source.spans.get('tools') ?? {};
  return source.bytes.subarray(start, end);
}

/** With their schemas, without a parse of the messages. */
function wholeTools(source: JsonSource): readonly Json[] {
  const tools = !source.unambiguous
    ? source.value['tools']
    : tryParse(bytesOfTools(source).toString('utf8'));
  return isArray(tools) ? tools : [];
}
