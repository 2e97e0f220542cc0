/**
 * A translated answer between the upstream's reader and the consumer: a turn that the upstream pauses
 * is continued, and stop sequences that were not sent upstream are searched for.
 */
import type { Call } from '../../core/call.ts';
import type { Part } from '../../core/conversation.ts';
import { type GatewayError, asGatewayError } from '../../core/errors.ts';
import {
  Collector,
  type FinishReason,
  type GenerationEvent,
  type Usage,
  addUsage,
  lastRequest,
  mergeUsage,
  totalInputTokens,
} from '../../core/generation.ts';
import { spent } from './output-guard.ts';
import { type ReadFrame, type StreamConsumer, eventsFrame } from './upstream-answer.ts';

/** The upstream's side of the turn. */
export interface TurnSource {
  /** The answer is complete, whatever the upstream would still say. */
  cut(): void;
  /** Requests the rest of a paused turn and hands it to the same consumer; rejects with its failure. */
  continueTurn(): Promise<void>;
}

export interface TranslatedTurnOptions {
  /** Receives the remaining events. */
  readonly consumer: StreamConsumer;
  readonly scanned: readonly string[];
  readonly rounds: TurnRounds | undefined;
  readonly source: TurnSource;
}

export class TranslatedTurn implements StreamConsumer {
  readonly #options: TranslatedTurnOptions;
  readonly #scanner: StopScanner;
  #over = false;

  constructor(options: TranslatedTurnOptions) {
    this.#options = options;
    this.#scanner = new StopScanner(options.scanned);
  }

