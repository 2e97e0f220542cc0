/**
 * How OpenAI's chat models frame a prompt, after the recipe that OpenAI publishes (cookbook, "How to count tokens with
 * tiktoken"): texts to be tokenised, and constants. Nested schemas, which the recipe omits, are counted the same way
 * level by level.
 */
import type { Countable, Medium } from '../../../core/description.ts';
import type { ModelTokenizer } from '../../../core/provider.ts';
import { type Json, type JsonObject, isObject, textOf } from '../../../json/value.ts';
import { mediumOf } from '../../shared/body/prompt.ts';

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
export function chatCountable(body: JsonObject, tokenizer: ModelTokenizer): Countable {
  return new Recipe(tokenizer).read(body);
}

class Recipe {
  readonly #tokenizer: ModelTokenizer;
  readonly #texts: string[] = [];
  readonly #media: Medium[] = [];
  #constant = answerTokens;

  constructor(tokenizer: ModelTokenizer) {
    this.#tokenizer = tokenizer;
  }

  read(body: JsonObject): Countable {
    for (const message of listOf(body['messages'])) {
      if (isObject(message)) this.#message(message);
    }
    const tools = listOf(body['tools']).filter(isObject);
    for (const tool of tools) this.#tool(tool);
    // What tools were called before.
    for (const definition of listOf(body['functions'])) {
      if (isObject(definition)) this.#texts.push(JSON.stringify(definition));
    }
    if (tools.length > 0) this.#constant += functionsEndTokens;
    const format = body['response_format'];
    if (isObject(format) && format['type'] === 'json_schema') {
      this.#texts.push(JSON.stringify(format['json_schema']));
    }
    return { texts: this.#texts, media: this.#media, constant: this.#constant };
  }

  #text(value: Json | undefined): void {
    if (typeof value === 'string' && value !== '') this.#texts.push(value);
  }

  #message(message: JsonObject): void {
    this.#constant += messageTokens;
    this.#text(message['role']);
    if (typeof message['name'] === 'string') this.#constant += nameTokens;
    this.#text(message['name']);
    this.#content(message['content']);
    this.#text(message['refusal']);
    for (const call of [...listOf(message['tool_calls']), message['function_call']]) {
      if (isObject(call)) this.#call(call);
    }
  }

  #content(content: Json | undefined): void {
    this.#text(content);
    for (const part of listOf(content)) {
      if (!isObject(part)) continue;
      const medium = mediumOf(part);
      if (medium !== undefined) this.#media.push(medium);
      this.#text(part['text']);
      this.#text(part['refusal']);
    }
  }

  #call(call: JsonObject): void {
    this.#constant += callTokens;
    const called = ['function', 'custom'].map((key) => call[key]).find(isObject) ?? call;
    this.#text(called['name']);
    this.#text(called['arguments']);
    this.#text(called['input']);
  }

  #tool(tool: JsonObject): void {
    this.#constant += this.#tokenizer.functionTokens;
    const { function: declared } = tool;
    if (!isObject(declared)) {
      this.#texts.push(JSON.stringify(tool));
      return;
    }
    const { name, description, parameters } = declared;
    this.#texts.push(`${textOf(name)}:${withoutDot(textOf(description))}`);
    if (isObject(parameters)) this.#properties(parameters);
  }

  #properties(schema: JsonObject): void {
    const { properties, $defs, definitions } = schema;
    for (const named of [properties, $defs, definitions]) {
      const entries = isObject(named) ? Object.entries(named) : [];
      if (entries.length > 0) this.#constant += propertiesTokens;
      for (const [key, value] of entries) {
        this.#property(key, isObject(value) ? value : {});
      }
    }
    this.#rest(schema);
  }

  #property(key: string, schema: JsonObject): void {
    this.#constant += propertyTokens;
    const choices = listOf(schema['enum']);
    if (choices.length > 0) this.#constant += enumTokens;
    for (const choice of choices) {
      this.#constant += enumItemTokens;
      this.#text(typeof choice === 'string' ? choice : JSON.stringify(choice));
    }
    const type = schema['type'] === undefined ? '' : typeText(schema['type']);
    this.#texts.push(`${key}:${type}:${withoutDot(textOf(schema['description']))}`);
    this.#properties(schema);
  }

  /** Items, alternatives and bounds: what the recipe does not know counts as it is. */
  #rest(schema: JsonObject): void {
    for (const [key, value] of Object.entries(schema)) {
      if (countedMembers.has(key)) continue;
      if (key === 'items' && isObject(value)) this.#property('', value);
      else this.#texts.push(`${key}:${JSON.stringify(value)}`);
    }
  }
}

/** Members of a schema that are counted above, or that the prompt does not show. */
const countedMembers: ReadonlySet<string> = new Set([
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

function withoutDot(text: string): string {
  return text.endsWith('.') ? text.slice(0, -1) : text;
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
