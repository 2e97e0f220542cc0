/**
 * The grammar (GBNF) of an answer that must be a tool call: names as listed, arguments as the
 * properties of the tool's schema, each at most once. Inside a property any value of its type goes;
 * deeper schema rules are the model's to keep.
 */
import { isArray, isObject, type Json, type JsonObject } from './json.ts';
import type { TemplateTool, ToolUse } from './tools.ts';

const jsonRules = String.raw`
object ::= "{" space (member ("," space member)*)? "}"
member ::= string ":" space value
array ::= "[" space (value ("," space value)*)? "]"
value ::= object | array | string | number | boolean | "null"
boolean ::= "true" | "false"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
space ::= " "?
`;

/** For `tool_choice` required or named. */
export function toolCallGrammar(tools: ToolUse): string {
  const names = tools.offered.map((_tool, index) => `call${index}`).join(' | ');
  const root = tools.parallel ? String.raw`call ("\n" call)*` : 'call';
  const calls = tools.offered.map(callRules).join('\n');
  return `root ::= ${root}\ncall ::= ${names}\n${calls}\n${jsonRules}`;
}

function callRules(tool: TemplateTool, index: number): string {
  const opening = literal(`<tool_call>\n{"name": "${tool.function.name}", "arguments": `);
  const rule = `call${index} ::= ${opening} arguments${index} ${literal('}\n</tool_call>')}`;
  return `${rule}\narguments${index} ::= ${argumentsRule(tool.function.parameters)}`;
}

/** Required properties first, in the schema's order, then each optional one or not. */
function argumentsRule(schema: JsonObject | undefined): string {
  const properties = schema?.['properties'];
  if (!isObject(properties) || Object.keys(properties).length === 0) return 'object';
  const required = schema?.['required'];
  const isRequired = (name: string): boolean => isArray(required) && required.includes(name);
  const names = Object.keys(properties);
  const member = (name: string): string =>
    `${literal(JSON.stringify(name))} ":" space ${valueRule(properties[name])}`;
  const needed = names.filter(isRequired).map(member);
  const optional = names.filter((name) => !isRequired(name)).map(member);
  if (needed.length === 0) {
    const any = optional.map((rule) => `(${rule})`).join(' | ');
    return `"{" space ((${any}) ("," space (${any}))*)? "}"`;
  }
  const more = optional.map((rule) => ` ("," space ${rule})?`).join('');
  return `"{" space ${needed.join(' "," space ')}${more} "}"`;
}

function valueRule(schema: Json | undefined): string {
  if (!isObject(schema)) return 'value';
  const choices = schema['enum'];
  if (isArray(choices) && choices.length > 0) {
    return `(${choices.map((choice) => literal(JSON.stringify(choice))).join(' | ')})`;
  }
  const type = schema['type'];
  switch (type) {
    case 'string':
    case 'number':
    case 'integer':
    case 'boolean':
    case 'array':
    case 'object':
      return type;
    default:
      return 'value';
  }
}

/** Any text as a GBNF literal. */
function literal(text: string): string {
  const escaped = text.replace(/[\\"\n\r]/g, (character) => escapes[character] ?? character);
  return `"${escaped}"`;
}

const escapes: { readonly [character: string]: string } = {
  '\\': String.raw`\\`,
  '"': String.raw`\"`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
};