  frames(batch: readonly ReadFrame[]): void {
    if (this.#over) return;
    const passed: ReadFrame[] = [];
    for (const { frame, events } of batch) {
      // After a failure nothing is read, so that what was held back must be shown before it.
      const failed = events.some((event) => event.type === 'error');
      if (failed) passed.push(eventsFrame(this.#scanner.flush()));
      passed.push({
        frame,
        events: events.flatMap((event) => this.#scanner.push(event)),
        plain: false,
      });
    }
    if (this.#scanner.matched !== undefined) {
      this.#over = true;
      this.#options.source.cut();
      // A usage report after the sequence is metered, so that the client gets it too.
      passed.unshift(eventsFrame(batch.flatMap(({ events }) => events.filter(isUsage))));
      return this.#showLast(passed);
    }
    this.#options.consumer.frames(passed);
    const { rounds, source } = this.#options;
    if (this.#over || rounds?.paused !== true) return;
    source.continueTurn().catch((error: unknown) => this.failed(asGatewayError(error)));
  }

  /** The upstream is gone: the consumer would not learn otherwise that it failed. */
  #showLast(batch: readonly ReadFrame[]): void {
    const { consumer } = this.#options;
    try {
      consumer.frames(batch);
    } catch (error) {
      consumer.failed(asGatewayError(error));
    }
  }

  ended(events: readonly GenerationEvent[]): void {
    if (this.#over) return;
    // Going on begins the next round, which is not paused.
    const isPaused = this.#options.rounds?.paused === true;
    this.frames([eventsFrame(events)]);
    if (!isPaused) this.#options.consumer.ended([]);
  }

  failed(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    const { consumer } = this.#options;
    try {
      consumer.frames([eventsFrame(this.#scanner.flush())]);
    } catch {
      // This may be the consumer's own failure: the first one counts.
    }
    consumer.failed(error);
  }
}

function isUsage({ type }: GenerationEvent): boolean {
  return type === 'usage';
}

type PartStart = Extract<GenerationEvent, { type: 'part-start' }>;
type PartDelta = Extract<GenerationEvent, { type: 'part-delta' }>;
/** An event that carries text which may belong to a sequence, or one that is among such. */
type HeldEvent = Extract<
  GenerationEvent,
  { type: 'part-start' | 'part-delta' | 'part-citation' | 'part-end' }
>;

/**
 * Finds stop sequences that were not sent upstream, in the events between reader and writer. The answer ends
 * before the sequence, as if the provider had found it. Only text counts; reasoning and tool arguments do not.
 */
export class StopScanner {
  readonly #stops: readonly StopSequence[];
  /** Events whose text may yet turn out to be the beginning of a sequence, in order. */
  #held: HeldEvent[] = [];
  /** The text of the held events. */
  #text = '';
  /** Parts that are open as the upstream sees it. */
  readonly #open = new Map<number, 'text' | 'other'>();
  /** Parts that are open as the consumer sees it. */
  readonly #shown = new Set<number>();
  #matched: string | undefined;

  constructor(stops: readonly string[]) {
    this.#stops = stops.map((stop) => new StopSequence(stop));
  }

  /** The sequence that ended the answer; later events are dropped. */
  get matched(): string | undefined {
    return this.#matched;
  }

  /** The events to pass on; the last one is a finish when a sequence was found. */
  push(event: GenerationEvent): readonly GenerationEvent[] {
    if (this.#matched !== undefined) return [];
    switch (event.type) {
      case 'part-start': {
        const { index, part } = event;
        if (part.type === 'text') {
          this.#open.set(index, 'text');
          return this.#take(event, part.text);
        }
        // Something else is between this text and the next: no sequence reaches across.
        const before = this.flush();
        this.#open.set(index, 'other');
        this.#show(event);
        return [...before, event];
      }
      case 'part-delta':
        return event.field === 'text' && this.#open.get(event.index) === 'text'
          ? this.#take(event, event.delta)
          : [event];
      case 'part-citation':
        return this.#among(event);
      case 'part-end': {
        const kind = this.#open.get(event.index);
        this.#open.delete(event.index);
        if (kind === 'text') return this.#among(event);
        this.#show(event);
        return [event];
      }
      case 'finish':
      case 'error':
        return [...this.flush(), event];
      case 'start':
      case 'usage':
        return [event];
      default:
        return event satisfies never;
    }
  }

  /** The waiting events, when no more text can follow them. */
  flush(): readonly GenerationEvent[] {
    const events = this.#held;
    this.#held = [];
    this.#text = '';
    for (const event of events) this.#show(event);
    return events;
  }

  /** An event without text stays in order among those that wait. */
  #among(event: HeldEvent): readonly GenerationEvent[] {
    if (this.#held.length > 0) {
      this.#held.push(event);
      return [];
    }
    this.#show(event);
    return [event];
  }

  #take(event: PartStart | PartDelta, text: string): readonly GenerationEvent[] {
    if (text === '' && event.type === 'part-delta') return [];
    this.#held.push(event);
    this.#text += text;
    // The sequence that is complete first; of several that end together the one that began first.
    let first: (Match & { readonly end: number }) | undefined;
    for (const { text: stop } of this.#stops) {
      const start = this.#text.indexOf(stop);
      if (start === -1) continue;
      const end = start + stop.length;
      if (first === undefined || end < first.end || (end === first.end && start < first.start)) {
        first = { start, end, stop };
      }
    }
    if (first === undefined) return this.#release(this.#text.length - this.#pendingLength());
    this.#matched = first.stop;
    const events = [...this.#release(first.start)];
    for (const index of this.#shown) events.push({ type: 'part-end', index });
    const reason = { kind: 'stop-sequence', sequence: first.stop } as const;
    events.push({ type: 'finish', reason });
    return events;
  }

  /** Length of the longest end of the held text that begins one of the sequences. */
  #pendingLength(): number {
    let longest = 0;
    for (const stop of this.#stops) longest = Math.max(longest, stop.pendingLength(this.#text));
    return longest;
  }

  /** Releases the held events up to this length of their text; an event across the boundary is split. */
  #release(length: number): readonly GenerationEvent[] {
    const events: HeldEvent[] = [];
    let left = length;
    const held = this.#held;
    let at = 0;
    for (; at < held.length; at++) {
      const event = held[at];
      if (event === undefined) break;
      const text = textOf(event);
      // A part is begun with its first text: one that would hold none is not begun at all.
      if (left === 0 && event.type === 'part-start') break;
      if (text.length > left) {
        if (left > 0) {
          const [before, behind] = divide(event, left);
          events.push(before);
          held[at] = behind;
        }
        break;
      }
      left -= text.length;
      events.push(event);
    }
    this.#held = held.slice(at);
    this.#text = this.#text.slice(length);
    for (const event of events) this.#show(event);
    return events;
  }

  #show(event: HeldEvent): void {
    if (event.type === 'part-start') this.#shown.add(event.index);
    else if (event.type === 'part-end') this.#shown.delete(event.index);
  }
}

interface Match {
  readonly start: number;
  readonly stop: string;
}

function textOf(event: HeldEvent): string {
  if (event.type === 'part-delta') return event.delta;
  return event.type === 'part-start' && event.part.type === 'text' ? event.part.text : '';
}

/** One event as two that say the same. */
function divide(event: HeldEvent, at: number): readonly [HeldEvent, HeldEvent] {
  const text = textOf(event);
  const { index } = event;
  const behind = { type: 'part-delta', index, field: 'text', delta: text.slice(at) } as const;
  if (event.type === 'part-start' && event.part.type === 'text') {
    return [{ ...event, part: { ...event.part, text: text.slice(0, at) } }, behind];
  }
  return [{ type: 'part-delta', index, field: 'text', delta: text.slice(0, at) }, behind];
}

/** One stop sequence, and how much of it a text may have begun. */
class StopSequence {
  readonly text: string;
  /** For each beginning, the length of the longest shorter one that it ends in; made when needed. */
  readonly #borders: number[] = [0];

  constructor(text: string) {
    this.text = text;
  }

  /**
   * Length of the longest end of the text that begins the sequence and is not all of it. By Knuth,
   * Morris and Pratt, since comparing each end took milliseconds a chunk for long sequences.
   */
  pendingLength(text: string): number {
    const { length } = this.text;
    const from = text.indexOf(this.text.charAt(0), Math.max(0, text.length - length + 1));
    if (from === -1) return 0;
    let matched = 0;
    for (let i = from; i < text.length; i++) matched = this.#extended(matched, text.charAt(i));
    return matched;
  }

  /** How much of the sequence is matched when this character follows `matched` matching ones. */
  #extended(matched: number, char: string): number {
    let length = matched;
    while (length > 0 && this.text.charAt(length) !== char) length = this.#borderOf(length);
    return this.text.charAt(length) === char ? length + 1 : 0;
  }

  #borderOf(length: number): number {
    const borders = this.#borders;
    for (let known = borders.length; known < length; known++) {
      borders.push(this.#extended(borders[known - 1] ?? 0, this.text.charAt(known)));
    }
    return borders[length - 1] ?? 0;
  }
}

// A turn that its upstream pauses is requested again until it ends: with the answer so far (messages `pause_turn`: the
// provider's own tools run long), or with a word of the upstream that stands for it (Gemini `CONTINUATION`). After this
// stage all rounds are one answer: part indexes continue, token counts are sums, and no pause is visible.

/** Further requests of one turn at most; then it ends with finish `length`. */
const maxContinuations = 5;

export class TurnRounds {
  /** All parts so far, of every round. */
  readonly #collector = new Collector();
  #round = 0;
  /** Index of this round's first part. */
  #base = 0;
  #next = 0;
  /** The usage of earlier rounds. */
  #before: Usage | undefined;
  #current: Usage | undefined;
  /** Why the round ended, where the upstream paused the turn. */
  #pause: FinishReason | undefined;
  /** A call of a tool was answered, in whichever round. */
  #called = false;

  /** The upstream paused the turn. */
  get paused(): boolean {
    return this.#pause !== undefined;
  }

  /** The turn took more than one round so far. */
  get continued(): boolean {
    return this.#round > 0;
  }

  /** The usage that the last round reported. */
  get last(): Usage | undefined {
    return this.#current;
  }

  /** The events of the whole answer that these events of one round are. */
  pass(events: readonly GenerationEvent[]): readonly GenerationEvent[] {
    const passed: GenerationEvent[] = [];
    for (const event of events) {
      const own = this.#pass(event);
      if (own === undefined) continue;
      this.#collector.add(own);
      passed.push(own);
    }
    return passed;
  }

  /**
   * Begins the next round.
   * @param used by all rounds so far, gaps filled
   * @returns the assistant's turn so far, and what the next request must name, where the upstream said so
   */
  nextRound(used: Usage): Pick<NextRound, 'answered' | 'resume'> {
    const resume = this.#pause?.resume;
    this.#pause = undefined;
    this.#round += 1;
    this.#base = this.#next;
    this.#before = used;
    this.#current = undefined;
    return { answered: this.#collector.parts(), resume };
  }

  /** The turn ends with its pause: its cap is spent. @returns the finish of the whole answer */
  end(): GenerationEvent {
    const { resume: _, ...rest } = this.#pause ?? {};
    this.#pause = undefined;
    return { type: 'finish', reason: { ...rest, kind: 'length' } };
  }

  #pass(event: GenerationEvent): GenerationEvent | undefined {
    switch (event.type) {
      case 'start':
        return this.#round === 0 ? event : undefined;
      case 'part-start':
      case 'part-delta':
      case 'part-citation':
      case 'part-end': {
        const index = this.#base + event.index;
        this.#next = Math.max(this.#next, index + 1);
        this.#called ||= event.type === 'part-start' && event.part.type === 'tool-call';
        return this.#base === 0 ? event : { ...event, index };
      }
      case 'usage':
        this.#current = mergeUsage(this.#current, event.usage);
        return this.#before === undefined ? event : sumOf(this.#before, this.#current);
      case 'finish':
        return this.#finish(event.reason);
      case 'error':
        return event;
      default:
        return event satisfies never;
    }
  }

  /** Undefined for a pause that is continued. */
  #finish(reason: FinishReason): GenerationEvent | undefined {
    if (reason.kind !== 'pause') {
      // The calls may be in a round before the last one.
      const isCall = reason.kind === 'stop' && this.#called;
      return { type: 'finish', reason: isCall ? { ...reason, kind: 'tool-calls' } : reason };
    }
    this.#pause = reason;
    return this.#round === maxContinuations ? this.end() : undefined;
  }
}

/** A report without the prompt of its round is incomplete: its prompt is estimated until then. */
function sumOf(before: Usage, current: Usage): GenerationEvent | undefined {
  if (totalInputTokens(current) === undefined) return undefined;
  const sum = addUsage(before, current) ?? current;
  const earlier = [...requestsOf(before), ...(current.earlier ?? [])];
  return { type: 'usage', usage: { ...sum, earlier } };
}

/** The usage of each request. */
function requestsOf(usage: Usage): readonly Usage[] {
  return [...(usage.earlier ?? []), lastRequest(usage)];
}

/** The usage with a further request, which reads the prompt and the answer so far again. */
export function withFurther(used: Usage): Usage {
  const last = lastRequest(used);
  const again = (totalInputTokens(last) ?? 0) + (last.outputTokens ?? 0);
  const freshInputTokens = (used.freshInputTokens ?? 0) + again;
  return { ...used, freshInputTokens, earlier: requestsOf(used) };
}

/** A further request of a paused turn. */
export interface NextRound {
  /** The answer so far. */
  readonly answered: readonly Part[];
  /** Cap of its output tokens; undefined where the answer has none. */
  readonly most: number | undefined;
  /** Stands for the answer so far where the upstream said so: the request is the same but for it. */
  readonly resume?: string | undefined;
}

type CappedCall = Pick<Call, 'grant' | 'head'>;

/**
 * Output tokens that the rounds so far left of the cap of the whole answer: all of them are one answer to the client.
 * @param asked cap of the first request
 * @param used by the rounds so far
 * @returns undefined without a cap; 0 if the rest is too small for another round
 */
export function roomOf(
  { grant, head }: CappedCall,
  asked: number | undefined,
  used: Usage,
): number | undefined {
  const cap = asked ?? grant?.outputCap;
  if (cap === undefined) return undefined;
  const room = Math.min(cap, grant?.outputCap ?? cap) - (used.outputTokens ?? 0);
  return room > (head.reasoningBudget ?? 0) ? room : 0;
}

/**
 * A further round reads the prompt and what was answered so far again: both are paid for before it is
 * requested (Q1), and it may answer as much as the rounds before it left of what is paid for.
 * @param used by the rounds before it
 * @param room what the cap leaves it
 * @returns cap of its output tokens; undefined where it has none
 * @throws GatewayError `budget_exhausted`
 */
export async function payRound(
  { grant, head }: CappedCall,
  used: Usage,
  room: number | undefined,
): Promise<number | undefined> {
  if (room === undefined || grant?.outputCap === undefined || !grant.paid) return room;
  const paid = await grant.outputOfRound(withFurther(used));
  if (paid === undefined) return room;
  const left = Math.min(room, paid - (used.outputTokens ?? 0));
  if (left <= (head.reasoningBudget ?? 0)) throw spent();
  return left;
}
