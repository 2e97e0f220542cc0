/**
 * A demanded tool call at models that cannot be made to call one. Where exactly one tool may be
 * called, its schema becomes the format of the answer, and the answer is shown as the call
 * (`shapedGeneration`): structured extraction keeps its meaning.
 */
import type {
  Conversation,
  Part,
  TextPart,
  Tool,
  ToolCallPart,
} from '../../../core/conversation.ts';
import type { AnswerContext, StreamWriter } from '../../../core/dialect.ts';
import type { FieldPath } from '../../../core/errors.ts';
import type { FinishReason, Generation, GenerationEvent } from '../../../core/generation.ts';
import { type Notes, pathOf, withPath, withPathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonObject } from '../../../json/value.ts';

/** Whether the upstream has a member that demands a call. */
export function canDemandCalls({ toolChoice, refusesForcedTools }: UpstreamTraits): boolean {
  return toolChoice && refusesForcedTools !== true;
}

/** Whether the conversation demands a call, of one tool or of any. */
export function demandsCall({ toolChoice }: Conversation): boolean {
  const choice = toolChoice?.type === 'allowed' ? toolChoice.mode : toolChoice?.type;
  return choice === 'required' || choice === 'tool';
}

/** The conversation with its demanded call as an output format, if the model cannot be forced to call. */
export function withDemandAsFormat(
  conversation: Conversation,
  traits: UpstreamTraits,
  notes: Notes,
): Conversation {
  if (canDemandCalls(traits) || !demandsCall(conversation)) return conversation;
  const tool = demandedTool(conversation);
  if (tool === undefined || !fitsFormat(tool, conversation, traits)) return conversation;
  const { toolChoice, parallelTools: _single, ...rest } = conversation;
  notes.changed(
    pathOf(toolChoice ?? conversation, ['tool_choice']),
    'the model cannot be made to call a tool: it answers in the format of the tool, shown as its call',
  );
  const { name, description, schema } = tool;
  return {
    ...rest,
    toolChoice: withPathOf(toolChoice ?? tool, { type: 'none' }),
    output: withPath(
      {
        type: 'json',
        schema,
        asCallOf: name,
        ...(formatName.test(name) ? { name } : {}),
        ...(description === undefined ? {} : { description }),
      },
      pathOf(tool, ['tools']),
    ),
  };
}

/** What formats may be called. */
const formatName = /^[\w-]{1,64}$/;

/** The one tool that may be called; undefined where the model is to choose among several. */
function demandedTool({ tools, toolChoice }: Conversation): Tool | undefined {
  if (toolChoice?.type === 'tool') return tools.find(({ name }) => name === toolChoice.name);
  const usable =
    toolChoice?.type === 'allowed'
      ? tools.filter(({ name }) => toolChoice.names.includes(name))
      : tools;
  return usable.length === 1 ? usable[0] : undefined;
}

function fitsFormat(
  { native, freeText, schema }: Tool,
  { output }: Conversation,
  { responseFormat }: UpstreamTraits,
): boolean {
  if (native !== undefined || freeText === true) return false;
  return output.type === 'text' && responseFormat === 'schema' && schema['type'] === 'object';
}

// Structured output from models that have none: a forced tool whose input is the answer.
// The request's writer offers it, and the answer's writer shows its input
// as text so that no client sees a call that it did not request.

/** Its name in the requests of all gateways that do this. */
const jsonToolName = 'json';

export interface JsonTool {
  readonly name: typeof jsonToolName;
  readonly description: string;
  readonly schema: JsonObject;
}

/**
 * The tool that represents the requested format. Undefined where it cannot: if the client has its own tools,
 * with thinking (tools cannot be forced then), and for answers that are not an object.
 */
export function jsonTool({ output, tools }: Conversation, thinks: boolean): JsonTool | undefined {
  if (thinks || output.type !== 'json' || output.schema === undefined) return undefined;
  const { schema } = output;
  if (tools.length > 0 || (schema['type'] ?? 'object') !== 'object') return undefined;
  return {
    name: jsonToolName,
    description: output.description ?? 'Answers the user. Its input is the whole answer.',
    schema: { ...schema, type: 'object', properties: schema['properties'] ?? {} },
  };
}

/** Whether calls of that name may be the answer: the client itself offered no tool at all. */
function answersByJsonTool({ output, tools }: Conversation): boolean {
  return output.type === 'json' && output.schema !== undefined && tools.length === 0;
}

/** Whether the client requested any thinking. */
export function wantsThinking({ reasoning }: Conversation): boolean {
  const { effort, budgetTokens, adaptive } = reasoning ?? {};
  if (effort !== undefined) return effort !== 'none';
  return budgetTokens !== undefined || adaptive === true;
}

// What an answer must be made into because of how the request was translated: the input of the forced
// `json` tool is the content, an answer in the format of a tool is a call of it, and of
// several calls the first is kept where the client requested one at most and the upstream has no such option.

type PartStart = Extract<GenerationEvent, { readonly type: 'part-start' }>;
type PartDelta = Extract<GenerationEvent, { readonly type: 'part-delta' }>;

/** Where clients of a dialect request one call at most. */
export interface ShapeWords {
  readonly single: FieldPath;
}

/** The generation as the client of a translated call gets it. */
export function shapedGeneration(
  generation: Generation,
  context: AnswerContext,
  words: ShapeWords,
): Generation {
  const shape = shapeOf(context, words);
  if (shape === undefined) return generation;
  const parts = generation.parts
    .map((part) => shape.part(part))
    .filter((part) => part !== undefined);
  return { ...generation, parts, finish: shape.finish(generation.finish) };
}

