import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import type { JsonObject } from '../../../src/json/value.ts';
import { EventFrames } from '../../../src/providers/clouds/aws/event-frames.ts';
import { invokeChunk } from '../../upstream/aws.ts';

const metrics = 'amazon-bedrock-invocationMetrics';

function dataOf(event: JsonObject): readonly (string | undefined)[] {
  const frames = new EventFrames(() => new GatewayError('upstream_unavailable', 'unused'));
  return frames.push(invokeChunk(event)).map(({ data }) => data);
}

test('Bedrock: what AWS measured is taken out of the last event, and nothing else of it', () => {
  const event = { type: 'message_stop' };
  assert.deepEqual(dataOf({ ...event, [metrics]: { inputTokenCount: 3 } }), [
    JSON.stringify(event),
  ]);
});

test('Bedrock: an answer that quotes the name of that member arrives as it was written', () => {
  const delta = { type: 'text_delta', text: `the member "${metrics}" of the last event` };
  const event = { type: 'content_block_delta', index: 0, delta };
  assert.deepEqual(dataOf(event), [JSON.stringify(event)]);
});
