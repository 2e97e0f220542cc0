/**
 * How OpenAI's chat models frame a prompt, after the recipe that OpenAI publishes (cookbook, "How to
 * count tokens with tiktoken"): texts to be tokenised, and constants. Nested schemas, which the recipe
 * leaves out, are counted the same way level by level.
 */
import type { Json, JsonObject } from '../core/conversation.ts';
import { isObject } from '../core/json.ts';
import { Pace, type Steps } from '../core/steps.ts';
import type { ModelTokenizer } from '../core/tokenizer.ts';
import { mediumOf, mediumTokens } from './media.ts';

export interface Countable {
  readonly texts: readonly string[];
  /** Tokens that need no tokenizer. */
  readonly constant: number;
}

const messageTokens = 3;
const nameTokens = 1;
const answerTokens = 3;
/** A call in the history: frame, type and address of the function. */
const callTokens = 8;
const propertiesTokens = 3;
const propertyTokens = 3;
const enumTokens = -3;
const enumItemTokens = 3;
const functionsEndTokens = 12;

/** In steps, as there may be very much to count. @param body a chat-completions request. */
export function chatCountable(body: JsonObject, tokenizer: ModelTokenizer): Steps<Countable> {
  return new Recipe(tokenizer).read(body);
}

class Recipe {
  readonly #tokenizer: ModelTokenizer;
  readonly #texts: string[] = [];
  readonly #pace = new Pace();
  #constant = answerTokens;

  constructor(tokenizer: ModelTokenizer) {
    this.#tokenizer = tokenizer;
  }

  *read(body: JsonObject): Steps<Countable> {
    for (const message of listOf(body['messages'])) {
      if (isObject(message)) yield* this.#message(message);
    }
    const tools = listOf(body['tools']).filter(isObject);
    for (const tool of tools) yield* this.#tool(tool);
    // What tools were called before.
    for (const definition of listOf(body['functions'])) {
      if (isObject(definition)) this.#texts.push(JSON.stringify(definition));
      if (this.#pace.due) yield;
    }
    if (tools.length > 0) this.#constant += functionsEndTokens;
    const format = body['response_format'];
    if (isObject(format) && format['type'] === 'json_schema') {
      this.#texts.push(JSON.stringify(format['json_schema']));
    }
    return { texts: this.#texts, constant: this.#constant };
  }

  #text(value: Json | undefined): void {
    if (typeof value === 'string' && value !== '') this.#texts.push(value);
  }

  *#message(message: JsonObject): Steps<void> {
    this.#constant += messageTokens;
    this.#text(message['role']);
    if (typeof message['name'] === 'string') this.#constant += nameTokens;
    this.#text(message['name']);
    yield* this.#content(message['content']);
    this.#text(message['refusal']);
    for (const call of [...listOf(message['tool_calls']), message['function_call']]) {
      if (isObject(call)) this.#call(call);
      if (this.#pace.due) yield;
    }
  }

  *#content(content: Json | undefined): Steps<void> {
    this.#text(content);
    for (const part of listOf(content)) {
      if (!isObject(part)) continue;
      const medium = mediumOf(part);
      if (medium !== undefined) this.#constant += mediumTokens(medium, this.#tokenizer.image);
      this.#text(part['text']);
      this.#text(part['refusal']);
      if (this.#pace.due) yield;
    }
  }

  #call(call: JsonObject): void {
    this.#constant += callTokens;
    const called = ['function', 'custom'].map((key) => call[key]).find(isObject) ?? call;
    this.#text(called['name']);
    this.#text(called['arguments']);
    this.#text(called['input']);
  }

  *#tool(tool: JsonObject): Steps<void> {
    this.#constant += this.#tokenizer.functionTokens;
    const { function: declared } = tool;
    if (!isObject(declared)) {
      this.#texts.push(JSON.stringify(tool));
      return;
    }
    const { name, description, parameters } = declared;
    this.#texts.push(`${textOf(name)}:${withoutDot(textOf(description))}`);
    if (isObject(parameters)) yield* this.#properties(parameters);
  }

  *#properties(schema: JsonObject): Steps<void> {
    const { properties, $defs, definitions } = schema;
    for (const named of [properties, $defs, definitions]) {
      const entries = isObject(named) ? Object.entries(named) : [];
      if (entries.length > 0) this.#constant += propertiesTokens;
      for (const [key, value] of entries) {
        yield* this.#property(key, isObject(value) ? value : {});
      }
    }
    yield* this.#rest(schema);
  }

  *#property(key: string, schema: JsonObject): Steps<void> {
    this.#constant += propertyTokens;
    const choices = listOf(schema['enum']);
    if (choices.length > 0) this.#constant += enumTokens;
    for (const choice of choices) {
      this.#constant += enumItemTokens;
      this.#text(typeof choice === 'string' ? choice : JSON.stringify(choice));
    }
    const type = schema['type'] === undefined ? '' : typeText(schema['type']);
    this.#texts.push(`${key}:${type}:${withoutDot(textOf(schema['description']))}`);
    if (this.#pace.due) yield;
    yield* this.#properties(schema);
  }

  /** Items, alternatives and bounds: what the recipe does not know counts as it stands. */
  *#rest(schema: JsonObject): Steps<void> {
    for (const [key, value] of Object.entries(schema)) {
      if (told.has(key)) continue;
      if (key === 'items' && isObject(value)) yield* this.#property('', value);
      else this.#texts.push(`${key}:${JSON.stringify(value)}`);
    }
  }
}

/** Members of a schema that are counted above, or that the prompt does not show. */
const told: ReadonlySet<string> = new Set([
  'type',
  'description',
  'enum',
  'properties',
  '$defs',
  'definitions',
  'required',
  'additionalProperties',
  '$schema',
]);

function typeText(type: Json): string {
  return typeof type === 'string' ? type : JSON.stringify(type);
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function withoutDot(text: string): string {
  return text.endsWith('.') ? text.slice(0, -1) : text;
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
