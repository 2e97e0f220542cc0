/**
 * Writes events as a chat-completions stream.
 * The frame around a delta never changes within an answer, so it is made once.
 */
import type { Citation, Part, ReasoningPart, ToolCallPart } from '../../../core/conversation.ts';
import type { AnswerContext, StreamWriter } from '../../../core/dialect.ts';
import {
  type FinishReason,
  type GenerationEvent,
  mergeUsage,
  type Usage,
} from '../../../core/generation.ts';
import type { Sealer } from '../../../core/secret.ts';
import { tryParseInnerObject } from '../../../json/parse.ts';
import type { JsonObject } from '../../../json/value.ts';
import { isCutBy } from '../../shared/answers.ts';
import { writeStreamError } from '../errors.ts';
import {
  answeredExtras,
  AnsweredTools,
  answerId,
  freeTextInput,
  MessageBounds,
  writeCitation,
} from '../message-forms.ts';
import {
  detailConstants,
  detailMark,
  detailType,
  hasProof,
  isSummary,
  writeDetail,
} from '../reasoning.ts';
import { noteHidden, refusalExplanation } from './response.ts';
import { writeFinish, writeServiceTier, writeUsage } from './usage.ts';

interface OpenPart {
  readonly part: Part;
  /** Offset of the part's text in the whole content, in UTF-16 code units; undefined before its first character. */
  textStart: number | undefined;
  readonly toolIndex: number;
  sawArguments: boolean;
  /** Arguments of a free-text tool, which can only be unwrapped when they are complete. */
  heldArguments: string | undefined;
  citations: Citation[] | undefined;
}

/** A call that may be cut: only the end of the answer shows whether it is. */
function isUndecided({ heldArguments, sawArguments }: OpenPart): boolean {
  return heldArguments === undefined
    ? !sawArguments
    : tryParseInnerObject(heldArguments) === undefined;
}

type PartDelta = Extract<GenerationEvent, { type: 'part-delta' }>;

