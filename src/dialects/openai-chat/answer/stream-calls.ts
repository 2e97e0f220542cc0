/**
 * The tool calls of one streamed answer. Servers differ in how they identify calls: by index, by id
 * with index 0 for all, by neither; with the id on every delta or on none (F59).
 */
import type { JsonObject } from '../../../json/value.ts';
import type { GenerationEvent } from '../../../core/generation.ts';
import { tryParseInnerObject } from '../../../json/parse.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { wrappedArguments } from '../../shared/request/tools.ts';
import { derivedCallId, type AnswerIdentity } from '../../shared/tool-names.ts';
import type { PartCounter } from './stream-read.ts';
import { readCall, isCall, type SeenCall } from '../message-forms.ts';

interface StreamCall {
  /** The index among all calls of the answer, in the order of their start. */
  readonly order: number;
  readonly index: number | undefined;
  readonly freeText: boolean;
  readonly extras: JsonObject | undefined;
  /** The server's id; `''` if it has sent none. */
  id: string;
  name: string;
  /** Whether it had more than padding. */
  says: boolean;
  /** All received arguments, passed on or not. */
  arguments: string;
  /** Whether the last fragment could end an object. Only then the arguments are parsed. */
  mayBeWhole: boolean;
  /** The id of the part. The server's own id may arrive later. */
  shownId: string | undefined;
  /** The part's index after its start was sent. Until then the arguments wait for a name. */
  part: number | undefined;
  ended: boolean;
}

/** The traits of an upstream that matter here. */
export type CallTraits = Pick<UpstreamTraits, 'bufferToolArguments'>;

export class StreamCalls {
  answer: AnswerIdentity = { id: undefined, created: undefined };
  /** Calls that became parts. */
  started = 0;
  /** Whether a call never got a name; known at the end of the stream. */
  nameless = false;
  readonly #counter: PartCounter;
  readonly #all: StreamCall[] = [];
  #cut = false;
  /** The latest call of each index. */
  readonly #byIndex = new Map<number, StreamCall>();

  /** Arguments are passed on when they are complete, since they may be no JSON. */
  readonly #buffers: boolean;

  constructor(counter: PartCounter, { bufferToolArguments }: CallTraits) {
    this.#counter = counter;
    this.#buffers = bufferToolArguments === true;
  }

  /** Calls so far, named or not. */
  get count(): number {
    return this.#all.length;
  }

  /** The id that the client gets for the call at this index; undefined before its start is sent. */
  shownId(order: number): string | undefined {
    return this.#all[order]?.shownId;
  }

  /** @returns the index of the call among all calls of the answer. */
  read(value: JsonObject, events: GenerationEvent[]): number {
    const seen = readCall(value);
    const call = this.#find(seen) ?? this.#add(seen);
    // Data for a call that is complete and closed can only be padding.
    if (!call.ended) {
      call.says ||= isCall(seen);
      if (call.id === '') call.id = seen.id;
      if (call.name === '') call.name = seen.name;
      if (call.part !== undefined) this.#append(call, seen.arguments, events);
      else {
        gather(call, seen.arguments);
        // The id may arrive later than the name. Arguments do not wait for it.
        if (call.name !== '' && (call.id !== '' || call.arguments !== ''))
          this.#start(call, events);
      }
    }
    return call.order;
  }

  /** Ends the calls whose arguments are complete, so that later parts do not wait. */
  closeComplete(events: GenerationEvent[]): void {
    for (const call of this.#all) {
      if (call.part !== undefined && !call.ended && isComplete(call)) this.#end(call, events);
    }
  }

  /**
   * The stream ends, so calls without a name wait no longer.
   * @param cut the token limit ended it, so that arguments may be incomplete.
   */
  close(events: GenerationEvent[], cut = false): void {
    this.#cut = cut;
    for (const call of this.#all) {
      if (call.part === undefined && call.name === '') this.nameless ||= call.says;
      else if (call.part === undefined) this.#start(call, events);
    }
    for (const call of this.#all) {
      if (call.part !== undefined && !call.ended) this.#end(call, events);
    }
  }

