/**
 * Writes a Responses stream. Several items may be open at once, each with its `output_index`. Only hidden reasoning and
 * arguments that are rewritten wait.
 */
import type {
  Citation,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from '../../../core/conversation.ts';
import type { AnswerContext, StreamWriter } from '../../../core/dialect.ts';
import type { GatewayError } from '../../../core/errors.ts';
import {
  type FinishReason,
  type GenerationEvent,
  mergeUsage,
  totalInputTokens,
  type Usage,
} from '../../../core/generation.ts';
import { tryParseInnerObject } from '../../../json/parse.ts';
import type { JsonObject } from '../../../json/value.ts';
import { refusalExplanation } from '../../openai-chat/answer/response.ts';
import { endNote } from '../../shared/answers.ts';
import { type AnsweredCall, AnswerItems } from './write-items.ts';
import { idPrefixes, itemExtras } from '../items.ts';
import { type DeltaFrame, deltaFrame, type Ending, Lifecycle } from './lifecycle.ts';
import { writeServiceTier, writeUsage } from './usage.ts';

type PartDelta = Extract<GenerationEvent, { type: 'part-delta' }>;

/** An open message: a run of text parts, or a refusal. */
interface OpenMessage {
  readonly id: string;
  readonly output: number;
  readonly kind: 'output_text' | 'refusal';
  readonly phase: string | undefined;
  readonly frame: DeltaFrame;
  text: string;
  readonly annotations: JsonObject[];
}

interface OpenText {
  readonly type: 'text';
  start: number;
  readonly citations: Citation[];
}

interface OpenReasoning {
  readonly type: 'reasoning';
  /** Without its text. */
  part: ReasoningPart;
  text: string;
  readonly id: string;
  /** Undefined until its first event is written. */
  output: number | undefined;
  /** Undefined until its summary has begun. */
  frame: DeltaFrame | undefined;
}

interface OpenCall {
  readonly type: 'call';
  readonly call: AnsweredCall;
  /** Undefined until its first event is written. A call of a typed tool is written at its end. */
  output: number | undefined;
  /** Undefined until the first piece. */
  frame: DeltaFrame | undefined;
  arguments: string;
}

interface OpenOther {
  readonly type: 'refusal' | 'nothing';
}

type Open = OpenText | OpenReasoning | OpenCall | OpenOther;

const nothing: Open = { type: 'nothing' };

export class ResponsesStreamWriter implements StreamWriter {
  readonly #context: AnswerContext;
  readonly #items: AnswerItems;
  readonly #life: Lifecycle;
  readonly #parts = new Map<number, Open>();
  /** Completed items by output index. */
  readonly #done: (JsonObject | undefined)[] = [];
  #outputs = 0;
  #message: OpenMessage | undefined;
  /** Calls whose arguments are no JSON yet. Their end is written when it is known whether the answer was cut. */
  readonly #unsure: OpenCall[] = [];
  #usage: Usage | undefined;
  #finish: FinishReason | undefined;
  #refused = false;
  #cut = false;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#items = new AnswerItems(context);
    this.#life = new Lifecycle(context, context.opening);
  }

  write(event: GenerationEvent): string {
    switch (event.type) {
      case 'part-delta':
        return this.#delta(event);
      case 'start':
        if (event.id.startsWith(idPrefixes.response)) this.#life.name(event.id);
        return this.#life.begin();
      case 'part-start':
        return this.#life.begin() + this.#start(event.index, event.part);
      case 'part-citation':
        return this.#cite(event.index, event.citation);
      case 'part-end':
        return this.#end(event.index);
      case 'usage':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return '';
      case 'finish':
        return this.#life.begin() + this.#close(event.reason);
      case 'error':
        return this.fail(event.error, this.#context.requestId);
      default:
        return event satisfies never;
    }
  }

  /** The last event. It waits for the usage, which may arrive after the finish. */
  end(): string {
    const ending = this.#ending();
    return this.#life.event(`response.${ending.status}`, { response: this.#response(ending) });
  }

  fail(error: GatewayError, requestId: string, usage?: Usage): string {
    return this.#life.fail(error, requestId, { output: this.#output(), usage });
  }

  /** An event that keeps the client waiting: an empty delta of the open item, or the response so far. */
  keepAlive(): string {
    if (!this.#life.began) return this.#life.begin();
    const message = this.#message;
    if (message !== undefined) return this.#life.delta(message.frame, '');
    for (const open of this.#parts.values()) {
      if (open.type === 'call' && open.call.kind === 'function')
        return this.#argumentsFrame(open, '');
      if (open.type === 'call' && open.call.kind === 'custom') return this.#inputFrame(open, '');
      if (open.type === 'reasoning' && open.output !== undefined) {
        return this.#summaryFrame(open, '');
      }
    }
    return this.#life.progress(this.#output());
  }

  /** The whole answer as a document. */
  document(): JsonObject {
    return this.#response(this.#ending());
  }

  #response(ending: Ending): JsonObject {
    const usage = withEstimate(this.#usage, this.#context);
    return this.#life.response(this.#output(), {
      ...ending,
      usage: writeUsage(usage),
      serviceTier: writeServiceTier(this.#usage),
    });
  }

  #ending(): Ending {
    const kind = this.#finish?.kind ?? 'other';
    // A pause that reaches the client is one that was not continued to its end.
    if (this.#cut || kind === 'length' || kind === 'context-window' || kind === 'pause') {
      return { status: 'incomplete', reason: 'max_output_tokens' };
    }
    if (kind === 'content-filter' && !this.#refused) {
      return { status: 'incomplete', reason: 'content_filter' };
    }
    return { status: 'completed', completedSeconds: this.#context.nowSeconds };
  }

  #output(): readonly JsonObject[] {
    return this.#done.filter((item) => item !== undefined);
  }

  #start(index: number, part: Part): string {
    // Results of a search follow it at once.
    const searches = part.type === 'opaque' ? '' : this.#separate(this.#items.openSearches());
    return searches + this.#startPart(index, part);
  }

  #startPart(index: number, part: Part): string {
    switch (part.type) {
      case 'text': {
        const text = this.#openMessage('output_text', part);
        const start = this.#message?.text.length ?? 0;
        this.#parts.set(index, { type: 'text', start, citations: [...(part.citations ?? [])] });
        return text + (part.text === '' ? '' : this.#addText(part.text));
      }
      case 'refusal': {
        const closed = this.#closeMessage();
        this.#parts.set(index, { type: 'refusal' });
        const text = closed + this.#openMessage('refusal', part);
        return text + (part.text === '' ? '' : this.#addText(part.text));
      }
      case 'reasoning':
        return this.#closeMessage() + this.#startReasoning(index, part);
      case 'tool-call':
        return this.#closeMessage() + this.#startCall(index, part);
      case 'opaque': {
        this.#parts.set(index, nothing);
        return this.#separate(this.#items.opaque(part));
      }
      case 'media':
      case 'tool-result':
        this.#items.lost(part.type === 'media' ? 'generated media' : 'a tool result');
        return '';
      default:
        return part satisfies never;
    }
  }

  #delta({ index, field, delta }: PartDelta): string {
    const open = this.#parts.get(index);
    if (open === undefined || delta === '') return '';
    switch (open.type) {
      case 'text':
      case 'refusal':
        return field === 'text' ? this.#continueMessage(open) + this.#addText(delta) : '';
      case 'reasoning':
        if (field === 'signature') {
          open.part = { ...open.part, signature: (open.part.signature ?? '') + delta };
          return '';
        }
        return field === 'text' ? this.#addReasoning(open, delta) : '';
      case 'call':
        return field === 'arguments' ? this.#addArguments(open, delta) : '';
      case 'nothing':
        return '';
      default:
        return open satisfies never;
    }
  }

  /** A text that goes on although another item began: an upstream may leave its block open. */
  #continueMessage(open: OpenText | OpenOther): string {
    const kind = open.type === 'text' ? 'output_text' : 'refusal';
    if (this.#message?.kind === kind) return '';
    if (open.type === 'text') open.start = 0;
    return this.#openMessage(kind, { type: 'text', text: '' });
  }

  #cite(index: number, citation: Citation): string {
    const open = this.#parts.get(index);
    if (open?.type === 'text') open.citations.push(citation);
    return '';
  }

  #end(index: number): string {
    const open = this.#parts.get(index);
    if (open === undefined) return '';
    this.#parts.delete(index);
    switch (open.type) {
      case 'text':
        return this.#annotate(open);
      case 'refusal':
        return this.#closeMessage();
      case 'reasoning':
        return this.#endReasoning(open);
      case 'call':
        return this.#endCall(open);
      case 'nothing':
        return '';
      default:
        return open satisfies never;
    }
  }

  #close(reason: FinishReason): string {
    this.#finish ??= reason;
    this.#noteEnd(reason);
    let text = '';
    for (const index of this.#parts.keys()) text += this.#end(index);
    const explanation = this.#refused ? undefined : refusalExplanation(reason);
    const cut = explanation === undefined && this.#ending().status === 'incomplete';
    text += this.#closeMessage(cut ? 'incomplete' : 'completed');
    text += this.#separate(this.#items.openSearches());
    if (explanation !== undefined) {
      text += this.#openMessage('refusal', { type: 'text', text: '' });
      text += this.#addText(explanation) + this.#closeMessage();
    }
    return text + this.#endUnsure(reason);
  }

  /** The response is complete, which is not sure if the provider did not say so. */
  #noteEnd(reason: FinishReason): void {
    const note = reason.kind === 'other' ? endNote(reason) : undefined;
    if (note !== undefined) this.#context.notes.changed(['status'], note);
  }

  /** A call that was cut gets no end event, so that no client runs it. */
  #endUnsure({ kind }: FinishReason): string {
    const natural = kind === 'stop' || kind === 'tool-calls';
    const cut = !natural && kind !== 'stop-sequence' && kind !== 'other';
    let text = '';
    for (const open of this.#unsure.splice(0)) {
      if (cut || (natural && open.arguments !== '' && this.#usedUp())) {
        this.#cut ||= kind !== 'content-filter';
        const item = this.#items.cutCall(open.call, open.arguments);
        text += this.#addCall(open, item);
        const { input } = item;
        if (typeof input === 'string' && input !== '') text += this.#inputFrame(open, input);
        this.#done[open.output ?? 0] = item;
      } else text += this.#finishCall(open);
    }
    return text;
  }

  /** The output reached the client's cap. The cap cut the call off then, whatever finish reason the upstream sent. */
  #usedUp(): boolean {
    const cap = this.#context.conversation?.sampling.maxOutputTokens;
    return cap !== undefined && (this.#usage?.outputTokens ?? 0) >= cap;
  }

  // Messages: consecutive texts are pieces of one message.

  #openMessage(kind: OpenMessage['kind'], part: Pick<TextPart, 'extras'> & Part): string {
    const { phase, id: given } = itemExtras(part);
    const own = typeof phase === 'string' ? phase : undefined;
    const open = this.#message;
    const sameItem = given === undefined || open?.id === given;
    if (open?.kind === kind && kind === 'output_text' && open.phase === own && sameItem) return '';
    const closed = this.#closeMessage();
    const id = this.#items.itemId(part, idPrefixes.message);
    const output = this.#outputs++;
    const type = kind === 'refusal' ? 'response.refusal.delta' : 'response.output_text.delta';
    const where = { item_id: id, output_index: output, content_index: 0 };
    const frame = deltaFrame(type, where, kind === 'refusal' ? {} : { logprobs: [] });
    const message: OpenMessage = {
      id,
      output,
      kind,
      phase: own,
      frame,
      text: '',
      annotations: [],
    };
    this.#message = message;
    if (kind === 'refusal') this.#refused = true;
    return (
      closed +
      this.#added(output, messageItem(message, 'in_progress', [])) +
      this.#life.event('response.content_part.added', {
        ...locationOf(message),
        part: contentPart(message, ''),
      })
    );
  }

  #addText(delta: string): string {
    const message = this.#message;
    if (message === undefined) return '';
    message.text += delta;
    return this.#life.delta(message.frame, delta);
  }

  #annotate({ citations, start }: OpenText): string {
    const message = this.#message;
    if (message === undefined) {
      if (citations.length > 0) this.#items.lateSources();
      return '';
    }
    let text = '';
    for (const citation of citations) {
      const span = { start, end: message.text.length };
      const annotation = this.#items.annotation(citation, span);
      if (annotation === undefined) continue;
      const annotation_index = message.annotations.push(annotation) - 1;
      const members = { ...locationOf(message), annotation_index, annotation };
      text += this.#life.event('response.output_text.annotation.added', members);
    }
    return text;
  }

  /** @param status `incomplete` for the message in which the answer was cut off */
  #closeMessage(status: 'completed' | 'incomplete' = 'completed'): string {
    const message = this.#message;
    if (message === undefined) return '';
    this.#message = undefined;
    const part = contentPart(message, message.text);
    const where = locationOf(message);
    const done =
      message.kind === 'refusal'
        ? this.#life.event('response.refusal.done', { ...where, refusal: message.text })
        : this.#life.event('response.output_text.done', {
            ...where,
            text: message.text,
            logprobs: [],
          });
    return (
      done +
      this.#life.event('response.content_part.done', { ...where, part }) +
      this.#itemDone(message.output, messageItem(message, status, [part]))
    );
  }

  // Reasoning: streamed as a summary, or written whole at its end.

  #startReasoning(index: number, part: ReasoningPart): string {
    const id = this.#items.itemId(part, idPrefixes.reasoning);
    const open: OpenReasoning = {
      type: 'reasoning',
      part: { ...part, text: '' },
      text: '',
      id,
      output: undefined,
      frame: undefined,
    };
    this.#parts.set(index, open);
    return part.text === '' ? '' : this.#addReasoning(open, part.text);
  }

  #addReasoning(open: OpenReasoning, delta: string): string {
    open.text += delta;
    return this.#items.hidesReasoning ? '' : this.#summaryFrame(open, delta);
  }

  #summaryFrame(open: OpenReasoning, delta: string): string {
    if (open.frame !== undefined) return this.#life.delta(open.frame, delta);
    const added = this.#addReasoningItem(open);
    const where = summaryLocation(open);
    const part = { type: 'summary_text', text: '' };
    const begun = this.#life.event('response.reasoning_summary_part.added', { ...where, part });
    open.frame = deltaFrame('response.reasoning_summary_text.delta', where);
    return added + begun + this.#life.delta(open.frame, delta);
  }

  #addReasoningItem(open: OpenReasoning): string {
    if (open.output !== undefined) return '';
    open.output = this.#outputs++;
    return this.#added(open.output, {
      id: open.id,
      type: 'reasoning',
      summary: [],
      encrypted_content: null,
    });
  }

  #endReasoning(open: OpenReasoning): string {
    const { id } = open;
    const part = { ...open.part, text: open.text };
    if (part.text === '' && part.signature === undefined && part.encrypted === undefined) {
      if (open.output === undefined) return '';
    }
    let text = this.#addReasoningItem(open);
    if (open.frame !== undefined) {
      const where = summaryLocation(open);
      const whole = { type: 'summary_text', text: part.text };
      text += this.#life.event('response.reasoning_summary_text.done', {
        ...where,
        text: part.text,
      });
      text += this.#life.event('response.reasoning_summary_part.done', { ...where, part: whole });
    }
    return text + this.#itemDone(open.output ?? 0, this.#items.reasoning(id, part));
  }

  // Calls.

  #startCall(index: number, part: ToolCallPart): string {
    const call = this.#items.call(part);
    const companion = this.#items.companion(part, call.callId);
    const before = companion === undefined ? '' : this.#whole(companion);
    const open: OpenCall = {
      type: 'call',
      call,
      output: undefined,
      frame: undefined,
      arguments: '',
    };
    this.#parts.set(index, open);
    const { kind } = call;
    const isClientCall = kind === 'function' || kind === 'custom';
    const added = isClientCall ? this.#addCall(open, this.#items.begunCall(call)) : '';
    return before + added + this.#addArguments(open, part.argumentsJson);
  }

  #addCall(open: OpenCall, item: JsonObject): string {
    if (open.output !== undefined) return '';
    open.output = this.#outputs++;
    return this.#added(open.output, item);
  }

  #addArguments(open: OpenCall, delta: string): string {
    if (delta === '') return '';
    open.arguments += delta;
    return open.call.kind === 'function' ? this.#argumentsFrame(open, delta) : '';
  }

  #argumentsFrame(open: OpenCall, delta: string): string {
    open.frame ??= deltaFrame('response.function_call_arguments.delta', callLocation(open));
    return this.#life.delta(open.frame, delta);
  }

  #inputFrame(open: OpenCall, delta: string): string {
    return this.#life.event('response.custom_tool_call_input.delta', {
      ...callLocation(open),
      delta,
    });
  }

  #endCall(open: OpenCall): string {
    if (tryParseInnerObject(open.arguments) !== undefined) return this.#finishCall(open);
    this.#unsure.push(open);
    return '';
  }

  #finishCall(open: OpenCall): string {
    const item = this.#items.callItem(open.call, open.arguments);
    const { kind, named } = open.call;
    let text = this.#addCall(open, item);
    const where = callLocation(open);
    if (kind === 'function') {
      if (open.arguments.trim() === '') text += this.#argumentsFrame(open, '{}');
      const members = { ...where, name: named['name'] ?? '', arguments: item['arguments'] ?? '' };
      text += this.#life.event('response.function_call_arguments.done', members);
    } else if (kind === 'custom') {
      const input = String(item['input'] ?? '');
      if (input !== '') text += this.#inputFrame(open, input);
      text += this.#life.event('response.custom_tool_call_input.done', { ...where, input });
    }
    return text + this.#itemDone(open.output ?? 0, item);
  }

  /** Whole items. They end an open message. */
  #separate(items: readonly JsonObject[]): string {
    if (items.length === 0) return '';
    return this.#closeMessage() + items.map((item) => this.#whole(item)).join('');
  }

  #whole(item: JsonObject): string {
    const output = this.#outputs++;
    const { id: item_id, type, status } = item;
    if (type !== 'web_search_call') return this.#added(output, item) + this.#itemDone(output, item);
    // Events get their number when they are created, so the order of these calls matters.
    const added = this.#added(output, { ...item, status: 'in_progress' });
    const ends = status === 'failed' ? [] : ['completed'];
    const steps = ['in_progress', 'searching', ...ends].map((step) =>
      this.#life.event(`response.${type}.${step}`, { item_id, output_index: output }),
    );
    return added + steps.join('') + this.#itemDone(output, item);
  }

  #added(output: number, item: JsonObject): string {
    return this.#life.event('response.output_item.added', { output_index: output, item });
  }

  #itemDone(output: number, item: JsonObject): string {
    this.#done[output] = item;
    return this.#life.event('response.output_item.done', { output_index: output, item });
  }
}

function locationOf({ id, output }: OpenMessage): JsonObject {
  return { item_id: id, output_index: output, content_index: 0 };
}

function summaryLocation({ id, output }: OpenReasoning): JsonObject {
  return { item_id: id, output_index: output ?? 0, summary_index: 0 };
}

function callLocation({ call, output }: OpenCall): JsonObject {
  return { item_id: call.id, output_index: output ?? 0 };
}

function contentPart({ kind, annotations }: OpenMessage, text: string): JsonObject {
  if (kind === 'refusal') return { type: 'refusal', refusal: text };
  return { type: 'output_text', text, annotations: [...annotations], logprobs: [] };
}

function messageItem(
  { id, phase }: OpenMessage,
  status: string,
  content: readonly JsonObject[],
): JsonObject {
  return {
    id,
    type: 'message',
    status,
    role: 'assistant',
    content,
    ...(phase === undefined ? {} : { phase }),
  };
}

/** Usage with an input count: the reported one, else the estimate of the prompt. */
export function withEstimate(usage: Usage | undefined, context: AnswerContext): Usage {
  if (usage !== undefined && totalInputTokens(usage) !== undefined) return usage;
  return { ...usage, freshInputTokens: Math.max(1, context.promptTokensEstimate) };
}
