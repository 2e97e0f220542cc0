/** Reasoning of a foreign upstream in a stream: sealed, with what that upstream wants back (D5, D6). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part } from '../../../src/core/conversation.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { unseal } from '../../../src/dialects/shared/seals.ts';
import { chatUpstream, testSealer } from '../../support/sealing.ts';
import { translated, writeStreamText } from './answer-context.ts';
import { assertLegal } from './legal-stream.ts';

const start: GenerationEvent = { type: 'start', id: 'chatcmpl-1', model: 'gpt' };
const finish: GenerationEvent = { type: 'finish', reason: { kind: 'stop' } };
const open = (index: number, part: Part): GenerationEvent => ({ type: 'part-start', index, part });
const end = (index: number): GenerationEvent => ({ type: 'part-end', index });
const hm: GenerationEvent = { type: 'part-delta', index: 0, field: 'text', delta: 'hm' };

test('§5.4 reasoning of a foreign upstream is sealed, with what that upstream wants back', () => {
  const events = [
    start,
    open(0, { type: 'reasoning', text: 'hm', signature: 's' }),
    end(0),
    open(1, { type: 'reasoning', text: '', encrypted: 'e' }),
    end(1),
    finish,
  ];
  const written = writeStreamText(events, translated());
  assertLegal(written);
  const sealed = [...written.matchAll(/"(?:signature|data)":"(gw1\.[\w.-]+)"/g)];
  assert.deepEqual(
    sealed.map((found) => unseal(found[1] ?? '', testSealer, 'anthropic-messages')),
    [
      { origin: chatUpstream, signature: 's', textDigest: testSealer.digest('hm') },
      { origin: chatUpstream, encrypted: 'e' },
    ],
  );
});

test('§4.2 hidden reasoning: the block stays, its text does not', () => {
  const events = [start, open(0, { type: 'reasoning', text: '' }), hm, end(0)];
  const context = translated({ reasoning: { adaptive: true, hidden: true } });
  const written = writeStreamText([...events, finish], context);
  assertLegal(written);
  assert.ok(!written.includes('hm') && written.includes('signature_delta'));
  const signature = /"signature":"(gw1\.[\w.-]+)"/.exec(written)?.[1] ?? '';
  const opened = unseal(signature, testSealer, 'anthropic-messages');
  assert.deepEqual(opened, { origin: chatUpstream, text: 'hm' }, 'D6 its upstream may want it');
});
