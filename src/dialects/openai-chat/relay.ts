/**
 * Same-dialect calls: the bytes of request and answer travel as they are, apart from the model name
 * and what the usage report needs (wire/translation.md principle 6; C4, E6, F52, F53).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { AnswerContext, AnswerRelay, Ask, Frame } from '../../core/dialect.ts';
import { mergeUsage, type GenerationEvent, type Usage } from '../../core/generation.ts';
import { spliceAnswer, type WholeDocument } from '../../core/json-answer.ts';
import { isObject, parseBody, spliceMembers, type JsonSource } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { Pieces } from '../../core/pieces.ts';
import { chatTraits } from '../../core/traits.ts';
import { withBlankLine } from '../blank-line.ts';
import { CallIndexes } from './call-indexes.ts';
import { FinishMend, mendedDocument } from './finish-mend.ts';
import { findDocumentMember, findMember } from './frame-member.ts';
import { ownedKeys } from './head.ts';
import { ModelSplice } from './model-splice.ts';
import { restoredMessages } from './relay-history.ts';
import { findUsage, writeUsage } from './usage.ts';
import { mendedUsage } from './usage-mend.ts';
import { cutMember } from './cut-member.ts';

const done = 'data: [DONE]\n\n';
const noKeys: ReadonlySet<string> = new Set();
/** Inside a JSON string the quotes would be escaped, so these only match members. */
const choicesKey = '"choices"';
const emptyChoices = /"choices"\s*:\s*\[\s*\]/;
const finishReason = /"finish_reason"\s*:\s*"/;
const createdMember = /"created"\s*:\s*(\d+)/;
const usageKey = Buffer.from('"usage"');
const modelKey = Buffer.from('"model"');

/**
 * The client's bytes, asking for this target's model and, in streams, always for usage. Only for an
 * upstream that refuses a history without its own reasoning are the messages looked at.
 */
export function relayRequest(source: JsonSource, ask: Ask, notes?: Notes): Pieces {
  const { outline: value } = source;
  const options = isObject(value['stream_options']) ? value['stream_options'] : undefined;
  // A server without the option refuses the whole request over it.
  if (!ask.traits.usageOption && value['stream_options'] !== undefined) {
    const bytes = cutMember(source, 'stream_options');
    return relayRequest(parseBody(bytes, ownedKeys), ask, notes);
  }
  const wanted = ask.stream && ask.traits.usageOption && options?.['include_usage'] !== true;
  const edits = {
    model: value['model'] === ask.model ? undefined : JSON.stringify(ask.model),
    stream: forcedStream(value, ask),
    stream_options: wanted ? JSON.stringify({ ...options, include_usage: true }) : undefined,
    messages: jsonOf(restoredMessages(source, ask, notes)),
    ...(ask.maxOutputTokens === undefined ? {} : cappedBy(value, ask, ask.maxOutputTokens)),
  };
  const same = Object.values(edits).every((edit) => edit === undefined);
  return same && source.unambiguous ? source.pieces : spliceMembers(source, edits);
}

const capFields = ['max_completion_tokens', 'max_tokens'] as const;

/** The cap in the client's own spelling, or in the model's where the client set none. */
function cappedBy(value: JsonObject, { traits }: Ask, cap: number): { [field: string]: string } {
  const own = capFields.filter((field) => typeof value[field] === 'number');
  const fields = own.length === 0 ? [traits.maxTokensField] : own;
  return Object.fromEntries(fields.map((field) => [field, String(cap)]));
}

/** Where documents are refused a stream is asked for that the client did not want (E11). */
function forcedStream(value: JsonObject, ask: Ask): string | undefined {
  return ask.traits.streams === 'only' && value['stream'] !== true ? 'true' : undefined;
}

function jsonOf(value: Json | undefined): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

/** Edits a relayed answer. State of one answer. */
export class ChatAnswerRelay implements AnswerRelay {
  readonly #context: AnswerContext;
  readonly #model: ModelSplice;
  readonly #calls = new CallIndexes();
  readonly #finish = new FinishMend();
  #ended = false;
  /** What the usage chunk must repeat if the gateway has to write it. */
  #id = '';
  #created: string | undefined;
  #usage: Usage | undefined;
  /** A usage object reached the client. */
  #usageShown = false;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#model = new ModelSplice(context.model);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Nothing in it is to be remembered, numbered, taken out or mended. */
  plainFrame({ bytes }: Frame): Buffer | undefined {
    return this.#ended ? undefined : withBlankLine(this.#model.apply(bytes));
  }

