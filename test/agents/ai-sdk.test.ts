/** The AI SDK on `/v1/responses`, as installed (wire/responses.md §9). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withLibraries } from './installed.ts';
import { libraryTurns, threeSteps } from './library-turns.ts';
import { act } from './library.ts';
import { startStage } from './stage.ts';
import { wires } from './turn.ts';

withLibraries((packages) => {
  const library = {
    name: 'ai-sdk',
    runner: [process.execPath],
    packages,
    program: 'ai-sdk.mjs',
  };
  libraryTurns(library);

  test('R-23 ai-sdk where no responses are kept: its second step is told so, and store: false helps', async () => {
    const stage = await startStage({ responses: { store: 'off' } });
    try {
      for (const upstream of wires) {
        const plot = { ...library, upstream, steps: threeSteps(upstream) };
        const { told, bodies } = await act(stage, { ...plot, name: 'steps' });
        assert.match(
          String(told['thrown']),
          /Items are not persisted when `store` is set to false/,
        );
        assert.equal(bodies.length, 1);
        const unkept = await act(stage, { ...plot, name: 'unkept' });
        assert.equal(unkept.told['text'], 'Sunny in both.', JSON.stringify(unkept.told));
        assert.equal(unkept.bodies.length, 3);
      }
    } finally {
      await stage.stop();
    }
  });
});
