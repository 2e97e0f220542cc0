/**
 * Reads a chat-completions stream into events. The hottest code of the gateway: a frame that only continues a text is
 * recognised by its layout (`shared/plain-layout.ts`) and not parsed; each other frame is parsed once.
 */
import type { Citation, Part } from '../../../core/conversation.ts';
import type { Frame, StreamReader } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent, Usage } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import { AnswerStrangers } from '../../../core/shape.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { tryParseAnswerEvent, tryParseObject } from '../../../json/parse.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import {
  answerObject,
  answerObjects,
  answerText,
  isPresent,
  wrongType,
} from '../../shared/answers.ts';
import { type LayoutRules, PlainLayout } from '../../shared/plain-layout.ts';
import { looksLikeError, readErrorValue } from '../../shared/vendor-errors.ts';
import type { AnswerIdentity } from '../../shared/tool-names.ts';
import { readCitations } from '../message-forms.ts';
import {
  answerThinking,
  emptyEntry,
  readAnswerReasoning,
  type ReasoningEntry,
  reasoningPart,
} from '../reasoning.ts';
import {
  oneChoice,
  otherParts,
  pieceKind,
  runWithoutMembers,
  sourcesWithoutText,
  sourceWithoutAddress,
  transcriptOf,
} from './response.ts';
import { answerShape } from './shape.ts';
import { ExecutedTools, listedRuns, SourceLists } from './sources.ts';
import { type CallTraits, StreamCalls } from './stream-calls.ts';
import { choiceUsage, findUsage, isCut, readFailedFinish, readFinish } from './usage.ts';

const none: readonly GenerationEvent[] = [];

export class ChatStreamReader implements StreamReader {
  readonly #traits: UpstreamTraits;
  readonly #parts: StreamParts;
  readonly #notes: Notes | undefined;
  readonly #strangers: AnswerStrangers | undefined;
  #started = false;
  /** The finished choice. Later finish reasons are ignored. */
  #finish: JsonObject | undefined;
  /** Unfinished choices other than the first (`n > 1` exists in relay only). */
  readonly #openChoices = new Set<number>();
  /** Finished choices other than the first: what comes after a finish does not open one again. */
  readonly #endedChoices = new Set<number>();
  readonly #requested: number;
  #otherChoicesLength = 0;
  #hasOthers = false;
  /** The finish of a choice that goes to the client says that it failed. */
  #hasFailed = false;
  /** `[DONE]`, an error or the close was read. Later data is ignored. */
  #over = false;
  readonly #layout = new PlainLayout(plainChunk);
  #plain = false;

  /**
   * @param notes absent where the upstream's own bytes go to the client
   * @param choices how many answers were requested
   */
  constructor(traits: UpstreamTraits, notes?: Notes, choices = 1) {
    this.#traits = traits;
    this.#requested = choices;
    this.#parts = new StreamParts(traits, notes);
    this.#notes = notes;
    this.#strangers = notes && new AnswerStrangers(notes);
  }

  /**
   * A finish was read and the stream has not ended yet: usage reports may follow, and the last
   * one counts (F58). A server that neither ends nor closes must not keep the client waiting.
   */
  get finishPending(): boolean {
    return this.#finish !== undefined && this.#openChoices.size === 0 && !this.#over;
  }

  get plain(): boolean {
    return this.#plain;
  }

  get otherChoicesLength(): number {
    return this.#otherChoicesLength;
  }

