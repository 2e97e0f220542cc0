/**
 * Relays answers. The bytes are passed on unchanged, except for the model name and the usage report. The report is sent
 * once, and only to a client that requested it.
 */
import type { AnswerContext, AnswerRelay, Frame } from '../../../core/dialect.ts';
import { type GenerationEvent, mergeUsage, type Usage } from '../../../core/generation.ts';
import { chatTraits } from '../../../core/traits.ts';
import { spliceAnswer, parseBody, type WholeDocument } from '../../../core/client-body.ts';
import { spliceMembers } from '../../../json/edit.ts';
import { tryParseObject } from '../../../json/parse.ts';
import { findMember, type MemberSpan, type Span } from '../../../json/scan.ts';
import { isObject, type Json, type JsonObject, isArray } from '../../../json/value.ts';
import { withBlankLine, withModel } from '../../shared/answers.ts';
import { repairedUsage } from '../../shared/usage-sums.ts';
import { type AnswerIdentity, derivedCallId } from '../../shared/tool-names.ts';
import { readCall } from '../message-forms.ts';
import { StreamCalls } from '../answer/stream-calls.ts';
import { findUsage, writeUsage } from '../answer/usage.ts';

const done = 'data: [DONE]\n\n';
const noKeys: ReadonlySet<string> = new Set();
/** Inside a JSON string the quotes would be escaped, so these match members only. */
const choicesKey = '"choices"';
const emptyChoices = /"choices"\s*:\s*\[\s*\]/;
const nullChoices = /"choices"\s*:\s*null/;
const someUsage = /"usage"\s*:\s*\{/;
const createdMember = /"created"\s*:\s*(\d+)/;
const usageKey = Buffer.from('"usage"');
const modelKey = Buffer.from('"model"');

/** Edits a relayed answer. State of one answer. */
export class ChatAnswerRelay implements AnswerRelay {
  readonly #context: AnswerContext;
  /** This and the next are made for streams only. */
  #model: ModelSplice | undefined;
  #choices: ChoiceRepair | undefined;
  #ended = false;
  /** Members that a usage chunk of the gateway must repeat. */
  #id = '';
  #created: string | undefined;
  #usage: Usage | undefined;
  /** The usage is an estimate of the gateway. */
  #estimated = false;
  /** The upstream's latest usage report in a frame of its own. It is sent after all other frames. */
  #report: Buffer | undefined;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  #renamed(bytes: Buffer): Buffer {
    this.#model ??= new ModelSplice(this.#context.model);
    return this.#model.apply(bytes);
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Passes on a frame that needs no edit and has no state for later frames. */
  plainFrame({ bytes }: Frame): Buffer | undefined {
    return this.#ended ? undefined : withBlankLine(this.#renamed(bytes));
  }

  frame(frame: Frame, events: readonly GenerationEvent[], gap?: Usage): Buffer | undefined {
    const { data } = frame;
    if (this.#ended) return undefined;
    if (events.length > 0) {
      for (const event of events) {
        if (event.type === 'start') {
          this.#id = event.id;
          this.#created = createdMember.exec(data ?? '')?.[1];
        } else if (event.type === 'usage') {
          this.#usage = mergeUsage(this.#usage, event.usage);
          this.#report = undefined;
        }
      }
      this.#estimate(gap);
    }
    if (data === undefined || data === '') {
      // Clients fail on an event with a name and no data: they parse an empty text.
      return frame.event === undefined && data === undefined ? frame.bytes : undefined;
    }
    if (data.startsWith('[DONE]')) {
      this.#ended = true;
      const owed = this.#missingUsage();
      const bytes = withBlankLine(frame.bytes);
      return owed === '' ? bytes : Buffer.concat([Buffer.from(owed), bytes]);
    }
    return this.#chunk(frame, data);
  }

  /** Each repair edits the result of the one before, so that all of them apply to any frame. */
  #chunk(frame: Frame, data: string): Buffer | undefined {
    // Clients read `choices` of every chunk without checking that it exists.
    // An inner object may have a member of this name that is null.
    if (
      !data.includes(choicesKey) ||
      (nullChoices.test(data) && tryParseObject(data)?.['choices'] === null)
    )
      return undefined;
    this.#choices ??= new ChoiceRepair();
    const repaired = this.#choices.apply(data);
    const bytes = repaired === undefined ? frame.bytes : restated(repaired);
    const shown = someUsage.test(data) ? this.#withoutUsage(bytes, data) : bytes;
    return shown === undefined ? undefined : withBlankLine(this.#renamed(shown));
  }

  document(answer: WholeDocument, gap?: Usage): Buffer {
    const { bytes, body } = answer;
    const repaired = repairedDocument(body);
    if (repaired !== undefined) {
      return this.document({ bytes: Buffer.from(JSON.stringify(repaired)), body: repaired }, gap);
    }
    const model = this.#documentModel(body);
    const owed = this.#documentUsage(body, gap);
    if (model === undefined && owed === undefined) return bytes;
    const renamed =
      owed === undefined && model !== undefined
        ? withModel(bytes, body['model'], model)
        : undefined;
    if (renamed !== undefined) return renamed;
    const members = {
      model: model === undefined ? undefined : JSON.stringify(model),
      usage: owed === undefined ? undefined : JSON.stringify(owed),
    };
    const spliced = spliceAnswer(answer, members);
    if (spliced !== undefined) return spliced;
    // Written in an unusual way, or more to change: a full scan finds the members.
    try {
      return spliceMembers(parseBody(bytes, noKeys), members).whole();
    } catch {
      // Deeper or larger than the scan allows, although the answer could be parsed.
      const edited = { ...body, model: model ?? body['model'], usage: owed ?? body['usage'] };
      return Buffer.from(JSON.stringify(edited));
    }
  }

  ending(gap?: Usage): string {
    this.#estimate(gap);
    return this.#ended ? '' : this.#missingUsage() + done;
  }

  cutShort(usage: Usage, choices: number): string {
    let text = '';
    for (let index = 0; index < choices; index++) {
      const choice = { index, delta: {}, logprobs: null, finish_reason: 'length' };
      const more = this.#context.wantsUsageFrame ? { usage: null } : {};
      text += `data: ${JSON.stringify({ ...this.#chunkFrame(), choices: [choice], ...more })}\n\n`;
    }
    this.#report = undefined;
    return text + this.ending(usage);
  }

  /** The usage to write: the gateway's estimate if there is no plausible one, or a corrected form of the upstream's. */
  #documentUsage(body: JsonObject, gap: Usage | undefined): JsonObject | undefined {
    if (gap !== undefined) return writeUsage(gap);
    const raw = body['usage'];
    if (!isObject(raw)) return undefined;
    const usage = findUsage(body, chatTraits);
    return usage === undefined ? undefined : repairedUsage(raw, writeUsage(usage));
  }

  /** The client's model name, if the document has another one. */
  #documentModel(body: JsonObject): string | undefined {
    const { model } = this.#context;
    return typeof body['model'] === 'string' && body['model'] !== model ? model : undefined;
  }

  #estimate(gap: Usage | undefined): void {
    if (gap === undefined) return;
    this.#usage = gap;
    this.#estimated = true;
  }

  /** The usage report that the client requested: the upstream's frame, corrected if necessary (F55). */
  #missingUsage(): string {
    const usage = this.#usage;
    if (!this.#context.wantsUsageFrame || usage === undefined) return '';
    const raw = this.#estimated ? undefined : usage.raw;
    const repaired = raw === undefined ? writeUsage(usage) : repairedUsage(raw, writeUsage(usage));
    if (this.#report !== undefined) {
      const own =
        repaired === undefined ? this.#report : withMember(this.#report, usageKey, repaired);
      if (own !== undefined) return withBlankLine(this.#renamed(own)).toString();
    }
    const chunk = { ...this.#chunkFrame(), choices: [], usage: repaired ?? raw };
    return restated(chunk).toString();
  }

  /** The members of the gateway's own chunks that are the same as in the upstream's. */
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
   * Takes the report out of a frame: a frame of its own is kept for the end, one that rides on another becomes
   * null. Servers report with every frame, twice, or by and by; clients expect one report, at the end, and some
   * of them add up what they get.
   */
  #withoutUsage(bytes: Buffer, data: string): Buffer | undefined {
    const isAlone = emptyChoices.test(data);
    const span = findFrameMember(bytes, usageKey);
    if (span === undefined) {
      // Another member's, or written over several lines.
      const chunk = tryParseObject(data);
      if (!isObject(chunk?.['usage'])) return bytes;
      this.#report = isAlone ? restated(chunk) : undefined;
      return isAlone ? undefined : restated({ ...chunk, usage: null });
    }
    // A copy, since the frame's memory belongs to the socket.
    this.#report = isAlone ? Buffer.from(bytes) : undefined;
    return isAlone ? undefined : replaced(bytes, span, 'null');
  }
}

