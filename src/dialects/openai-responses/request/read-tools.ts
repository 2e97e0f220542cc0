/**
 * Reads tools of a Responses request: those of `tools`, and those that items add (`additional_tools`,
 * `tool_search_output`). Names in namespaces are flat in the canonical form. The extras have the client's names.
 */
import type { Tool, ToolChoice } from '../../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { type Notes, withPath } from '../../../core/notes.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import { badValue, isPresent, missing, wrongType } from '../fields.ts';
import { freeTextSchema, itemExtras, typedTools, withItemExtras } from '../items.ts';

/** Tools of this namespace are called by their bare names. */
const bareNamespace = 'functions';

export class Toolbox {
  readonly #notes: Notes;
  readonly #tools = new Map<string, Tool>();
  /** Flat names by namespace and name. */
  readonly #names = new Map<string, string>();
  /** Flat names of tools that have a type of their own. A function may have the name of the type. */
  readonly #typed = new Map<string, string>();
  readonly #dropped: { readonly path: FieldPath; readonly type: string }[] = [];
  #deferred = false;

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  /** All tools in order. @throws GatewayError for hosted tools that no upstream would run. */
  finish(choice: ToolChoice | undefined): readonly Tool[] {
    const tools = [...this.#tools.values()];
    const others = tools.some(({ native }) => native === undefined);
    for (const { path, type } of this.#dropped) {
      if (!others) throw unsupported([...path, 'type'], noSuchTool(type));
      this.#notes.lost(path, `the model has no ${type}`);
    }
    if (this.#deferred) {
      this.#notes.changed(['tools'], 'tools that wait to be searched for are offered at once');
    }
    if (choice?.type === 'tool' && !this.#tools.has(choice.name)) {
      throw badValue(['tool_choice'], notAmongTools(choice.name));
    }
    if (choice?.type === 'required' && tools.length === 0) {
      throw badValue(['tool_choice'], "is only allowed when 'tools' are given");
    }
    return tools;
  }

  add(tools: Json | undefined, at: FieldPath): void {
    if (!isArray(tools)) return;
    tools.forEach((tool, i) => {
      if (isObject(tool)) this.#addTool(tool, [...at, i], undefined);
    });
  }

  has(flatName: string): boolean {
    return this.#tools.has(flatName);
  }

  /** Whether a hosted tool of this type was offered that the model lacks. */
  hasDropped(type: Json | undefined): boolean {
    return this.#dropped.some((dropped) => dropped.type === type);
  }

  /** The flat name for a name and a namespace of the client. */
  flatName(name: string, namespace: Json | undefined): string {
    const space = textOf(namespace);
    const known = this.#names.get(`${space}\n${name}`);
    if (known !== undefined) return known;
    return space === '' || space === bareNamespace ? name : `${space}__${name}`;
  }

  /** The flat name of a tool that has a type of its own. */
  typedName(type: string): string {
    return this.#typed.get(type) ?? type;
  }

  /** The tool that a choice names, by its flat or its bare name. */
  chosen(name: string): string {
    const known = this.#names.get(`\n${name}`);
    if (known !== undefined) return known;
    if (this.#tools.has(name)) return name;
    for (const [flat, tool] of this.#tools) if (itemExtras(tool)['name'] === name) return flat;
    return name;
  }

  #addTool(tool: JsonObject, path: FieldPath, namespace: JsonObject | undefined): void {
    const { type } = tool;
    if (tool['defer_loading'] === true) this.#deferred = true;
    switch (type) {
      case 'function':
      case 'custom':
        return this.#addNamed(tool, path, namespace);
      case 'namespace': {
        const inner = tool['tools'];
        if (!isArray(inner)) throw missing([...path, 'tools']);
        inner.forEach((each, i) => {
          if (isObject(each)) this.#addTool(each, [...path, 'tools', i], tool);
        });
        return;
      }
      case 'tool_search':
        return this.#addSearch(tool, path);
      case 'local_shell':
      case 'apply_patch':
        return this.#addTyped(type, path);
      case 'shell':
        if (isLocal(tool['environment'])) return this.#addTyped(type, path);
        throw unsupported([...path, 'environment'], 'This model has no container to run code in.');
      case 'image_generation':
      case 'code_interpreter':
        this.#dropped.push({ path, type });
        return;
      default:
        if (isWebSearch(type)) return this.#addWebSearch(tool, path);
        throw unsupported([...path, 'type'], noSuchTool(textOf(type)));
    }
  }

  #addNamed(tool: JsonObject, path: FieldPath, namespace: JsonObject | undefined): void {
    const name = textOf(tool['name']);
    const space = textOf(namespace?.['name']);
    const key = `${space}\n${name}`;
    // A tool search may find a tool again.
    if (this.#names.has(key)) return;
    const flat = this.#free(
      space === '' || space === bareNamespace ? name : `${space}__${name}`,
      space,
    );
    this.#names.set(key, flat);
    const custom = tool['type'] === 'custom';
    const { strict, parameters, format } = tool;
    this.#set(
      {
        name: flat,
        ...described(joined(namespace?.['description'], tool['description'])),
        schema: custom ? freeTextSchema : schemaOf(parameters, [...path, 'parameters']),
        ...(custom ? { freeText: true } : {}),
        ...(strict === true && !custom ? { strict } : {}),
        ...withItemExtras({
          ...(custom ? { kind: 'custom', ...(isObject(format) ? { format } : {}) } : {}),
          ...(space === '' ? {} : { namespace: space }),
          ...(space === '' && flat === name ? {} : { name }),
        }),
      },
      path,
    );
  }