  /** @throws GatewayError `upstream_invalid` for data that is not a JSON object. */
  read(frame: Frame): readonly GenerationEvent[] {
    const { data } = frame;
    this.#plain = false;
    if (this.#over || data === undefined || data === '') return none;
    const text = frame.event !== 'error' ? this.#layout.textOf(data) : undefined;
    const again = text === undefined ? undefined : this.#continueText(text);
    if (again !== undefined) return [again];
    const chunk = tryParseAnswerEvent(data);
    if (frame.event === 'error') return this.#fail(readErrorValue(chunk ?? data));
    if (chunk === undefined) return this.#readOther(data);
    const failure = findError(chunk);
    if (failure !== undefined) return this.#fail(readErrorValue(failure));
    return this.#readChunk(chunk, data);
  }

  end(): readonly GenerationEvent[] {
    if (this.#over) return none;
    this.#over = true;
    if (this.#finish !== undefined && this.#openChoices.size === 0) return this.#finishEvents();
    const error = this.#started
      ? new GatewayError('stream_interrupted', 'The upstream closed the stream before its end.')
      : new GatewayError('upstream_invalid', 'The upstream sent an empty stream.');
    return [{ type: 'error', error }];
  }

  /** Reads `[DONE]`. Any other text is not JSON and fails the stream. */
  #readOther(data: string): readonly GenerationEvent[] {
    const text = data.trim();
    if (text === '') return none;
    if (!text.startsWith('[DONE]')) {
      this.#over = true;
      throw new GatewayError('upstream_invalid', 'The upstream sent an event that is not JSON.');
    }
    if (this.#finish === undefined || this.#hasFailed || this.#lacksOther()) {
      return this.#fail(
        new GatewayError(
          'stream_interrupted',
          'The upstream ended the stream without saying why the answer ended.',
        ),
      );
    }
    this.#over = true;
    return this.#finishEvents();
  }

  /** Whether a further choice that the client requested and gets has begun, and has no finish. */
  #lacksOther(): boolean {
    return this.#notes === undefined && this.#openChoices.size > 0;
  }

  #readChunk(chunk: JsonObject, data: string): readonly GenerationEvent[] {
    this.#strangers?.see(chunk, answerShape);
    this.#parts.list(chunk);
    const text = plainTextOf(chunk);
    const only = text === undefined ? undefined : this.#continueText(text);
    if (only !== undefined) {
      this.#layout.learn(data);
      return [only];
    }
    const choice = firstChoice(chunk['choices']);
    assertChoices(chunk['choices']);
    this.#watchChoices(chunk['choices']);
    const usage = this.#usageOf(chunk);
    if (usage === undefined && (choice === undefined || isFilterReport(choice))) return none;
    const events: GenerationEvent[] = [];
    this.#start(chunk, events);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    if (choice !== undefined) this.#readChoice(withExactArguments(choice, data), events);
    return events;
  }

  #watchChoices(choices: Json | undefined): void {
    if (!isArray(choices)) return;
    for (const choice of choices) {
      const index = isObject(choice) ? choice['index'] : undefined;
      if (!isObject(choice) || typeof index !== 'number' || index === 0) continue;
      if (isFilterReport(choice)) continue;
      this.#noteOtherChoice();
      this.#otherChoicesLength += textLength(choice['delta']);
      if (this.#endedChoices.has(index)) continue;
      // The client did not request it: it neither fails the answer nor holds up its end.
      if (this.#notes === undefined && index >= this.#requested) continue;
      const reason = choice['finish_reason'];
      const isLost = this.#notes === undefined && readFailedFinish(reason) !== undefined;
      if (isLost) this.#hasFailed = true;
      if (isPresent(reason) && !isLost) {
        this.#openChoices.delete(index);
        this.#endedChoices.add(index);
      } else this.#openChoices.add(index);
    }
  }

  /** That of a choice is not all of the usage where there are several. */
  #usageOf(chunk: JsonObject): Usage | undefined {
    const usage = findUsage(chunk, this.#traits);
    const isPartial = this.#hasOthers && usage?.raw === choiceUsage(chunk['choices']);
    return isPartial ? undefined : usage;
  }

  #noteOtherChoice(): void {
    if (!this.#hasOthers) this.#notes?.lost(['choices'], oneChoice);
    this.#hasOthers = true;
  }

  #start(chunk: JsonObject, events: GenerationEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    this.#parts.answer = { id: chunk['id'], created: chunk['created'] };
    events.push({ type: 'start', id: textOf(chunk['id']), model: textOf(chunk['model']) });
  }

  /** The one event of a frame that continues an open text; undefined where none is open. */
  #continueText(text: string): GenerationEvent | undefined {
    if (!this.#started || this.#finish !== undefined) return undefined;
    const event = this.#parts.continueText(text);
    this.#plain = event !== undefined;
    return event;
  }

  #readChoice(choice: JsonObject, events: GenerationEvent[]): void {
    const delta = answerObject(choice['delta'], 'a delta');
    if (delta !== undefined) this.#parts.read(delta, events);
    const reason = choice['finish_reason'];
    // Content after the finish counts; another finish reason does not.
    if (typeof reason !== 'string' || reason === '' || this.#finish !== undefined) return;
    const failure = readFailedFinish(reason);
    if (failure === undefined) this.#finish = choice;
    else {
      this.#over = true;
      events.push({ type: 'error', error: failure });
    }
  }

  #finishEvents(): readonly GenerationEvent[] {
    const events: GenerationEvent[] = [];
    this.#parts.close(events, isCut(this.#finish?.['finish_reason']));
    if (this.#parts.brokenCalls) {
      this.#over = true;
      const error = new GatewayError(
        'upstream_invalid',
        'The upstream sent a call without a name.',
      );
      return [{ type: 'error', error }];
    }
    const reason = readFinish(this.#finish ?? {}, this.#parts.hasToolCalls);
    events.push({ type: 'finish', reason });
    return events;
  }

  #fail(error: GatewayError): readonly GenerationEvent[] {
    this.#over = true;
    return [{ type: 'error', error }];
  }
}