  #find(seen: SeenCall): StreamCall | undefined {
    if (seen.index === undefined) return this.#findByIdOrOrder(seen);
    const latest = this.#byIndex.get(seen.index);
    if (latest === undefined) return undefined;
    if (seen.id !== '' && latest.id !== '' && seen.id !== latest.id) {
      const known = this.#all.findLast((call) => call.index === seen.index && call.id === seen.id);
      // Some servers invent an id for each delta. Without a name it begins no call.
      return known ?? (seen.name === '' && !isComplete(latest) ? latest : undefined);
    }
    return seen.id === '' && isAnother(latest, seen) ? undefined : latest;
  }

  #findByIdOrOrder(seen: SeenCall): StreamCall | undefined {
    if (seen.id !== '') return this.#all.findLast((call) => call.id === seen.id);
    const latest = this.#all.at(-1);
    return latest !== undefined && isAnother(latest, seen) ? undefined : latest;
  }

  #add(seen: SeenCall): StreamCall {
    const call: StreamCall = {
      ...seen,
      order: this.#all.length,
      says: false,
      arguments: '',
      mayBeWhole: false,
      shownId: undefined,
      part: undefined,
      ended: false,
    };
    this.#all.push(call);
    if (call.index !== undefined) this.#byIndex.set(call.index, call);
    return call;
  }

  #start(call: StreamCall, events: GenerationEvent[]): void {
    // Calls appear in the order of their start, so an earlier one no longer waits for its id.
    for (const earlier of this.#all.slice(0, call.order)) {
      if (earlier.part === undefined && earlier.name !== '') this.#start(earlier, events);
    }
    this.closeComplete(events);
    const index = this.#counter.next++;
    call.part = index;
    call.shownId = call.id === '' ? derivedCallId(this.answer, call.order) : call.id;
    this.started += 1;
    events.push({
      type: 'part-start',
      index,
      part: {
        type: 'tool-call',
        id: call.shownId,
        name: call.name,
        argumentsJson: call.freeText ? '{"input":"' : '',
        ...(call.extras === undefined ? {} : { extras: { 'openai-chat': call.extras } }),
      },
    });
    const waiting = call.arguments;
    call.arguments = '';
    this.#append(call, waiting, events);
  }

  #append(call: StreamCall, text: string, events: GenerationEvent[]): void {
    if (text === '' || call.part === undefined) return;
    gather(call, text);
    if (this.#buffers && !call.freeText) return;
    const delta = call.freeText ? JSON.stringify(text).slice(1, -1) : text;
    events.push({ type: 'part-delta', index: call.part, field: 'arguments', delta });
  }

  #end(call: StreamCall, events: GenerationEvent[]): void {
    if (call.part === undefined) return;
    call.ended = true;
    if (call.freeText) {
      // A text does not show that it was cut. Without its end no client runs the call.
      if (!this.#cut || call !== this.#all.at(-1)) {
        events.push({ type: 'part-delta', index: call.part, field: 'arguments', delta: '"}' });
      }
    } else if (this.#buffers && call.arguments !== '') {
      const delta = this.#cut ? call.arguments : wrappedArguments(call.arguments);
      events.push({ type: 'part-delta', index: call.part, field: 'arguments', delta });
    }
    events.push({ type: 'part-end', index: call.part });
  }
}

/** Whether a delta without an id, at the index of an earlier call, begins another call. */
function isAnother(earlier: StreamCall, seen: SeenCall): boolean {
  if (seen.name === '' || earlier.name === '') return false;
  if (earlier.arguments === '') return seen.name !== earlier.name;
  if (!isComplete(earlier)) return false;
  return seen.name !== earlier.name || seen.arguments !== '';
}

const objectEnd = /\}\s*$/;

function gather(call: StreamCall, text: string): void {
  call.arguments += text;
  if (text.trim() !== '') call.mayBeWhole = objectEnd.test(text);
}

/** Called with every fragment of some servers, so megabytes must not be parsed each time. */
function isComplete(call: StreamCall): boolean {
  if (call.freeText || !call.mayBeWhole) return false;
  // Incomplete arguments stay so until the next fragment.
  call.mayBeWhole = tryParseInnerObject(call.arguments) !== undefined;
  return call.mayBeWhole;
}
