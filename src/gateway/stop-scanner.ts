/**
 * Stop sequences that an upstream cannot be given: found in the events between reader and writer.
 * The answer ends where a sequence is complete, with the text before it, as if the provider had
 * looked for it. Only text counts, as it does natively: reasoning and tool arguments may hold anything.
 */
import type { GenerationEvent } from '../core/generation.ts';
import { StopSequence } from './stop-sequence.ts';

type PartStart = Extract<GenerationEvent, { type: 'part-start' }>;
type PartDelta = Extract<GenerationEvent, { type: 'part-delta' }>;
/** An event that carries text which may belong to a sequence, or one that stands among such. */
type HeldEvent = Extract<
  GenerationEvent,
  { type: 'part-start' | 'part-delta' | 'part-citation' | 'part-end' }
>;

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

  /** The sequence that ended the answer; whatever comes later belongs to nobody. */
  get matched(): string | undefined {
    return this.#matched;
  }

  /** The events to go on with; the last one is a finish when a sequence was found. */
  push(event: GenerationEvent): readonly GenerationEvent[] {
    if (this.#matched !== undefined) return [];
    switch (event.type) {
      case 'part-start':
        return this.#start(event);
      case 'part-delta':
        return this.#isText(event) ? this.#take(event, event.delta) : [event];
      case 'part-citation':
        return this.#among(event);
      case 'part-end':
        return this.#end(event);
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

  /** What was held back, when no more text can follow it. */
  flush(): readonly GenerationEvent[] {
    const events = this.#held;
    this.#held = [];
    this.#text = '';
    for (const event of events) this.#show(event);
    return events;
  }

  #start(event: PartStart): readonly GenerationEvent[] {
    const { index, part } = event;
    if (part.type === 'text') {
      this.#open.set(index, 'text');
      return this.#take(event, part.text);
    }
    // Something else stands between this text and the next: no sequence reaches across.
    const before = this.flush();
    this.#open.set(index, 'other');
    this.#show(event);
    return [...before, event];
  }

  #isText({ index, field }: PartDelta): boolean {
    return field === 'text' && this.#open.get(index) === 'text';
  }

  #end(event: HeldEvent): readonly GenerationEvent[] {
    const kind = this.#open.get(event.index);
    this.#open.delete(event.index);
    if (kind === 'text') return this.#among(event);
    this.#show(event);
    return [event];
  }

  /** An event without text keeps its place among those that are held. */
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
    const match = firstMatch(this.#text, this.#stops);
    if (match === undefined) return this.#release(this.#text.length - this.#pendingLength());
    this.#matched = match.stop;
    const events = [...this.#release(match.start)];
    for (const index of this.#shown) events.push({ type: 'part-end', index });
    const reason = { kind: 'stop-sequence', sequence: match.stop } as const;
    events.push({ type: 'finish', reason });
    return events;
  }

  /** Length of the longest end of the held text that begins one of the sequences. */
  #pendingLength(): number {
    let longest = 0;
    for (const stop of this.#stops) longest = Math.max(longest, stop.pendingLength(this.#text));
    return longest;
  }

  /** The held events up to this length of their text; an event that lies across is divided. */
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

/** The sequence that is complete first; of several that end together the one that began first. */
function firstMatch(text: string, stops: readonly StopSequence[]): Match | undefined {
  let first: (Match & { readonly end: number }) | undefined;
  for (const { text: stop } of stops) {
    const start = text.indexOf(stop);
    if (start === -1) continue;
    const end = start + stop.length;
    if (first === undefined || end < first.end || (end === first.end && start < first.start)) {
      first = { start, end, stop };
    }
  }
  return first;
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
