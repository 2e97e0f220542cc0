/** A Responses request that leaves another upstream nothing to answer is refused at the member that its client sent. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { NoteList } from '../../../src/core/notes.ts';
import type { Json } from '../../../src/json/value.ts';
import { ask, halves } from '../../property/dialect-halves.ts';

const blank: Json = ' ';
const developer: Json = [{ role: 'developer', content: 'Be good' }];

describe('R-42 an empty conversation is refused at `input`', () => {
  for (const [upstream, input, systemAnywhere] of [
    ['chat', blank, true],
    ['messages', blank, true],
    ['responses', blank, true],
    ['chat', developer, false],
  ] as const) {
    test(`${upstream}: ${JSON.stringify(input)}`, () => {
      const notes = new NoteList();
      const body = { model: 'm', input };
      const half = halves[upstream];
      const asked = ask({ ...half, traits: { ...half.traits, systemAnywhere } });
      const conversation = halves.responses.client.readRequest(body, notes);
      assert.throws(
        () => half.upstream.writeRequest(conversation, asked, notes),
        (error) => error instanceof GatewayError && error.path?.join('.') === 'input',
      );
    });
  }
});