  #free(name: string, namespace: string): string {
    if (!this.#tools.has(name)) return name;
    let free = `${namespace === '' ? 'tool' : namespace}__${name}`;
    while (this.#tools.has(free)) free += '_';
    return free;
  }

  /** A search that the client runs is a function. A search that the service runs has nothing to search. */
  #addSearch(tool: JsonObject, path: FieldPath): void {
    if (tool['execution'] !== 'client') {
      this.#deferred = true;
      return;
    }
    // An item may offer it again.
    if (this.#typed.has('tool_search')) return;
    const name = this.#freeTyped('tool_search');
    const description = textOf(tool['description']);
    const schema = schemaOf(tool['parameters'], [...path, 'parameters']);
    const extras = withItemExtras({ kind: 'tool_search' });
    this.#set({ name, ...described(description), schema, ...extras }, path);
  }

  #freeTyped(type: string): string {
    const name = this.#free(type, '');
    this.#typed.set(type, name);
    return name;
  }

  #addTyped(type: keyof typeof typedTools, path: FieldPath): void {
    if (this.#typed.has(type)) return;
    const name = this.#freeTyped(type);
    this.#notes.changed([...path, 'type'], 'offered as an ordinary function tool');
    const { description, schema } = typedTools[type];
    const named = withPath({ ...schema }, [...path, 'type']);
    this.#set({ name, description, schema: named, ...withItemExtras({ kind: type }) }, path);
  }

  /** The writer maps it if the model's provider searches, and else omits it if there are other tools. */
  #addWebSearch(tool: JsonObject, path: FieldPath): void {
    if (this.#tools.has('web_search')) {
      this.#dropped.push({ path, type: 'web_search' });
      return;
    }
    const native = { dialect: 'openai-responses' as const, value: tool };
    this.#set({ name: 'web_search', schema: {}, native }, path);
  }

  #set(tool: Tool, path: FieldPath): void {
    this.#tools.set(tool.name, withPath(tool, path));
  }
}

function noSuchTool(type: string): string {
  return `This model has no tool of the type '${type}'.`;
}

function isLocal(environment: Json | undefined): boolean {
  return !isObject(environment) || environment['type'] === 'local';
}

export function isWebSearch(type: Json | undefined): boolean {
  return typeof type === 'string' && type.startsWith('web_search');
}