export class ChatStreamWriter implements StreamWriter {
  readonly #context: AnswerContext;
  readonly #tools: AnsweredTools;
  readonly #parts: (OpenPart | undefined)[] = [];
  readonly #reasoning: ReasoningDeltas;
  readonly #bounds = new MessageBounds();
  /** The bytes of a frame before and after the members of the delta. */
  #before = '';
  #behind = '';
  #id = '';
  #roleSent = false;
  #textLength = 0;
  #nextTool = 0;
  #annotations = 0;
  #refusalSent = false;
  #usage: Usage | undefined;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#tools = new AnsweredTools(context);
    const hidden = context.conversation?.reasoning?.hidden === true;
    this.#reasoning = new ReasoningDeltas(hidden, context.sealing?.sealer);
  }

  write(event: GenerationEvent): string {
    switch (event.type) {
      case 'start':
        this.#begin(event.id);
        return '';
      case 'part-delta':
        return this.#writeDelta(event);
      case 'part-start':
        return this.#startPart(event.index, event.part);
      case 'part-citation':
        this.#parts[event.index]?.citations?.push(event.citation);
        return '';
      case 'part-end':
        return this.#endPart(event.index);
      case 'usage':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return '';
      case 'finish': {
        const reason = event.reason;
        let text = this.#role('""');
        for (let index = 0; index < this.#parts.length; index++)
          text += this.#endPart(index, reason);
        const explanation = this.#refusalSent ? undefined : refusalExplanation(reason);
        if (explanation !== undefined)
          text += this.#frame(`"refusal":${JSON.stringify(explanation)}`);
        const word = writeFinish(reason, this.#nextTool > 0, this.#context.notes);
        const shown = this.#tools.legacy && word === 'tool_calls' ? 'function_call' : word;
        const sequence =
          reason.sequence === undefined ? '' : `,"stop_reason":${JSON.stringify(reason.sequence)}`;
        return (
          `${text}${this.#before}},"logprobs":null,"finish_reason":"${shown}"${sequence}}]` +
          `${this.#usageNull()}}\n\n`
        );
      }
      case 'error':
        return writeStreamError(event.error, this.#context.requestId);
      default:
        return event satisfies never;
    }
  }

  /** The usage chunk, if the client requested one, and `[DONE]`. */
  end(): string {
    const { wantsUsageFrame, createdSeconds, model, promptTokensEstimate } = this.#context;
    if (!wantsUsageFrame) return 'data: [DONE]\n\n';
    const tier = writeServiceTier(this.#usage);
    const chunk = {
      id: this.#id,
      object: 'chat.completion.chunk',
      created: createdSeconds,
      model,
      choices: [],
      usage: writeUsage(this.#usage ?? { freshInputTokens: promptTokensEstimate }),
      ...(tier === undefined ? {} : { service_tier: tier }),
    };
    return `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`;
  }

  #begin(upstreamId: string): void {
    const context = this.#context;
    this.#id = answerId(upstreamId, context);
    this.#before =
      `data: {"id":${JSON.stringify(this.#id)},"object":"chat.completion.chunk",` +
      `"created":${context.createdSeconds},"model":${JSON.stringify(context.model)},` +
      `"choices":[{"index":0,"delta":{`;
    this.#behind = `},"logprobs":null,"finish_reason":null}]${this.#usageNull()}}\n\n`;
  }

  /** If a usage chunk will follow, every other chunk has `usage: null`. */
  #usageNull(): string {
    return this.#context.wantsUsageFrame ? ',"usage":null' : '';
  }

  #frame(members: string): string {
    return members === '' ? '' : this.#before + members + this.#behind;
  }

  #role(content: '""' | 'null'): string {
    if (this.#roleSent) return '';
    this.#roleSent = true;
    if (this.#before === '') this.#begin('');
    return this.#frame(`"role":"assistant","content":${content},"refusal":null`);
  }

  #writeDelta({ index, field, delta }: PartDelta): string {
    const open = this.#parts[index];
    if (open === undefined || delta === '') return '';
    if (field === 'arguments') return this.#addArguments(open, delta);
    switch (open.part.type) {
      case 'text':
        if (field !== 'text') return '';
        if (open.textStart === undefined) return this.#beginText(open, delta);
        this.#textLength += delta.length;
        return this.#frame(`"content":${JSON.stringify(delta)}`);
      case 'reasoning':
        return this.#frame(this.#reasoning.add(index, field, delta));
      case 'refusal':
        this.#refusalSent = true;
        return this.#frame(`"refusal":${JSON.stringify(delta)}`);
      default:
        return '';
    }
  }

  /** An empty text gets no blank line, so it is written with the first piece. */
  #beginText(open: OpenPart, delta: string): string {
    const bound = this.#bounds.before(delta);
    open.textStart = this.#textLength + bound.length;
    this.#textLength = open.textStart + delta.length;
    const before = bound === '' ? '' : this.#frame(`"content":${JSON.stringify(bound)}`);
    return before + this.#frame(`"content":${JSON.stringify(delta)}`);
  }

  #startPart(index: number, part: Part): string {
    const role = this.#role(part.type === 'tool-call' ? 'null' : '""');
    const isCall = part.type === 'tool-call';
    this.#bounds.begin(part);
    const open: OpenPart = {
      part,
      textStart: undefined,
      toolIndex: isCall ? this.#nextTool++ : -1,
      sawArguments: false,
      heldArguments: isCall && this.#tools.isFreeText(this.#tools.name(part.name)) ? '' : undefined,
      citations: part.type === 'text' ? [...(part.citations ?? [])] : undefined,
    };
    this.#parts[index] = open;
    switch (part.type) {
      case 'text':
      case 'refusal':
        return (
          role + this.#writeDelta({ type: 'part-delta', index, field: 'text', delta: part.text })
        );
      case 'reasoning':
        return role + this.#frame(this.#reasoning.start(index, part, this.#nextTool));
      case 'tool-call':
        return role + this.#startCall(open, part);
      default:
        noteHidden(part, this.#context.notes);
        return role;
    }
  }

  #startCall(open: OpenPart, part: ToolCallPart): string {
    const name = this.#tools.name(part.name);
    const given = part.argumentsJson;
    if (this.#tools.legacy) {
      if (open.toolIndex > 0) {
        this.#context.notes.lost(['function_call'], 'the deprecated form holds one call only');
        return '';
      }
      open.sawArguments = given !== '';
      return this.#frame(`"function_call":${JSON.stringify({ name, arguments: given })}`);
    }
    const identity = { index: open.toolIndex, id: this.#tools.id(part.id) };
    if (open.heldArguments !== undefined) {
      open.heldArguments = given;
      return this.#calls({ ...identity, type: 'custom', custom: { name, input: '' } });
    }
    open.sawArguments = given !== '';
    const called = { name, arguments: given };
    return this.#calls({
      ...identity,
      type: 'function',
      function: called,
      ...answeredExtras(part),
    });
  }

  #addArguments(open: OpenPart, delta: string): string {
    if (open.part.type !== 'tool-call') return '';
    if (open.heldArguments !== undefined) {
      open.heldArguments += delta;
      return '';
    }
    open.sawArguments = true;
    const text = JSON.stringify(delta);
    if (!this.#tools.legacy) {
      return this.#frame(
        `"tool_calls":[{"index":${open.toolIndex},"function":{"arguments":${text}}}]`,
      );
    }
    return open.toolIndex > 0 ? '' : this.#frame(`"function_call":{"arguments":${text}}`);
  }

  /** @param finish the end of the answer, which decides on calls that are not finished */
  #endPart(index: number, finish?: FinishReason): string {
    const open = this.#parts[index];
    if (open === undefined) return '';
    if (open.part.type === 'tool-call' && finish === undefined && isUndecided(open)) return '';
    this.#parts[index] = undefined;
    switch (open.part.type) {
      case 'tool-call':
        return this.#endCall(open, finish);
      case 'text': {
        const { citations, textStart = this.#textLength } = open;
        if (citations === undefined || citations.length === 0) return '';
        const span = { start: textStart, end: this.#textLength };
        const annotations: JsonObject[] = [];
        for (const citation of citations) {
          const annotation = writeCitation(citation, span, this.#context.notes);
          // Entries of extension lists need an index, or the Python client fails.
          if (annotation !== undefined)
            annotations.push({ index: this.#annotations++, ...annotation });
        }
        return annotations.length === 0
          ? ''
          : this.#frame(`"annotations":${JSON.stringify(annotations)}`);
      }
      default:
        return '';
    }
  }

  #endCall(open: OpenPart, finish: FinishReason | undefined): string {
    const isLast = open.toolIndex === this.#nextTool - 1;
    const isCut = isLast && finish !== undefined && isCutBy(finish);
    if (open.heldArguments !== undefined) {
      const input = freeTextInput(open.heldArguments, isCut);
      return input === '' ? '' : this.#calls({ index: open.toolIndex, custom: { input } });
    }
    // Arguments are never `''` in total, except of a call that was cut.
    return open.sawArguments || isCut ? '' : this.#addArguments(open, '{}');
  }

  #calls(call: JsonObject): string {
    return this.#frame(`"tool_calls":[${JSON.stringify(call)}]`);
  }
}

// Reasoning in a stream: `reasoning_content` for display, and `reasoning_details` increments that a
// client sends back whole, signature included. Each increment is in
// both, so that no reader needs to guess which one is complete.

interface OpenReasoning {
  readonly part: ReasoningPart;
  readonly detail: number;
  readonly callsBefore: number;
  /** The text so far, for the digest in the entry's mark. */
  text: string;
  /** Whether the constants of the entry were sent. They may occur only once. */
  constantsSent: boolean;
}

class ReasoningDeltas {
  readonly #hidden: boolean;
  readonly #sealer: Sealer | undefined;
  readonly #open = new Map<number, OpenReasoning>();
  #details = 0;
  #anyText = false;
  /** A blank line between the texts of two parts, which is written before the next text. */
  #separator = '';

  /**
   * @param hidden the client does not want to see reasoning.
   * @param sealer marks entries, where they must come back whole.
   */
  constructor(hidden: boolean, sealer: Sealer | undefined) {
    this.#hidden = hidden;
    this.#sealer = sealer;
  }

  /**
   * The delta members at the start of a part; `''` if there is nothing to send yet.
   * @param callsBefore how many calls of the answer are before it.
   */
  start(index: number, part: ReasoningPart, callsBefore: number): string {
    if (this.#hidden) return '';
    const detail = this.#details++;
    this.#separator = this.#anyText ? '\n\n' : '';
    const whole = hasProof(part);
    const { text } = part;
    const open = { part, detail, callsBefore, text, constantsSent: whole };
    this.#open.set(index, open);
    const content = text === '' ? '' : this.#content(text);
    if (whole) {
      return members(content, details({ ...writeDetail(part, detail), ...this.#mark(open) }));
    }
    const type = detailType(part);
    return content === ''
      ? ''
      : members(content, details({ index: detail, type, ...textOf(part, text) }));
  }

  /** The delta members of an increment. */
  add(index: number, field: 'text' | 'signature', delta: string): string {
    const open = this.#open.get(index);
    if (open === undefined) return '';
    const { part, detail } = open;
    const type = detailType(part);
    if (field === 'text') {
      open.text += delta;
      const entry = details({ index: detail, type, ...textOf(part, delta) });
      return members(this.#content(delta), entry);
    }
    const constants = open.constantsSent ? {} : { ...detailConstants(part), ...this.#mark(open) };
    open.constantsSent = true;
    return details({ index: detail, type, signature: delta, ...constants });
  }

  /** Occurs once per entry, with its signature: the Python helper concatenates repeated values. */
  #mark({ part, detail, callsBefore, text }: OpenReasoning): JsonObject {
    if (this.#sealer === undefined) return {};
    const position = { entry: detail, callsBefore };
    return { id: detailMark({ ...part, text }, position, this.#sealer) };
  }

  #content(text: string): string {
    const separated = this.#separator + text;
    this.#separator = '';
    this.#anyText = true;
    return `"reasoning_content":${JSON.stringify(separated)}`;
  }
}

function textOf(part: ReasoningPart, text: string): JsonObject {
  return isSummary(part) ? { summary: text } : { text };
}

function details(entry: JsonObject): string {
  return `"reasoning_details":[${JSON.stringify(entry)}]`;
}

function members(first: string, second: string): string {
  return first === '' ? second : `${first},${second}`;
}
