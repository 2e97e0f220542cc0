/** What every library must be able to do on `/v1/responses`, whatever the upstream speaks. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { listAt, numberAt, objectAt, textAt } from '../support/reading.ts';
import { brokenDocumentIn, brokenIn, slowIn } from './answers.ts';
import { Actor, type Act, type Acted, type Library } from './library.ts';
import { resultsIn } from './scene.ts';
import { startStage, type FullStage } from './stage.ts';
import { assertServed } from './tool-turns.ts';
import { reported, wires, type AgentCall, type Turn, type Wire } from './turn.ts';

const prefix = { chat: 'call_', messages: 'toolu_', responses: 'call_' } as const;
const typed = { city: 'Paris', degrees: 7 };

function call(upstream: Wire, name: string, city: string): AgentCall {
  return { id: `${prefix[upstream]}${name}`, name: 'weather', input: { city } };
}

/** Two calls, one after the other, and the answer. */
export function threeSteps(upstream: Wire): readonly Turn[] {
  return [
    {
      thinking: 'Which city?',
      signature: 'c2lnbmVk',
      text: 'I look.',
      calls: [call(upstream, 'first', 'Paris')],
    },
    { calls: [call(upstream, 'second', 'Oslo')] },
    { text: 'Sunny in both.' },
  ];
}

/**
 * Declares its tests on each upstream, by a program with the acts `steps` (documents), `stream`, `object` and `chain`.
 * @returns what plays further acts of it
 */
export function libraryTurns(library: Library): (act: Act) => Promise<Acted> {
  let stage: FullStage;
  let actor: Actor;
  before(async () => {
    stage = await startStage({ clients: { keep_alive: '50ms' } });
    actor = await Actor.start(stage, library);
  });
  after(async () => {
    await actor.close();
    await stage.stop();
  });
  const act = (wanted: Act): Promise<Acted> => actor.act(wanted);
  for (const upstream of wires) {
    const pair = `${library.name} on a ${upstream} upstream`;
    const play = (name: string, steps: Act['steps']): Promise<Acted> =>
      act({ name, upstream, steps });

    for (const name of ['steps', 'stream']) {
      test(`R-22 R-24 R-25 ${pair}: three steps with tools, ${name}`, async () => {
        const acted = await play(name, threeSteps(upstream));
        assert.equal(acted.told['text'], 'Sunny in both.', JSON.stringify(acted.told));
        assert.deepEqual(acted.told['calls'], ['Paris', 'Oslo']);
        if (name === 'stream') assert.equal(acted.told['streamed'], 'I look.Sunny in both.');
        const usage = objectAt(acted.told, 'usage');
        assert.equal(numberAt(usage, 'inputTokens'), 3 * (reported.fresh + reported.cacheRead));
        assert.equal(numberAt(usage, 'outputTokens'), 3 * reported.output);
        assert.equal(acted.bodies.length, 3);
        const [first, second] = ['first', 'second'].map((each) => `${prefix[upstream]}${each}`);
        assert.deepEqual(resultsIn(upstream, acted.bodies[2]), [
          { id: first, text: 'sunny in Paris' },
          { id: second, text: 'sunny in Oslo' },
        ]);
        assertServed(acted);
        assertThought(upstream, acted.bodies[2] ?? {});
        const mode = upstream === 'responses' ? 'relay' : 'translate';
        for (const row of acted.calls) assert.equal(textAt(row, 'mode'), mode);
      });
    }

    test(`R-17 ${pair}: signs of life in a slow stream change nothing`, async () => {
      const [thought = {}, , last = {}] = threeSteps(upstream);
      const slow = [thought, last].map((turn) => ({ answer: slowIn(upstream, turn, 120) }));
      const acted = await play('stream', slow);
      assert.equal(acted.told['text'], 'Sunny in both.', JSON.stringify(acted.told));
      assert.equal(acted.told['streamed'], 'I look.Sunny in both.');
      assert.deepEqual(acted.told['calls'], ['Paris']);
      assertServed(acted);
    });

    test(`R-51 ${pair}: an object of a schema`, async () => {
      const acted = await play('object', [{ text: JSON.stringify(typed) }]);
      assert.deepEqual(acted.told['object'], typed, JSON.stringify(acted.told));
      assert.match(JSON.stringify(acted.bodies[0]), /"degrees"/);
    });

    test(`R-27 ${pair}: a second question continues from the response before it`, async () => {
      const acted = await play('chain', [{ text: 'Sunny.' }, { text: 'Rainy.' }]);
      assert.equal(acted.told['text'], 'Rainy.', JSON.stringify(acted.told));
      const [, second = {}] = acted.bodies;
      const told = JSON.stringify(second['messages'] ?? second['input']);
      assert.match(told, /Weather\?.*Sunny\..*And tomorrow\?/);
      assert.equal(second['previous_response_id'], undefined);
    });

    for (const [what, turn] of [
      ['text', { text: 'Half an answer' }],
      ['call', { calls: [call(upstream, 'first', 'Paris')] }],
    ] as const) {
      test(`R-26 ${pair}: a stream that breaks in a ${what} is a failure`, async () => {
        assertFailed(await play('stream', [{ answer: brokenIn(upstream, turn) }]));
      });
    }

    test(`R-26 ${pair}: a document that breaks is a failure`, async () => {
      const half = brokenDocumentIn(upstream, { text: 'Half an answer' });
      assertFailed(await play('steps', [{ answer: half }]));
    });
  }
  return act;
}

/** It reported a failure, and ran no tool of an answer without an end. */
function assertFailed({ told, bodies, calls }: Acted): void {
  const failed = typeof told['thrown'] === 'string' || told['finish'] === 'error';
  assert.ok(failed, JSON.stringify(told));
  for (const body of bodies) assert.doesNotMatch(JSON.stringify(body), /sunny in/);
  for (const row of calls) assert.notEqual(row['outcome'], 'ok');
}

/** Reasoning of the first step is there again where the upstream reads it. */
function assertThought(upstream: Wire, body: JsonObject): void {
  if (upstream === 'messages') {
    const [, turn = {}] = listAt(body, 'messages');
    const [thought] = listAt(turn, 'content');
    const thinking = { thinking: 'Which city?', signature: 'c2lnbmVk' };
    assert.deepEqual(thought, { type: 'thinking', ...thinking });
  }
  if (upstream === 'responses') {
    const thought = listAt(body, 'input').find(({ type }) => type === 'reasoning');
    assert.match(textAt(thought ?? {}, 'encrypted_content'), /^blob-/);
  }
}