function restated(chunk: JsonObject): Buffer {
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
}

/** A frame with another value of the member. Undefined if it has no such member. */
function withMember(bytes: Buffer, key: Buffer, value: JsonObject): Buffer | undefined {
  const span = findFrameMember(bytes, key);
  return span === undefined ? undefined : replaced(bytes, span, JSON.stringify(value));
}

function replaced(bytes: Buffer, { start, end }: Span, by: string): Buffer {
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(by), bytes.subarray(end)]);
}

// Repairs of the choices of a relayed answer that clients would misread.
//
// Tool calls: the official clients fail on a call without an index or an id, join calls that have the same index,
// and some of them join what a server says of a call more than once.
// Finish: agents stop in silence over a call that ends in `stop`, and hang over `tool_calls` without a call.
// A cut-off or filtered answer keeps its word, and the first finish of a choice holds.

/** Inside a JSON string the quotes would be escaped, so these match members only. */
const someCall = /"tool_calls"\s*:\s*\[\s*\{|"function_call"\s*:\s*\{/;
const someFinish = /"finish_reason"\s*:\s*"[^"]/;
const idOrName = /"(?:id|name)"\s*:\s*"/g;

interface ChoiceState {
  /** Distinguishes the calls like the reader of streams. */
  readonly calls: StreamCalls;
  /** The members of each call that the client already got. */
  readonly sent: { id: boolean; name: boolean }[];
  called: boolean;
  /** The deprecated form has another finish reason. */
  legacy: boolean;
  finished: boolean;
}

/** State of one stream. */
export class ChoiceRepair {
  readonly #choices = new Map<number, ChoiceState>();
  /** A call had the form that clients expect: this server's fragments without id and name need no repair. */
  #regular = false;
  /** A call had another form: all frames with calls are examined. */
  #odd = false;

  /** The repaired chunk, or undefined if it needs no repair. */
  apply(data: string): JsonObject | undefined {
    if (!this.#concerns(data)) return undefined;
    const chunk = tryParseObject(data);
    const choices = chunk?.['choices'];
    if (chunk === undefined || !isArray(choices)) return undefined;
    const answer = { id: chunk['id'], created: chunk['created'] };
    const repaired = mapped(choices, (choice) => this.#choice(choice, answer));
    return repaired === choices ? undefined : { ...chunk, choices: repaired };
  }

  #concerns(data: string): boolean {
    if (someFinish.test(data)) return true;
    const call = someCall.exec(data);
    if (call === null) return false;
    idOrName.lastIndex = call.index;
    return this.#odd || !this.#regular || idOrName.test(data);
  }

  #choice(choice: JsonObject, answer: AnswerIdentity): JsonObject {
    const state = this.#stateOf(choice['index'], answer);
    const finish = choice['finish_reason'];
    const ends = typeof finish === 'string' && finish !== '';
    const delta = this.#delta(choice['delta'], state, ends);
    const fit = finishFor(finish, state);
    state.finished ||= ends;
    if (delta === choice['delta'] && fit === finish) return choice;
    return { ...choice, delta, finish_reason: fit };
  }

  #stateOf(index: Json | undefined, answer: AnswerIdentity): ChoiceState {
    const at = typeof index === 'number' ? index : 0;
    const known = this.#choices.get(at);
    if (known !== undefined) return known;
    const calls = new StreamCalls({ next: 0 }, {});
    calls.answer = answer;
    const state = { calls, sent: [], called: false, legacy: false, finished: false };
    this.#choices.set(at, state);
    return state;
  }

  #delta(delta: Json | undefined, state: ChoiceState, ends: boolean): Json | undefined {
    if (!isObject(delta)) return delta;
    state.legacy ||= isObject(delta['function_call']);
    const calls = isArray(delta['tool_calls']) ? delta['tool_calls'] : [];
    const repaired = mapped(calls, (call) => this.#call(call, state));
    if (ends) state.calls.close([]);
    const named = withIds(repaired, state);
    if (named === calls) {
      this.#regular ||= state.calls.started > 0;
      return delta;
    }
    this.#odd = true;
    return { ...delta, tool_calls: named };
  }

  /** The call with its own index, and without members that were already sent. */
  #call(call: JsonObject, state: ChoiceState): JsonObject {
    state.called = true;
    const index = state.calls.read(call, []);
    const { id, name } = readCall(call);
    const sent = state.sent[index];
    const again = sent ?? { id: false, name: false };
    state.sent[index] = { id: again.id || id !== '', name: again.name || name !== '' };
    const repeats = { id: again.id && id !== '', name: again.name && name !== '' };
    if (call['index'] === index && !repeats.id && !repeats.name) return call;
    const { index: _index, ...rest } = repeats.id ? without(call, 'id') : call;
    const type = sent === undefined && call['type'] === undefined ? { type: 'function' } : {};
    const said = repeats.name ? { function: withoutName(call['function']) } : {};
    return { index, ...type, ...rest, ...said };
  }
}

