/** Answers of a Responses server that are spoiled at one place: errors of the gateway only, and one ending. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/core/errors.ts';
import { readResponse } from '../../src/dialects/openai-responses/answer/response.ts';
import { ResponsesStreamReader } from '../../src/dialects/openai-responses/answer/stream-read.ts';
import { isObject } from '../../src/json/value.ts';
import {
  callItem,
  reasoningItem,
  responsesDocument,
  responsesEvents,
  textItem,
} from '../upstream/responses.ts';
import { check } from './checking.ts';
import { framesIn } from './frames.ts';
import { odd, spoil, way } from './spoil.ts';

const items = [reasoningItem('Thought', 'b'), textItem('Hello'), callItem('c', 'f', '{"x":1}')];

function onlyGatewayErrors(action: () => void): void {
  try {
    action();
  } catch (error) {
    assert.ok(error instanceof GatewayError, error instanceof Error ? error.stack : String(error));
    assert.notEqual(error.code, 'internal', error.message);
  }
}

test('R-77 a spoiled document is read or refused', (context) => {
  check(context, fc.tuple(way, odd), ([steps, value]) => {
    const body = spoil(responsesDocument(items), steps, value);
    if (isObject(body)) onlyGatewayErrors(() => void readResponse(body));
  });
});

test('R-73 a spoiled stream ends once: with a finish, an error or a refusal', (context) => {
  check(context, fc.tuple(way, odd), ([steps, value]) => {
    const spoiled = spoil([...responsesEvents(items)], steps, value);
    if (!Array.isArray(spoiled)) return;
    const text = spoiled.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    onlyGatewayErrors(() => {
      const reader = new ResponsesStreamReader();
      const events = framesIn(Buffer.from(text), []).flatMap((frame) => [...reader.read(frame)]);
      events.push(...reader.end());
      const endings = events.filter(({ type }) => type === 'finish' || type === 'error');
      assert.equal(endings.length, 1);
    });
  });
});
