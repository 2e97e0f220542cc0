/** The events of a messages stream, and the judge of their order. */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../../src/json/value.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { assertLegalStream } from '../../support/legality.ts';

export interface SeenEvent {
  readonly name: string;
  readonly data: JsonObject;
}

/** The events of a stream's text; each must have its `event:` and `data:` line. */
export function eventsOf(text: string): readonly SeenEvent[] {
  assert.ok(text === '' || text.endsWith('\n\n'), 'every event ends in a blank line');
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => {
      const lines = block.split('\n');
      assert.equal(lines.length, 2, `an event line and a data line: ${block}`);
      const name = /^event: (\w+)$/.exec(lines[0] ?? '')?.[1];
      const data = tryParseObject((lines[1] ?? '').replace(/^data: /, ''));
      assert.ok(name !== undefined && data !== undefined, block);
      assert.equal(data['type'], name, 'the data repeats the name');
      return { name, data };
    });
}

/** Throws when the stream is not a complete, legal one. */
export function assertLegal(text: string): void {
  assertLegalStream('messages', text, true);
}