/** The same for a stream: `writer` itself where nothing is to be done. */
export function shapedWriter(
  writer: StreamWriter,
  context: AnswerContext,
  words: ShapeWords,
): StreamWriter {
  const shape = shapeOf(context, words);
  return shape === undefined ? writer : new ShapedWriter(writer, shape);
}

function shapeOf(context: AnswerContext, words: ShapeWords): Shape | undefined {
  const { conversation } = context;
  if (conversation === undefined) return undefined;
  const shapes =
    conversation.parallelTools === false ||
    calledByText(conversation) !== undefined ||
    answersByJsonTool(conversation);
  return shapes ? new Shape(conversation, context, words) : undefined;
}

/** The tool whose input the text of the answer is. */
function calledByText({ output }: Conversation): string | undefined {
  return output.type === 'json' ? output.asCallOf : undefined;
}

/** State is the calls of one answer. */
class Shape {
  readonly #json: boolean;
  readonly #single: boolean;
  readonly #context: AnswerContext;
  readonly #words: ShapeWords;
  /** Set until the answer's text was shown as the call. */
  #textTool: string | undefined;
  #calledByText = false;
  #calls = 0;

  constructor(conversation: Conversation, context: AnswerContext, words: ShapeWords) {
    this.#json = answersByJsonTool(conversation);
    this.#single = conversation.parallelTools === false;
    this.#textTool = calledByText(conversation);
    this.#context = context;
    this.#words = words;
  }

  /** Whether a text that begins now may be a call: its first characters decide. */
  get textMayCall(): boolean {
    return this.#textTool !== undefined;
  }

  /** The part to show; undefined for one that is omitted. */
  part(part: Part): Part | undefined {
    if (part.type === 'text') return this.call(part) ?? part;
    if (part.type !== 'tool-call') return part;
    const isJson = this.#json && part.name === jsonToolName;
    this.#calls += 1;
    if (this.#calls > 1 && (this.#single || isJson)) {
      this.#context.notes.changed(this.#words.single, 'only the first of several calls is kept');
      return undefined;
    }
    return isJson ? { type: 'text', text: part.argumentsJson } : part;
  }

  /** The call that a text is; undefined for any other text: models refuse in words. */
  call({ text }: TextPart): ToolCallPart | undefined {
    const name = this.#textTool;
    if (name === undefined || !text.trimStart().startsWith('{')) return undefined;
    this.#textTool = undefined;
    this.#calledByText = true;
    return { type: 'tool-call', id: this.#context.newId('call_'), name, argumentsJson: text };
  }

  finish(reason: FinishReason): FinishReason {
    return this.#calledByText && reason.kind === 'stop'
      ? { ...reason, kind: 'tool-calls' }
      : reason;
  }
}

class ShapedWriter implements StreamWriter {
  readonly #writer: StreamWriter;
  readonly #shape: Shape;
  /** Parts that are shown as another kind, by index: the field of their deltas. */
  readonly #fields = new Map<number, PartDelta['field']>();
  /** Parts that are omitted. */
  readonly #hidden = new Set<number>();
  /** A text whose first character has not come yet. */
  #undecided: PartStart | undefined;

  readonly fail?: NonNullable<StreamWriter['fail']>;
  readonly keepAlive?: NonNullable<StreamWriter['keepAlive']>;

  constructor(writer: StreamWriter, shape: Shape) {
    this.#writer = writer;
    this.#shape = shape;
    if (writer.fail !== undefined) this.fail = writer.fail.bind(writer);
    if (writer.keepAlive !== undefined) this.keepAlive = writer.keepAlive.bind(writer);
  }

  write(event: GenerationEvent): string {
    switch (event.type) {
      case 'part-start':
        return this.#start(event);
      case 'part-delta': {
        const { index, field } = event;
        if (this.#hidden.has(index)) return '';
        const start = this.#undecided;
        if (start?.index === index && start.part.type === 'text') {
          const part = { ...start.part, text: start.part.text + event.delta };
          this.#undecided = undefined;
          return this.#start({ ...start, part });
        }
        return this.#writer.write({ ...event, field: this.#fields.get(index) ?? field });
      }
      case 'part-citation':
      case 'part-end':
        if (this.#hidden.has(event.index)) return '';
        return this.#settled(event.index) + this.#writer.write(event);
      case 'finish': {
        const text = this.#settled(this.#undecided?.index);
        return text + this.#writer.write({ ...event, reason: this.#shape.finish(event.reason) });
      }
      default:
        return this.#writer.write(event);
    }
  }

  end(): string {
    return this.#writer.end();
  }

  #start(event: PartStart): string {
    const { index, part: given } = event;
    const isText = given.type === 'text';
    if (isText && this.#shape.textMayCall && given.text.trim() === '') {
      this.#undecided = event;
      return '';
    }
    const part = this.#shape.part(given);
    if (part === undefined) {
      this.#hidden.add(index);
      return '';
    }
    if (part.type === 'text' && given.type === 'tool-call') this.#fields.set(index, 'text');
    if (part.type === 'tool-call' && isText) this.#fields.set(index, 'arguments');
    return this.#writer.write({ ...event, part });
  }

  /** A text that ends while it is still blank is a text. */
  #settled(index: number | undefined): string {
    const start = this.#undecided;
    if (start === undefined || start.index !== index) return '';
    this.#undecided = undefined;
    return this.#writer.write(start);
  }
}
