/**
 * Texts that a stream told in pieces, each whole where it began, so that a key in pieces is found whatever
 * else differs between the events: the first piece beside a role, the last beside the reason of the end.
 */
import type { Json } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';

/** Texts that name what a piece belongs to. */
export const names: ReadonlySet<string> = new Set(['type', 'id', 'name', 'role']);
/** They come in one piece, several behind one another. */
const comeWhole: ReadonlySet<string> = new Set(['citation', 'citations', 'annotations']);
/** What a block begins with goes on in its deltas. */
const pieceOf: ReadonlySet<string> = new Set(['delta', 'content_block']);

interface WholeText {
  /** The event where it begins; -1: it was told. */
  at: number;
  text: string;
}

type EachText = (place: string, text: string) => string;

/** The same events: each text whole in the first that has some of it, and empty in the others. */
export function wholeTexts(events: readonly Json[]): readonly Json[] {
  const texts = new Map<string, WholeText>();
  const reader = new Places((place, text) => {
    const known = texts.get(place);
    if (known !== undefined) known.text += text;
    else if (text !== '') texts.set(place, { at: reader.event, text });
    return text;
  });
  for (const event of events) reader.next(event);
  const writer = new Places((place) => {
    const whole = texts.get(place);
    if (whole?.at !== writer.event) return '';
    whole.at = -1;
    return whole.text;
  });
  return events.map((event) => writer.next(event));
}

/** Walks through the events of a stream, and says of every piece of a text to which it belongs. */
class Places {
  /** The number of the event that is walked through. */
  event = -1;
  readonly #each: EachText;
  /** What stands at a place of a list now: another id there begins another text. */
  readonly #ids = new Map<string, string>();

  constructor(each: EachText) {
    this.#each = each;
  }

  next(event: Json): Json {
    this.event += 1;
    const index = isObject(event) ? event['index'] : undefined;
    return this.#walk(event, JSON.stringify(index ?? null), false);
  }

  #walk(value: Json, place: string, inPiece: boolean): Json {
    if (typeof value === 'string') return inPiece ? this.#each(place, value) : value;
    if (Array.isArray(value)) {
      return value.map((each: Json, i) => this.#walk(each, this.#placeIn(place, each, i), inPiece));
    }
    if (!isObject(value)) return value;
    const walked = Object.entries(value).map(([name, member]): [string, Json] => {
      const given = member ?? null;
      if (names.has(name) || comeWhole.has(name)) return [name, given];
      const begins = pieceOf.has(name);
      const at = `${place}.${begins ? 'delta' : name}`;
      return [name, this.#walk(given, at, inPiece || begins)];
    });
    return Object.fromEntries(walked);
  }

  #placeIn(list: string, item: Json, position: number): string {
    if (!isObject(item)) return `${list}.${position}`;
    const { index, id } = item;
    const place = `${list}.${typeof index === 'number' ? index : position}`;
    if (typeof id === 'string') this.#ids.set(place, id);
    return `${place}#${this.#ids.get(place) ?? ''}`;
  }
}