function described(description: string): { readonly description?: string } {
  return description === '' ? {} : { description };
}

/** The description of a tool after the one of its namespace. */
function joined(ofNamespace: Json | undefined, ofTool: Json | undefined): string {
  const line = textOf(ofNamespace).replaceAll(/\s+/g, ' ').trim();
  return [line, textOf(ofTool)].filter((text) => text !== '').join('\n');
}

/** Absent parameters mean an empty object. All keys of a schema are kept. */
function schemaOf(parameters: Json | undefined, path: FieldPath): JsonObject {
  if (!isObject(parameters)) return withPath({ type: 'object', properties: {} }, path);
  const { type } = parameters;
  if (!isPresent(type)) return withPath({ ...parameters, type: 'object' }, path);
  if (type !== 'object') throw badValue(path, 'must be the schema of an object');
  return withPath(parameters, path);
}

const choiceWords: ReadonlyMap<string, ToolChoice> = new Map([
  ['auto', { type: 'auto' }],
  ['none', { type: 'none' }],
  ['required', { type: 'required' }],
]);

/** @throws GatewayError for a hosted tool that the model does not have. */
export function readToolChoice(body: JsonObject, tools: Toolbox): ToolChoice | undefined {
  const choice = body['tool_choice'];
  if (!isPresent(choice)) return undefined;
  if (typeof choice === 'string') {
    const word = choiceWords.get(choice);
    if (word !== undefined) return word;
    throw badValue(['tool_choice'], "must be 'none', 'auto', 'required' or an object");
  }
  if (!isObject(choice)) throw badValue(['tool_choice'], 'must be a string or an object');
  if (choice['type'] !== 'allowed_tools') {
    return { type: 'tool', name: chosenName(choice, ['tool_choice'], tools) };
  }
  return readAllowed(choice, tools);
}

/**
 * Hosted tools that the model lacks are left out, as `finish` notes them.
 * @throws GatewayError for functions that are not offered, and where a call is required and no tool is left
 */
function readAllowed({ mode, tools: allowed }: JsonObject, tools: Toolbox): ToolChoice {
  if (!isArray(allowed)) throw missing(['tool_choice', 'tools']);
  if (isPresent(mode) && mode !== 'auto' && mode !== 'required') {
    throw badValue(['tool_choice', 'mode'], "must be 'auto' or 'required'");
  }
  const names: string[] = [];
  allowed.forEach((tool, i) => {
    const path = ['tool_choice', 'tools', i];
    if (!isObject(tool)) throw wrongType(path, 'an object', tool);
    if (tools.hasDropped(tool['type'])) return;
    const name = chosenName(tool, path, tools);
    const own = tool['type'] === 'function' || tool['type'] === 'custom';
    if (tools.has(name)) names.push(name);
    else if (own) throw badValue([...path, 'name'], notAmongTools(name));
  });
  if (mode === 'required' && names.length === 0) {
    throw badValue(['tool_choice', 'tools'], 'must name at least one of the tools');
  }
  return { type: 'allowed', mode: mode === 'required' ? 'required' : 'auto', names };
}

function notAmongTools(name: string): string {
  return `names the tool '${name}', which is not among the tools`;
}

function chosenName(choice: JsonObject, path: FieldPath, tools: Toolbox): string {
  const { type, name, namespace } = choice;
  switch (type) {
    case 'function':
    case 'custom':
      if (typeof name !== 'string') throw missing([...path, 'name']);
      return isPresent(namespace) ? tools.flatName(name, namespace) : tools.chosen(name);
    case 'shell':
    case 'local_shell':
    case 'apply_patch':
    case 'tool_search':
      return tools.typedName(type);
    default:
      if (isWebSearch(type)) return 'web_search';
      if (!isPresent(type)) throw missing([...path, 'type']);
      if (typeof type !== 'string') throw wrongType([...path, 'type'], 'a string', type);
      throw unsupported([...path, 'type'], noSuchTool(type));
  }
}
