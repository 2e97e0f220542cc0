/** What every agent must be able to do through the gateway, whatever the upstream speaks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberAt, objectAt, textAt } from '../support/reading.ts';
import { errorIn } from '../upstream/reply.ts';
import type { Agent } from './agents.ts';
import type { Stage } from './stage.ts';
import { reported, type Wire } from './turn.ts';
import { play, resultsIn, type Scene } from './scene.ts';

/** Every call was answered, and charged with what the upstream reported. */
export function assertServed(scene: Pick<Scene, 'calls'>): void {
  for (const call of scene.calls) {
    assert.equal(call['outcome'], 'ok', JSON.stringify(call));
    assert.equal(call['usage_source'], 'reported');
    const counts = objectAt(call, 'reported');
    assert.equal(numberAt(counts, 'fresh_input_tokens'), reported.fresh);
    assert.equal(numberAt(counts, 'cache_read_tokens'), reported.cacheRead);
    assert.equal(numberAt(counts, 'output_tokens'), reported.output);
  }
}

/** The agent ended well, with these words as its last. */
export function assertSaid(scene: Scene, words: string): void {
  const { code, out, err } = scene.ran;
  assert.equal(code, 0, `${out}\n${err}`);
  assert.ok(out.includes(words), `${out}\n${err}`);
}

const id = { chat: 'call_Zk3v', messages: 'toolu_01Zk3v', responses: 'call_Zk3v' } as const;

/** A turn with a tool on both upstreams, and everything else on the foreign one. */
export function toolTurns(rig: () => Stage, agent: Agent): void {
  oneTool(rig, agent, agent.dialect);
  const foreign = agent.dialect === 'chat' ? 'messages' : 'chat';
  oneTool(rig, agent, foreign);
  severalTools(rig, agent, foreign);
}

export function oneTool(rig: () => Stage, agent: Agent, upstream: Wire): void {
  const pair = `${agent.name} on a ${upstream} upstream`;
  const mode = agent.dialect === upstream ? 'relay' : 'translate';

  test(`§3 ${pair}: its own tool reads a file, and it says what the model made of that`, async () => {
    const scene = await play(rig(), {
      agent,
      upstream,
      question: 'What does note.txt say?',
      files: { 'note.txt': 'The word is quince-4711.\n' },
      steps: (at) => [
        { text: 'I shall look.', calls: [agent.read(id[upstream], at('note.txt'))] },
        { text: 'It says that the word is quince.' },
      ],
    });
    assertSaid(scene, 'It says that the word is quince.');
    assert.equal(scene.main.length, 2);
    const [result, ...others] = resultsIn(upstream, scene.main[1]);
    assert.equal(result?.id, id[upstream]);
    assert.match(result.text, /The word is quince-4711\./);
    assert.deepEqual(others, []);
    assertServed(scene);
    for (const call of scene.calls) assert.equal(textAt(call, 'mode'), mode);
  });
}

export function severalTools(rig: () => Stage, agent: Agent, upstream: Wire): void {
  const pair = `${agent.name} on a ${upstream} upstream`;

  test(`B1 B5 ${pair}: two calls at once, each result under its own id`, async () => {
    const [first, second] = [`${id[upstream]}a`, `${id[upstream]}b`];
    const scene = await play(rig(), {
      agent,
      upstream,
      files: { 'one.txt': 'uno-1\n', 'two.txt': 'dos-2\n' },
      steps: (at) => [
        { calls: [agent.read(first, at('one.txt')), agent.read(second, at('two.txt'))] },
        { text: 'Both were read.' },
      ],
    });
    assertSaid(scene, 'Both were read.');
    const results = resultsIn(upstream, scene.main[1]);
    assert.deepEqual(
      results.map((result) => result.id),
      [first, second],
    );
    assert.match(results[0]?.text ?? '', /uno-1/);
    assert.match(results[1]?.text ?? '', /dos-2/);
    assertServed(scene);
  });

  test(`§3 ${pair}: it writes a file and runs a command, one after the other`, async () => {
    const text = 'Zeile 1: "Größe" \\ 東京 🙂\n\tZeile 2\n';
    // qwen-code sometimes reports no output of a command that ends quickly. The file has it.
    const command = 'wc -l < made.txt > counted.txt && echo "shell-$((40+2))" >> counted.txt';
    const scene = await play(rig(), {
      agent,
      upstream,
      steps: (at) => [
        { calls: [agent.write(`${id[upstream]}a`, at('made.txt'), text)] },
        { calls: [agent.shell(`${id[upstream]}b`, command)] },
        { text: 'Written and counted.' },
      ],
    });
    assertSaid(scene, 'Written and counted.');
    assert.equal(scene.files['made.txt'], text);
    assert.match(scene.files['counted.txt'] ?? '', /^\s*2\s+shell-42\s*$/);
    assert.equal(resultsIn(upstream, scene.main[2])[1]?.id, `${id[upstream]}b`);
    assertServed(scene);
  });

  test(`E9 ${pair}: an overloaded upstream is asked again by the gateway, then by the agent`, async () => {
    const words = upstream === 'messages' ? 'messages' : 'chat';
    const status = upstream === 'messages' ? 529 : 503;
    const overloaded = { answer: errorIn(words, status, 'Overloaded', { 'retry-after': '1' }) };
    const scene = await play(rig(), {
      agent,
      upstream,
      steps: () => [overloaded, overloaded, overloaded, { text: 'Here now.' }],
    });
    assertSaid(scene, 'Here now.');
    assert.equal(scene.main.length, 4);
    for (const again of scene.main) assert.deepEqual(again, scene.main[0]);
    const refused = scene.calls.filter((call) => call['status'] !== 200);
    const told = refused.map((call) => [call['status'], call['attempts']]);
    assert.deepEqual(told, [[agent.dialect === 'messages' ? 529 : 503, 3]]);
  });
}

/** One dot. */
export const picture: Buffer = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
