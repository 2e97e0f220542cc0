/**
 * Same-dialect calls: the bytes of request and answer travel as they are, apart from the model name
 * and what the usage report needs (wire/translation.md principle 6; C4, E6, F52, F53).
 */
import type { JsonObject } from '../../core/conversation.ts';
import type { AnswerContext, AnswerRelay, Ask, Frame } from '../../core/dialect.ts';
import type { GenerationEvent } from '../../core/generation.ts';
import { isObject, parseBody, spliceMembers, type JsonSource } from '../../core/json.ts';
import { findDocumentMember, findMember } from './frame-member.ts';
import { ownedKeys } from './head.ts';
import { ModelSplice } from './model-splice.ts';
import { cutMember } from './cut-member.ts';

const done = 'data: [DONE]\n\n';
const noKeys: ReadonlySet<string> = new Set();
/** Inside a JSON string the quotes would be escaped, so this only matches the member itself. */
const emptyChoices = /"choices"\s*:\s*\[\s*\]/;
const anyChoices = /"choices"\s*:\s*\[/;
const usageKey = Buffer.from('"usage"');
const modelKey = Buffer.from('"model"');

/** The client's bytes, asking for this target's model and, in streams, always for usage. */
export function relayRequest(source: JsonSource, ask: Ask): Buffer {
  const { value } = source;
  const options = isObject(value['stream_options']) ? value['stream_options'] : undefined;
  // A server without the option refuses the whole request over it.
  if (!ask.traits.usageOption && value['stream_options'] !== undefined) {
    const bytes = cutMember(source, 'stream_options');
    return relayRequest(parseBody(bytes, ownedKeys), ask);
  }
  const model = value['model'] === ask.model ? undefined : JSON.stringify(ask.model);
  const wanted = ask.stream && ask.traits.usageOption && options?.['include_usage'] !== true;
  const streamOptions = wanted ? JSON.stringify({ ...options, include_usage: true }) : undefined;
  if (model === undefined && streamOptions === undefined && source.unambiguous) return source.bytes;
  return spliceMembers(source, { model, stream_options: streamOptions });
}

/** Edits a relayed answer. State of one answer. */
export class ChatAnswerRelay implements AnswerRelay {
  readonly #context: AnswerContext;
  readonly #model: ModelSplice;
  #ended = false;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#model = new ModelSplice(context.model);
  }

  get ended(): boolean {
    return this.#ended;
  }

  frame(frame: Frame, events: readonly GenerationEvent[]): Buffer | undefined {
    const { data } = frame;
    if (this.#ended) return undefined;
    if (data === undefined || data === '') {
      // An event with a name and no data makes the clients parse an empty text.
      return frame.event === undefined && data === undefined ? frame.bytes : undefined;
    }
    if (data.startsWith('[DONE]')) {
      this.#ended = true;
      return withBlankLine(frame.bytes);
    }
    const bytes = this.#withoutUsage(frame, data, events);
    return bytes === undefined ? undefined : withBlankLine(this.#model.apply(bytes));
  }

  document(bytes: Buffer, body: JsonObject): Buffer {
    const { model } = this.#context;
    const named = body['model'];
    if (typeof named !== 'string' || named === model) return bytes;
    const span = findDocumentMember(bytes, modelKey);
    const value = span === undefined ? '' : bytes.toString('utf8', span.valueStart, span.end);
    if (span !== undefined && value === JSON.stringify(named)) {
      return Buffer.concat([
        bytes.subarray(0, span.valueStart),
        Buffer.from(JSON.stringify(model)),
        bytes.subarray(span.end),
      ]);
    }
    // Written in an unusual way: a full scan finds it.
    try {
      return spliceMembers(parseBody(bytes, noKeys), { model: JSON.stringify(model) });
    } catch {
      // Deeper or larger than the scan allows: the answer was parsed all the same.
      return Buffer.from(JSON.stringify({ ...body, model }));
    }
  }

  ending(): string {
    return this.#ended ? '' : done;
  }

  /**
   * Takes out the report that only the gateway asked for: a frame of its own is dropped, one that
   * rides on another frame becomes null. A count of the prompt that comes with the first frame is
   * for the gateway too; clients expect one report, at the end (E6).
   */
  #withoutUsage(
    frame: Frame,
    data: string,
    events: readonly GenerationEvent[],
  ): Buffer | undefined {
    if (!events.some(isUsage)) return frame.bytes;
    const wanted = this.#context.wantsUsageFrame;
    if (emptyChoices.test(data) || !anyChoices.test(data)) return wanted ? frame.bytes : undefined;
    const announcesPrompt = events[0]?.type === 'start' && !events.some(isFinish);
    if (wanted && !announcesPrompt) return frame.bytes;
    const span = findMember(frame.bytes, usageKey);
    if (span === undefined) return frame.bytes;
    return Buffer.concat([
      frame.bytes.subarray(0, span.valueStart),
      Buffer.from('null'),
      frame.bytes.subarray(span.end),
    ]);
  }
}

function isUsage(event: GenerationEvent): boolean {
  return event.type === 'usage';
}

function isFinish(event: GenerationEvent): boolean {
  return event.type === 'finish';
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** The last frame of a closed stream may lack the blank line that makes clients read it (F51). */
function withBlankLine(bytes: Buffer): Buffer {
  const last = bytes.length - 1;
  if (bytes[last] === lineFeed && bytes[last - 1] === lineFeed) return bytes;
  let lineEnds = 0;
  for (let i = last; i >= 0; i--) {
    const byte = bytes[i];
    if (byte === lineFeed) {
      lineEnds += 1;
      if (bytes[i - 1] === carriageReturn) i -= 1;
    } else if (byte === carriageReturn) lineEnds += 1;
    else break;
  }
  if (lineEnds >= 2) return bytes;
  return Buffer.concat([bytes, Buffer.from(lineEnds === 1 ? '\n' : '\n\n')]);
}