function withoutName(called: Json | undefined): Json | undefined {
  return isObject(called) ? without(called, 'name') : called;
}

/** The entries of one delta, with an id for each call that has one of the gateway's ids. */
function withIds(calls: readonly Json[], { calls: all, sent }: ChoiceState): readonly Json[] {
  let named = calls;
  for (const [index, each] of sent.entries()) {
    const id = each.id ? undefined : all.shownId(index);
    if (id === undefined) continue;
    each.id = true;
    const at = named.findIndex((call) => isObject(call) && call['index'] === index);
    const call = named[at];
    named = isObject(call)
      ? named.with(at, { ...call, id })
      : [...named, { index, id, function: { arguments: '' } }];
  }
  return named;
}

/** A whole answer whose choices have a finish that fits and ids for their calls; undefined when all do. */
export function repairedDocument(body: JsonObject): JsonObject | undefined {
  const { choices } = body;
  if (!isArray(choices)) return undefined;
  const answer = { id: body['id'], created: body['created'] };
  const repaired = mapped(choices, (choice) => repairedChoice(choice, answer));
  return repaired === choices ? undefined : { ...body, choices: repaired };
}

function repairedChoice(choice: JsonObject, answer: AnswerIdentity): JsonObject {
  const { message, finish_reason: finish } = choice;
  if (!isObject(message)) return choice;
  const calls = isArray(message['tool_calls']) ? message['tool_calls'] : [];
  const named = mapped(calls, (call, at) =>
    isText(call['id']) ? call : { ...call, id: derivedCallId(answer, at) },
  );
  const legacy = isObject(message['function_call']);
  const fit = finishFor(finish, { called: calls.length > 0, legacy, finished: false });
  if (fit === finish && named === calls) return choice;
  const said = named === calls ? message : { ...message, tool_calls: named };
  return { ...choice, message: said, finish_reason: fit };
}

