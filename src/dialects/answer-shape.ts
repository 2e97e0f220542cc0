/**
 * What an answer must be made into because of how the request was translated: the input of the forced
 * `json` tool is the content (§1.7), and of several calls the first is kept where the client asked for
 * one at most and the model could not be told (§2.1).
 */
import type { Conversation, Part } from '../core/conversation.ts';
import type { AnswerContext, StreamWriter } from '../core/dialect.ts';
import type { Generation, GenerationEvent } from '../core/generation.ts';
import type { Notes } from '../core/notes.ts';
import { answersByJsonTool, jsonToolName } from './json-tool.ts';

type PartStart = Extract<GenerationEvent, { readonly type: 'part-start' }>;

/** The generation as the client of a translated call gets it. */
export function shapedGeneration(generation: Generation, context: AnswerContext): Generation {
  const shape = shapeOf(context);
  if (shape === undefined) return generation;
  const parts = generation.parts
    .map((part) => shape.part(part))
    .filter((part) => part !== undefined);
  return { ...generation, parts };
}

/** The same for a stream: `writer` itself where nothing is to be done. */
export function shapedWriter(writer: StreamWriter, context: AnswerContext): StreamWriter {
  const shape = shapeOf(context);
  return shape === undefined ? writer : new ShapedWriter(writer, shape);
}

function shapeOf({ conversation, notes }: AnswerContext): Shape | undefined {
  if (conversation === undefined) return undefined;
  if (conversation.parallelTools !== false && !answersByJsonTool(conversation)) return undefined;
  return new Shape(conversation, notes);
}

/** State is the calls of one answer. */
class Shape {
  readonly #json: boolean;
  readonly #single: boolean;
  readonly #notes: Notes;
  #calls = 0;

  constructor(conversation: Conversation, notes: Notes) {
    this.#json = answersByJsonTool(conversation);
    this.#single = conversation.parallelTools === false;
    this.#notes = notes;
  }

  /** The part to show; undefined for one that is left out. */
  part(part: Part): Part | undefined {
    if (part.type !== 'tool-call') return part;
    const isJson = this.#json && part.name === jsonToolName;
    this.#calls += 1;
    if (this.#calls > 1 && (this.#single || isJson)) {
      this.#notes.changed(['tool_choice'], 'only the first of several calls is kept');
      return undefined;
    }
    return isJson ? { type: 'text', text: part.argumentsJson } : part;
  }
}

class ShapedWriter implements StreamWriter {
  readonly #writer: StreamWriter;
  readonly #shape: Shape;
  /** Calls that are shown as text, and parts that are left out, by index. */
  readonly #texts = new Set<number>();
  readonly #hidden = new Set<number>();

  constructor(writer: StreamWriter, shape: Shape) {
    this.#writer = writer;
    this.#shape = shape;
  }

  write(event: GenerationEvent): string {
    switch (event.type) {
      case 'part-start':
        return this.#start(event);
      case 'part-delta':
        if (this.#hidden.has(event.index)) return '';
        return this.#writer.write(
          this.#texts.has(event.index) ? { ...event, field: 'text' } : event,
        );
      case 'part-citation':
      case 'part-end':
        return this.#hidden.has(event.index) ? '' : this.#writer.write(event);
      default:
        return this.#writer.write(event);
    }
  }

  end(): string {
    return this.#writer.end();
  }

  #start(event: PartStart): string {
    const part = this.#shape.part(event.part);
    if (part === undefined) {
      this.#hidden.add(event.index);
      return '';
    }
    if (part.type === 'text' && event.part.type === 'tool-call') this.#texts.add(event.index);
    return this.#writer.write({ ...event, part });
  }
}