/** Azure's asynchronous filter reports its progress in chunks without content and without the answer's id. */
function isFilterReport(choice: JsonObject): boolean {
  return (
    choice['content_filter_offsets'] !== undefined &&
    !isPresent(choice['finish_reason']) &&
    textLength(choice['delta']) === 0
  );
}

/** @throws GatewayError `upstream_invalid` for a value without readable choices. */
function assertChoices(choices: Json | undefined): void {
  if (choices === undefined || choices === null) return;
  if (!isArray(choices) || !choices.every(isObject)) throw wrongType('choices');
}

/** Choice 0; others come from `n > 1` (F62). A missing index means the only choice. */
function firstChoice(choices: Json | undefined): JsonObject | undefined {
  if (!isArray(choices)) return undefined;
  for (const choice of choices) {
    if (!isObject(choice)) continue;
    // An index that is no number counts as missing.
    if (typeof choice['index'] !== 'number' || choice['index'] === 0) return choice;
  }
  return undefined;
}

/** Arguments that are an object instead of a text: their numbers must not lose digits. */
function withExactArguments(choice: JsonObject, data: string): JsonObject {
  const { delta } = choice;
  const calls = isObject(delta) ? delta['tool_calls'] : undefined;
  if (!isArray(calls) || !calls.some(hasObjectArguments)) return choice;
  return firstChoice(tryParseObject(data)?.['choices']) ?? choice;
}

function hasObjectArguments(call: Json): boolean {
  const called = isObject(call) ? call['function'] : undefined;
  return isObject(called) && isObject(called['arguments']);
}

/** The error in a chunk, in any of the forms of servers. */
function findError(chunk: JsonObject): Json | undefined {
  if (isPresent(chunk['error'])) return chunk;
  const { choices } = chunk;
  if (isArray(choices)) {
    const first = choices[0];
    if (isObject(first) && isPresent(first['error'])) return first['error'];
  } else if (!isObject(chunk['usage']) && looksLikeError(chunk)) {
    return chunk;
  }
  const groq = chunk['x_groq'];
  if (isObject(groq) && isPresent(groq['error'])) return groq['error'];
  return undefined;
}

