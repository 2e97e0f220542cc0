/**
 * The grammar of tool calls: names as listed, arguments as the tool's schema. What a grammar cannot
 * hold of a schema is the model's to keep, unless the tool is strict: then it was refused.
 */
import { GrammarRules, literal, oneOf } from './grammar.ts';
import { schemaRule } from './schema-grammar.ts';
import { callClosing, callOpening } from './tool-scanner.ts';
import type { TemplateTool, ToolOrigin, ToolUse } from './tools.ts';

/** A rule for what stands between the tags, the closing tag included. */
function callBody(rules: GrammarRules, tools: ToolUse): string {
  const calls = tools.offered.map((tool, index) => {
    const opening = literal(`{"name": "${tool.function.name}", "arguments": `);
    return rules.add(`${opening} ${argumentsRule(rules, tool, tools.origins[index])} "}"`);
  });
  return `(${oneOf(calls)}) ${literal(`\n${callClosing}`)}`;
}

/** One or more calls, from the opening tag on. */
export function callsRule(rules: GrammarRules, tools: ToolUse): string {
  const call = rules.add(`${literal(`${callOpening}\n`)} ${callBody(rules, tools)}`);
  return rules.add(tools.parallel ? String.raw`${call} ("\n" ${call})*` : call);
}

/** For a call that the model began by itself: all behind the opening tag. */
export function openCallGrammar(tools: ToolUse): string {
  const rules = new GrammarRules();
  return rules.text(String.raw`"\n"? ${callBody(rules, tools)}`);
}

function argumentsRule(rules: GrammarRules, tool: TemplateTool, origin?: ToolOrigin): string {
  const { parameters } = tool.function;
  if (parameters === undefined || Object.keys(parameters).length === 0) return 'object';
  return schemaRule(
    { type: 'object', ...parameters },
    { rules, path: `${origin?.path}.function.parameters`, strict: origin?.strict === true },
  );
}
