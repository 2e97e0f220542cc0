/**
 * Which grammar holds the next token. An answer may be held from its first word (a response format, a
 * call that is requested), or only inside the calls that the model begins by itself. Reasoning is free.
 */
import { unsupported } from './engine-error.ts';
import { GrammarRules, literal, oneOf, schemaRule } from './schema-grammar.ts';
import type { OutputFormat } from './request.ts';
import type { ToolUse, TemplateTool, ToolOrigin } from './tools.ts';
import { callClosing, callOpening } from './scanners.ts';

/** The grammars of a request, as texts. */
export interface AnswerGrammars {
  /** For the whole answer after the reasoning. */
  readonly whole?: string;
  /** For a call, from after its opening tag. */
  readonly call?: string;
}

/**
 * For models whose calls are not JSON: only what is not a call can be held.
 * @throws EngineError 400 where a call would have to be, or might be.
 */
export function grammarsWithXml(tools: ToolUse, format: OutputFormat | undefined): AnswerGrammars {
  const why = 'this model writes its calls in its own form, which a grammar cannot enforce';
  if (tools.required) {
    throw unsupported(`A call cannot be forced: ${why}. Use "auto".`, 'tool_choice');
  }
  const strict = tools.origins.find((origin) => origin.strict);
  if (strict !== undefined) {
    throw unsupported(`A tool cannot be strict: ${why}.`, `${strict.path}.function.strict`);
  }
  if (tools.offered.length === 0) return grammarsOf(tools, format);
  if (format === undefined) return {};
  throw unsupported(`A format together with tools cannot be enforced: ${why}.`, format.path);
}

/** @throws EngineError 400 that names the part of a schema that cannot be enforced. */
export function grammarsOf(tools: ToolUse, format: OutputFormat | undefined): AnswerGrammars {
  if (tools.required) {
    const rules = new GrammarRules();
    return { whole: rules.text(callsRule(rules, tools)) };
  }
  if (format !== undefined) {
    const rules = new GrammarRules();
    const { schema, path } = format;
    const value =
      schema === undefined ? 'object' : schemaRule(schema, { rules, path, strict: true });
    const roots = tools.offered.length === 0 ? [value] : [value, callsRule(rules, tools)];
    return { whole: rules.text(oneOf(roots)) };
  }
  return tools.offered.length === 0 ? {} : { call: openCallGrammar(tools) };
}

/** Makes a fresh state of a grammar, at its beginning. */
export type MakeState<G> = () => G;

/** Follows an answer and knows the state that its next token must fit. */
export class GrammarGate<G> {
  readonly #call: MakeState<G> | undefined;
  readonly #whole: G | undefined;
  #current: G | undefined;

  constructor(make: { readonly whole?: MakeState<G>; readonly call?: MakeState<G> }) {
    this.#whole = make.whole?.();
    this.#call = make.call;
  }

  get current(): G | undefined {
    return this.#current;
  }

  /** The answer proper begins: at once, or when the reasoning is over. */
  answerBegins(): void {
    this.#current = this.#whole;
  }

  /**
   * The model began a call; `rest` is what it wrote after the tag. True when a grammar holds the
   * rest of the call. A tag that shares its token with more than white space is too late to hold.
   */
  callBegins(rest: string): boolean {
    if (this.#current !== undefined) return true;
    if (this.#call === undefined || rest !== '') return false;
    this.#current = this.#call();
    return true;
  }

  /** What follows the call is free again, unless the whole answer is held. */
  callEnds(): void {
    this.#current = this.#whole;
  }
}

// The grammar of tool calls: names as listed, arguments as the tool's schema. What a grammar cannot
// hold of a schema is the model's to keep, unless the tool is strict: then it was refused.

/** A rule for what is between the tags, the closing tag included. */
function callBody(rules: GrammarRules, tools: ToolUse): string {
  const calls = tools.offered.map((tool, index) => {
    const opening = literal(`{"name": "${tool.function.name}", "arguments": `);
    return rules.add(`${opening} ${argumentsRule(rules, tool, tools.origins[index])} "}"`);
  });
  return `(${oneOf(calls)}) ${literal(`\n${callClosing}`)}`;
}

/** One or more calls, from the opening tag on. */
function callsRule(rules: GrammarRules, tools: ToolUse): string {
  const call = rules.add(`${literal(`${callOpening}\n`)} ${callBody(rules, tools)}`);
  return rules.add(tools.parallel ? String.raw`${call} ("\n" ${call})*` : call);
}

/** For a call that the model began by itself: all text after the opening tag. */
function openCallGrammar(tools: ToolUse): string {
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