/** The number of characters in all texts of a delta. */
function textLength(value: Json | undefined): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let length = 0;
  for (const [key, member] of Object.entries(value)) {
    if (!wordless.has(key)) length += textLength(member);
  }
  return length;
}

/** Members of a delta that are no content. */
const wordless: ReadonlySet<string> = new Set(['role', 'id', 'type', 'signature']);

// The parts of a streamed answer. State is kept by what the deltas say of themselves (kind, tool
// index, id, reasoning index), never as one "current block": calls may come interleaved.

/** Numbers the parts of one answer. */
export interface PartCounter {
  next: number;
}

interface OpenReasoning {
  readonly part: number;
  readonly index: number | undefined;
  /** Signed reasoning may get its signature after the text has begun. */
  awaitsSignature: boolean;
}

class StreamParts {
  readonly #counter: PartCounter = { next: 0 };
  readonly #calls: StreamCalls;
  readonly #notes: Notes | undefined;
  readonly #runs = new ExecutedTools();
  /** Sources that no text has yet. */
  #sources: Citation[] = [];
  /** The addresses of all sources so far. */
  readonly #cited = new Set<string>();
  readonly #lists = new SourceLists();
  #unread = false;
  #unreadRuns = false;
  #text: number | undefined;
  #refusal: number | undefined;
  #reasoning: OpenReasoning | undefined;

  constructor(traits: CallTraits, notes: Notes | undefined) {
    this.#calls = new StreamCalls(this.#counter, traits);
    this.#notes = notes;
  }

  set answer(identity: AnswerIdentity) {
    this.#calls.answer = identity;
  }

  get hasToolCalls(): boolean {
    return this.#calls.started > 0;
  }

  /** A call never got a name, so a part of the answer is missing. */
  get brokenCalls(): boolean {
    return this.#calls.nameless;
  }