/** The word that a choice of this state may end with; null behind another one. */
function finishFor(
  finish: Json | undefined,
  { called, legacy, finished }: Pick<ChoiceState, 'called' | 'legacy' | 'finished'>,
): Json | undefined {
  if (!isText(finish)) return finish;
  if (finished) return null;
  if (legacy || (finish !== 'stop' && finish !== 'tool_calls')) return finish;
  return called ? 'tool_calls' : 'stop';
}

/** The same list when no object of it changes. */
function mapped(
  list: readonly Json[],
  change: (value: JsonObject, at: number) => JsonObject,
): readonly Json[] {
  let changed: Json[] | undefined;
  for (let at = 0; at < list.length; at += 1) {
    const value = list[at];
    const now = isObject(value) ? change(value, at) : value;
    if (now === value || now === undefined) continue;
    changed ??= [...list];
    changed[at] = now;
  }
  return changed ?? list;
}

function without({ ...members }: Record<string, Json | undefined>, key: string): JsonObject {
  delete members[key];
  return members;
}

function isText(value: Json | undefined): boolean {
  return typeof value === 'string' && value !== '';
}

const dataField = Buffer.from('data:');
const quote = 0x22;

/**
 * A member of the JSON object in a frame.
 * @param key the key with its quotes.
 */
export function findFrameMember(bytes: Buffer, key: Buffer): MemberSpan | undefined {
  return findMember(bytes, Math.max(0, bytes.indexOf(dataField)), key);
}

// Writes the client's model name into the bytes of frames.

/** One answer's frames. They usually have the same layout, so the position in the last one is tried first. */
class ModelSplice {
  readonly #replacement: Buffer;
  /** The member in the last frame, key and value. */
  #member: Buffer | undefined;
  #offset = 0;
  /** The member already has the client's model name. */
  #same = false;

  /** @param model the name that the client used. */
  constructor(model: string) {
    this.#replacement = Buffer.from(`"model":${JSON.stringify(model)}`);
  }

  /** The same buffer when there is nothing to change. */
  apply(bytes: Buffer): Buffer {
    if (!this.#standsAgain(bytes) && !this.#locate(bytes)) return bytes;
    return this.#same ? bytes : this.#replaced(bytes);
  }

  #standsAgain(bytes: Buffer): boolean {
    const member = this.#member;
    if (member === undefined) return false;
    const offset = this.#offset;
    // Node's own comparison takes as long as a hundred bytes of this loop.
    for (let i = 0; i < member.length; i += 1) if (bytes[offset + i] !== member[i]) return false;
    return true;
  }

  /** Searches for the top-level member; false when the frame has none. */
  #locate(bytes: Buffer): boolean {
    const span = findFrameMember(bytes, modelKey);
    if (span === undefined || bytes[span.start] !== quote) return false;
    // A copy, since the frame's memory belongs to the socket.
    this.#member = Buffer.from(bytes.subarray(span.key, span.end));
    this.#offset = span.key;
    this.#same = this.#member.equals(this.#replacement);
    return true;
  }

  #replaced(bytes: Buffer): Buffer {
    const member = this.#member;
    if (member === undefined) return bytes;
    const replacement = this.#replacement;
    const offset = this.#offset;
    const edited = Buffer.allocUnsafe(bytes.length - member.length + replacement.length);
    bytes.copy(edited, 0, 0, offset);
    replacement.copy(edited, offset);
    bytes.copy(edited, offset + replacement.length, offset + member.length);
    return edited;
  }
}
