/** What clients read of a translation in `x-gateway-notes`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoteList } from '../../../src/core/notes.ts';

test('a note that is made of many items stands once in the header, and others are told', () => {
  const notes = new NoteList();
  for (let item = 0; item < 100; item += 1) notes.lost(['output'], 'reasoning is hidden');
  notes.changed(['output'], 'reasoning is hidden');
  notes.lost(['input'], 'reasoning is hidden');
  assert.equal(
    notes.header(),
    'output: dropped, reasoning is hidden; output: changed, reasoning is hidden; ' +
      'input: dropped, reasoning is hidden',
  );
});