  frame(frame: Frame, events: readonly GenerationEvent[], gap?: Usage): Buffer | undefined {
    const { data } = frame;
    if (this.#ended) return undefined;
    if (events.length > 0) this.#remember(data, events, gap);
    if (data === undefined || data === '') {
      // An event with a name and no data makes the clients parse an empty text.
      return frame.event === undefined && data === undefined ? frame.bytes : undefined;
    }
    if (data.startsWith('[DONE]')) {
      this.#ended = true;
      const owed = this.#owedUsage();
      const bytes = withBlankLine(frame.bytes);
      return owed === '' ? bytes : Buffer.concat([Buffer.from(owed), bytes]);
    }
    return this.#chunk(frame, data, events);
  }

  #chunk(frame: Frame, data: string, events: readonly GenerationEvent[]): Buffer | undefined {
    // The clients read `choices` of every chunk without looking whether it is there.
    if (!data.includes(choicesKey)) return undefined;
    const bytes = this.#calls.apply(data) ?? this.#withoutUsage(frame, data, events);
    if (bytes === undefined) return undefined;
    const mended = this.#finish.apply(data, bytes, events);
    return withBlankLine(this.#model.apply(mended ?? bytes));
  }

  document(answer: WholeDocument, usage?: Usage): Buffer {
    const { bytes, body } = answer;
    const mended = mendedDocument(body);
    if (mended !== undefined) {
      return this.document({ bytes: Buffer.from(JSON.stringify(mended)), body: mended }, usage);
    }
    const model = this.#documentModel(body);
    const owed = this.#documentUsage(body, usage);
    if (model === undefined && owed === undefined) return bytes;
    const renamed = owed === undefined ? replaceModel(bytes, body['model'], model) : undefined;
    if (renamed !== undefined) return renamed;
    const members = {
      model: model === undefined ? undefined : JSON.stringify(model),
      usage: owed === undefined ? undefined : JSON.stringify(owed),
    };
    const spliced = spliceAnswer(answer, members);
    if (spliced !== undefined) return spliced;
    // Written in an unusual way, or more to change: a full scan finds the places.
    try {
      return spliceMembers(parseBody(bytes, noKeys), members).whole();
    } catch {
      // Deeper or larger than the scan allows: the answer was parsed all the same.
      const edited = { ...body, model: model ?? body['model'], usage: owed ?? body['usage'] };
      return Buffer.from(JSON.stringify(edited));
    }
  }

  ending(gap?: Usage): string {
    if (gap !== undefined) this.#usage = gap;
    return this.#ended ? '' : this.#owedUsage() + done;
  }

  cutShort(usage: Usage, choices: number): string {
    let text = '';
    for (let index = 0; index < choices; index++) {
      const choice = { index, delta: {}, logprobs: null, finish_reason: 'length' };
      const more = this.#context.wantsUsageFrame ? { usage: null } : {};
      text += `data: ${JSON.stringify({ ...this.#chunkFrame(), choices: [choice], ...more })}\n\n`;
    }
    this.#usageShown = false;
    return text + this.ending(usage);
  }

  /** The usage to write: the gateway's where there is none, the upstream's where it reads wrong. */
  #documentUsage(body: JsonObject, gap: Usage | undefined): JsonObject | undefined {
    const raw = body['usage'];
    if (!isObject(raw)) return gap === undefined ? undefined : writeUsage(gap);
    const usage = findUsage(body, chatTraits);
    return usage === undefined ? undefined : mendedUsage(raw, usage);
  }

  /** The client's model name, where the document has another. */
  #documentModel(body: JsonObject): string | undefined {
    const { model } = this.#context;
    return typeof body['model'] === 'string' && body['model'] !== model ? model : undefined;
  }

  #remember(data: string | undefined, events: readonly GenerationEvent[], gap?: Usage): void {
    for (const event of events) {
      if (event.type === 'start') {
        this.#id = event.id;
        this.#created = createdMember.exec(data ?? '')?.[1];
      } else if (event.type === 'usage') {
        this.#usage = mergeUsage(this.#usage, event.usage);
      }
    }
    this.#usage = gap ?? this.#usage;
  }

  /** The usage chunk that the client asked for, when no frame of the upstream held it (E7, F55). */
  #owedUsage(): string {
    if (!this.#context.wantsUsageFrame || this.#usageShown || this.#usage === undefined) return '';
    const chunk = { ...this.#chunkFrame(), choices: [], usage: writeUsage(this.#usage) };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  }

  /** What the chunks of the gateway's own have in common with the upstream's. */
  #chunkFrame(): JsonObject {
    const { createdSeconds, model } = this.#context;
    return {
      id: this.#id,
      object: 'chat.completion.chunk',
      created: this.#created === undefined ? createdSeconds : Number(this.#created),
      model,
    };
  }

  /**
   * Takes out the report that only the gateway asked for: a frame of its own is dropped, one that
   * rides on another frame becomes null. What the client asked for says what this dialect means by
   * it. A count of the prompt that comes with the first frame is
   * for the gateway too; clients expect one report, at the end (E6).
   */
  #withoutUsage(
    frame: Frame,
    data: string,
    events: readonly GenerationEvent[],
  ): Buffer | undefined {
    const report = events.find((event) => event.type === 'usage');
    if (report === undefined) return frame.bytes;
    const wanted = this.#context.wantsUsageFrame;
    if (!wanted && emptyChoices.test(data)) return undefined;
    const span = findMember(frame.bytes, usageKey);
    if (span === undefined) return frame.bytes;
    const announcesPrompt = events[0]?.type === 'start' && !finishReason.test(data);
    let shown = 'null';
    if (wanted && !announcesPrompt) {
      this.#usageShown = true;
      const { raw } = report.usage;
      const mended = raw === undefined ? undefined : mendedUsage(raw, report.usage);
      if (mended === undefined) return frame.bytes;
      shown = JSON.stringify(mended);
    }
    return Buffer.concat([
      frame.bytes.subarray(0, span.valueStart),
      Buffer.from(shown),
      frame.bytes.subarray(span.end),
    ]);
  }
}

/** The document with another value of its `model`; undefined when it is not where it should be. */
function replaceModel(
  bytes: Buffer,
  from: Json | undefined,
  to: string | undefined,
): Buffer | undefined {
  const span = findDocumentMember(bytes, modelKey);
  if (span === undefined) return undefined;
  if (bytes.toString('utf8', span.valueStart, span.end) !== JSON.stringify(from)) return undefined;
  return Buffer.concat([
    bytes.subarray(0, span.valueStart),
    Buffer.from(JSON.stringify(to)),
    bytes.subarray(span.end),
  ]);
}
