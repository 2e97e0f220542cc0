/** The OpenAI SDK for Python on `/v1/responses`, as installed (wire/responses.md §9). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withAgent } from './installed.ts';
import { libraryTurns } from './library-turns.ts';
import { wires } from './turn.ts';

withAgent('python-openai', (runner) => {
  const library = { name: 'openai for Python', runner, program: 'python-openai.py' };
  const act = libraryTurns(library);

  test('R-34 R-35 R-37 openai for Python: a kept response is reported, counted, cancelled and deleted', async () => {
    for (const upstream of wires) {
      const { told } = await act({ name: 'kept', upstream, steps: [{ text: 'Sunny.' }] });
      assert.deepEqual(told, {
        same: true,
        last: 'response.completed',
        items: ['Weather?'],
        count: ['response.input_tokens', true],
        cancelled: [400, null],
        retrieved: [404, null],
        continued: [400, 'previous_response_not_found'],
      });
    }
  });
});
