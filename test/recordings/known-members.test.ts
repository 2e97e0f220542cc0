/** D3: nothing that real providers were recorded to send is noted as unknown, but for what is decided to be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoteList } from '../../src/core/notes.ts';
import { isObject } from '../../src/json/value.ts';
import { upstreamHalves } from '../property/dialect-halves.ts';
import { upstreamDialects } from '../support/dialects.ts';
import { recordedDocuments, recordedStreams, whyOmitted } from './recorded.ts';

test('D3 documents', { skip: whyOmitted }, () => {
  for (const { name, upstream, body } of recordedDocuments()) {
    if (isObject(body['error'])) continue;
    const notes = new NoteList();
    const { upstream: half, traits } = upstreamHalves[upstream];
    half.readResponse(body, traits, notes);
    assert.deepEqual(notes.all, [], `${upstream} ${name}`);
  }
});

test('D3 streams', { skip: whyOmitted }, () => {
  for (const { name, upstream, events } of recordedStreams(upstreamDialects)) {
    const notes = new NoteList();
    const { upstream: half, traits } = upstreamHalves[upstream];
    const reader = half.streamReader(traits, notes);
    for (const event of events) {
      const [[only, inner] = ['', event]] = Object.entries(event);
      const isNamed = upstream === 'converse' && isObject(inner);
      const data = JSON.stringify(isNamed ? inner : event);
      reader.read({ bytes: Buffer.alloc(0), event: isNamed ? only : undefined, data });
    }
    assert.deepEqual(notes.all, [], `${upstream} ${name}`);
  }
});