  /** The delta for an open text part. Undefined if another part is open or must close. */
  continueText(delta: string): GenerationEvent | undefined {
    if (this.#text === undefined) return undefined;
    return { type: 'part-delta', index: this.#text, field: 'text', delta };
  }

  /** Sources that a chunk or a delta lists belong to the text that ends next. Many servers repeat them in each chunk. */
  list(holder: JsonObject): void {
    if (holder['citations'] === undefined && holder['search_results'] === undefined) return;
    const listed = this.#lists.read(holder);
    if (listed === undefined) return;
    const { citations, unread } = listed;
    if (unread && !this.#unread) this.#notes?.lost(['citations'], sourceWithoutAddress);
    this.#unread ||= unread;
    for (const citation of citations) this.#addSource(citation);
  }

  /** Reads all parts of a delta, in the order reasoning, runs of tools, text, refusal, calls. */
  read(delta: JsonObject, events: GenerationEvent[]): void {
    for (const entry of readAnswerReasoning(delta)) this.#readReasoning(entry, events);
    if (delta['executed_tools'] !== undefined) this.#readRuns(delta);
    this.list(delta);
    this.#readContent(delta, events);
    const refusal = answerText(delta['refusal'], 'a refusal');
    if (refusal !== '') this.#addRefusal(refusal, events);
    const calls = answerObjects(delta['tool_calls'], 'tool_calls');
    if (calls.length > 0) {
      this.#endSpoken(events);
      for (const call of calls) this.#calls.read(call, events);
    }
    const legacy = answerObject(delta['function_call'], 'a function_call');
    if (legacy !== undefined) {
      this.#endSpoken(events);
      this.#calls.read({ index: 0, function: legacy }, events);
    }
    this.#readCitations(delta['annotations'], events);
  }

  #readRuns(delta: JsonObject): void {
    const { runs, unread } = listedRuns(delta);
    if (unread && !this.#unreadRuns) this.#notes?.lost(['executed_tools'], runWithoutMembers);
    this.#unreadRuns ||= unread;
    for (const run of runs) this.#runs.read(run);
  }

  /**
   * Ends all open parts, in the order of appearance.
   * @param cut the token limit ended the answer.
   */
  close(events: GenerationEvent[], cut: boolean): void {
    this.#addRuns(events);
    this.#cite(events);
    if (this.#sources.length > 0) this.#notes?.lost(['citations'], sourcesWithoutText);
    const open: number[] = [];
    if (this.#text !== undefined) open.push(this.#text);
    if (this.#refusal !== undefined) open.push(this.#refusal);
    if (this.#reasoning !== undefined) open.push(this.#reasoning.part);
    this.#text = undefined;
    this.#refusal = undefined;
    this.#reasoning = undefined;
    for (const index of open.sort((a, b) => a - b)) events.push({ type: 'part-end', index });
    this.#calls.close(events, cut);
  }

  #readContent(delta: JsonObject, events: GenerationEvent[]): void {
    const { content } = delta;
    if (isArray(content)) for (const piece of content) this.#readPiece(piece, events);
    else {
      const text = answerText(content, 'a content');
      this.#addText(text === '' ? transcriptOf(delta) : text, events);
    }
    for (const part of otherParts(delta)) {
      events.push({ type: 'part-end', index: this.#start(part, events) });
    }
  }

  /** A Mistral content part. */
  #readPiece(piece: Json, events: GenerationEvent[]): void {
    if (!isObject(piece)) return this.#addText(answerText(piece, 'a content part'), events);
    const kind = pieceKind(piece);
    if (kind === 'text') return this.#addText(answerText(piece['text'], 'a text'), events);
    const text = kind === 'thinking' ? answerThinking(piece) : '';
    if (text !== '') this.#readReasoning({ ...emptyEntry, text }, events);
  }

  #addText(delta: string, events: GenerationEvent[]): void {
    if (delta === '') return;
    if (this.#text === undefined) {
      this.#addRuns(events);
      if (this.#reasoning?.awaitsSignature !== true) this.#endReasoning(events);
      this.#endRefusal(events);
      this.#calls.closeComplete(events);
      this.#text = this.#start({ type: 'text', text: '' }, events);
    }
    events.push({ type: 'part-delta', index: this.#text, field: 'text', delta });
  }

  #addRefusal(delta: string, events: GenerationEvent[]): void {
    if (this.#refusal === undefined) {
      this.#endSpoken(events);
      this.#calls.closeComplete(events);
      this.#refusal = this.#start({ type: 'refusal', text: '' }, events);
    }
    events.push({ type: 'part-delta', index: this.#refusal, field: 'text', delta });
  }

  #readReasoning(entry: ReasoningEntry, events: GenerationEvent[]): void {
    if (entry.text === '' && entry.signature === undefined && entry.encrypted === undefined) return;
    const open = this.#reasoning;
    const other =
      open === undefined ||
      entry.encrypted !== undefined ||
      (entry.index !== undefined && open.index !== undefined && entry.index !== open.index);
    if (other) this.#startReasoning(entry, events);
    else this.#continueReasoning(open, entry, events);
  }

  #startReasoning(entry: ReasoningEntry, events: GenerationEvent[]): void {
    this.#endSpoken(events);
    this.#calls.closeComplete(events);
    const part = this.#start(reasoningPart(entry), events);
    this.#reasoning = {
      part,
      index: entry.index,
      awaitsSignature: entry.signed && entry.signature === undefined,
    };
    // Encrypted reasoning arrives in one piece.
    if (entry.encrypted !== undefined) this.#endReasoning(events);
  }

  #continueReasoning(open: OpenReasoning, entry: ReasoningEntry, events: GenerationEvent[]): void {
    const { part: index } = open;
    if (entry.text !== '') {
      events.push({ type: 'part-delta', index, field: 'text', delta: entry.text });
    }
    if (entry.signature !== undefined) {
      events.push({ type: 'part-delta', index, field: 'signature', delta: entry.signature });
      open.awaitsSignature = false;
      if (this.#text !== undefined) this.#endReasoning(events);
    }
  }

  /** Those of a text are known with their words. Others wait for a text. */
  #readCitations(annotations: Json | undefined, events: GenerationEvent[]): void {
    if (annotations === undefined || annotations === null) return;
    for (const citation of readCitations(annotations)) {
      const { url } = citation;
      if (url !== undefined) this.#cited.add(url);
      this.#sources = this.#sources.filter((source) => source.url !== url);
      if (this.#text === undefined) this.#sources.push(citation);
      else events.push({ type: 'part-citation', index: this.#text, citation });
    }
  }

  #addSource(citation: Citation): void {
    const { url = '', title } = citation;
    if (!this.#cited.has(url)) {
      this.#cited.add(url);
      this.#sources.push(citation);
    } else if (title !== undefined) {
      // The bare address may have come before its title.
      const at = this.#sources.findIndex((each) => each.url === url && each.title === undefined);
      if (at !== -1) this.#sources[at] = citation;
    }
  }

  /** Gives the open text the sources that no text has. */
  #cite(events: GenerationEvent[]): void {
    if (this.#text === undefined) return;
    for (const citation of this.#sources.splice(0)) {
      events.push({ type: 'part-citation', index: this.#text, citation });
    }
  }

  /** Tools that the provider ran before the next text. */
  #addRuns(events: GenerationEvent[]): void {
    for (const run of this.#runs.take()) {
      this.#endSpoken(events);
      events.push({ type: 'part-end', index: this.#start(run, events) });
    }
  }

  #start(part: Part, events: GenerationEvent[]): number {
    const index = this.#counter.next++;
    events.push({ type: 'part-start', index, part });
    return index;
  }

  /** Ends open text, refusal and reasoning. */
  #endSpoken(events: GenerationEvent[]): void {
    this.#endReasoning(events);
    this.#endText(events);
    this.#endRefusal(events);
  }

  #endText(events: GenerationEvent[]): void {
    if (this.#text === undefined) return;
    this.#cite(events);
    events.push({ type: 'part-end', index: this.#text });
    this.#text = undefined;
  }

  #endRefusal(events: GenerationEvent[]): void {
    if (this.#refusal === undefined) return;
    events.push({ type: 'part-end', index: this.#refusal });
    this.#refusal = undefined;
  }

  #endReasoning(events: GenerationEvent[]): void {
    if (this.#reasoning === undefined) return;
    events.push({ type: 'part-end', index: this.#reasoning.part });
    this.#reasoning = undefined;
  }
}

/** How most servers write a chunk that continues a text. */
const plainChunk: LayoutRules = {
  text: /"content"\s*:\s*"/,
  textOf: plainTextOf,
  passing: [/"p"\s*:\s*"/, /"obfuscation"\s*:\s*"/],
};

/** The text of a frame that only continues a text. Undefined for any other frame. */
function plainTextOf(chunk: JsonObject): string | undefined {
  if (isObject(chunk['usage']) || chunk['x_groq'] !== undefined) return undefined;
  if (choiceUsage(chunk['choices']) !== undefined) return undefined;
  const delta = onlyDelta(chunk['choices']);
  const content = delta?.['content'];
  if (delta === undefined || typeof content !== 'string' || content === '') return undefined;
  for (const key in delta) {
    if (key !== 'content' && key !== 'role' && isPresent(delta[key])) return undefined;
  }
  return content;
}

/** The delta of an only choice with index 0 that has not finished. */
function onlyDelta(choices: Json | undefined): JsonObject | undefined {
  if (!isArray(choices) || choices.length !== 1) return undefined;
  const [choice] = choices;
  if (!isObject(choice) || (choice['index'] ?? 0) !== 0) return undefined;
  const { delta } = choice;
  return isObject(delta) && !isPresent(choice['finish_reason']) ? delta : undefined;
}
