/** Everything that servers do to the lines of an event stream without changing what it says (E3). */
import * as fc from 'fast-check';
import type { JsonObject } from '../../src/json/value.ts';

export interface Framing {
  readonly lineEnd: '\n' | '\r\n' | '\r';
  /** `data:` without a space. */
  readonly tight: boolean;
  /** The JSON goes over several data lines. */
  readonly manyLines: boolean;
  /** Written in front of every third event. */
  readonly noise: string;
  readonly byteOrderMark: boolean;
  /** Where the bytes are cut, modulo their length; undefined = one byte a read. */
  readonly cuts: readonly number[] | undefined;
}

export const framing: fc.Arbitrary<Framing> = fc.record({
  lineEnd: fc.constantFrom('\n', '\r\n', '\r'),
  tight: fc.boolean(),
  manyLines: fc.boolean(),
  noise: fc.constantFrom('', ': OPENROUTER PROCESSING\n\n', ':\n\n', 'id: 7\nretry: 5\n\n', '\n\n'),
  byteOrderMark: fc.boolean(),
  cuts: fc.option(fc.array(fc.nat({ max: 100_000 }), { maxLength: 40 }), { nil: undefined }),
});

export interface SentEvent {
  readonly name?: string;
  /** An object, or the end mark. */
  readonly data: JsonObject | string;
}

/** The bytes of the stream, and where they are cut. */
export function framed(
  events: readonly SentEvent[],
  { lineEnd, tight, manyLines, noise, byteOrderMark, cuts }: Framing,
): { readonly bytes: Buffer; readonly places: readonly number[] } {
  const text = events
    .map(({ name, data }, index) => {
      const json =
        typeof data === 'string' ? data : JSON.stringify(data, null, manyLines ? 1 : undefined);
      const lines = json.split('\n').map((line) => `data:${tight ? '' : ' '}${line}\n`);
      const event = name === undefined ? '' : `event: ${name}\n`;
      return `${index % 3 === 1 ? noise : ''}${event}${lines.join('')}\n`;
    })
    .join('');
  const bytes = Buffer.from((byteOrderMark ? '\ufeff' : '') + text.replaceAll('\n', lineEnd));
  return { bytes, places: cuts ?? Array.from(bytes, (_, index) => index) };
}
