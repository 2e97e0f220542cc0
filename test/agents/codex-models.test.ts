/** Codex under names of models that it knows and does not know, and at the ends that answers may have (wire/responses.md §9, §11). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { answerIn } from '../upstream/reply.ts';
import { responsesAnswer, textItem } from '../upstream/responses.ts';
import type { Answer } from '../upstream/scripted.ts';
import { pausedIn } from './answers.ts';
import { hasNamespaces } from './box.ts';
import { codex, shell } from './codex.ts';
import { withAgent } from './installed.ts';
import { play, resultsIn, type Plot, type Scene, type Step } from './scene.ts';
import { startStage, type FullStage } from './stage.ts';
import { assertSaid, assertServed, picture } from './tool-turns.ts';
import { tooLong } from './too-long.ts';
import { wires, type Wire } from './turn.ts';

/** Of the first Codex has scripts that call its tools, of the second a search for them. */
const names = ['gpt-6.1-sol', 'gpt-5.5'] as const;

withAgent('codex', (command) => {
  let stage: FullStage;
  before(async () => {
    const routes = wires.flatMap((wire) =>
      names.map((name) => [`${name}-${wire}`, { targets: [`up-${wire}/${name}`] }]),
    );
    stage = await startStage({
      clients: { keep_alive: '100ms' },
      models: Object.fromEntries(routes),
    });
  });
  after(() => stage.stop());

  /** Without a name it asks for a model that it does not know. */
  async function ask(
    name: (typeof names)[number] | undefined,
    upstream: Wire,
    steps: readonly Step[],
    more: Partial<Plot> = {},
  ): Promise<Scene> {
    const server = stage.upstreams[upstream];
    const known = { model: { asked: `${name}-${upstream}`, upstream: name ?? '', server } };
    const plot = { agent: codex(command), upstream, steps: () => steps };
    return play(stage, { ...plot, ...(name === undefined ? {} : known), ...more });
  }

  for (const upstream of wires) {
    const pair = `codex on a ${upstream} upstream`;
    const id = upstream === 'messages' ? 'toolu_01one' : 'call_one';

    test(`R-7 ${pair}: a model whose tools are an input item runs its script`, async () => {
      const input = 'const r = await tools.exec_command({ cmd: "cat note.txt" }); text(r.output);';
      const scene = await ask(
        'gpt-6.1-sol',
        upstream,
        [{ calls: [{ id, name: 'exec', input: { input }, free: true }] }, { text: 'It ran.' }],
        { files: { 'note.txt': 'quince-4711' } },
      );
      assertSaid(scene, 'It ran.');
      const [result] = resultsIn(upstream, scene.main[1]);
      assert.equal(result?.id, id);
      assert.match(result.text, /Script completed[^]*quince-4711/);
      assertServed(scene);
    });

    test(`R-9 ${pair}: the picture that its tool shows reaches the model`, async () => {
      const call = { id, name: 'view_image', input: { path: 'dot.png' } };
      const files = { 'dot.png': picture };
      const steps = [{ calls: [call] }, { text: 'A dot.' }];
      const scene = await ask(undefined, upstream, steps, { files });
      assertSaid(scene, 'A dot.');
      assert.match(JSON.stringify(scene.main[1]), /image\/png/);
      assertServed(scene);
    });

    test(`R-12 ${pair}: a limit is waited for, and the call made again`, async () => {
      const body = '{"error":{"message":"slow down"}}';
      const limited = { answer: { status: 429, headers: { 'retry-after': '2' }, body } };
      const scene = await ask(undefined, upstream, [limited, { text: 'In time.' }]);
      assertSaid(scene, 'In time.');
      assert.equal(scene.main.length, 2);
    });

    test(`R-13 ${pair}: a conversation that is too long is reported as such, after one request`, async () => {
      const answer = { status: 400, body: tooLong[upstream] };
      const scene = await ask(undefined, upstream, [{ answer }]);
      assert.notEqual(scene.ran.code, 0);
      assert.match(scene.ran.err, /ran out of room in the model's context window/);
      assert.equal(scene.main.length, 1);
    });

    test(`R-15 ${pair}: an answer that was cut for its length is no success`, async () => {
      const scene = await ask(undefined, upstream, [{ answer: cutIn(upstream) }]);
      assert.notEqual(scene.ran.code, 0, scene.ran.out);
      assert.match(scene.ran.err, /max_output_tokens/);
    });

    test(`R-17 ${pair}: signs of life keep a slow answer from being asked for again`, async () => {
      const slow = { answer: pausedIn(upstream, { text: 'Slow.' }, 2500) };
      const agent = codex(command, 'stream_idle_timeout_ms = 1500');
      const scene = await ask(undefined, upstream, [slow], { agent });
      assertSaid(scene, 'Slow.');
      assert.equal(scene.main.length, 1);
    });

    test(`R-16 ${pair}: its attempt at a WebSocket is refused, and it asks by POST once a turn`, async () => {
      const agent = codex(command, 'supports_websockets = true');
      const steps = [{ calls: [shell(id, 'echo one')] }, { text: 'By POST.' }];
      const scene = await ask(undefined, upstream, steps, { agent });
      assertSaid(scene, 'By POST.');
      assert.equal(scene.main.length, 2);
      const posts = scene.asked.filter((line) => line === 'POST /v1/responses');
      if (!hasNamespaces) return;
      assert.equal(posts.length, 2, scene.asked.join());
      assert.ok(scene.asked.includes('GET /v1/responses'), 'it tried');
    });

    test(`R-18 ${pair}: it compacts by an ordinary turn, and continues`, async () => {
      const steps = [
        { text: 'I look.', calls: [shell(id, 'cat note.txt')] },
        { text: 'It went on.' },
      ];
      const scene = await ask(undefined, upstream, steps, {
        files: { 'note.txt': 'quince-4711' },
        options: ['-c', 'model_auto_compact_token_limit=1000'],
      });
      assertSaid(scene, 'It went on.');
      assert.match(scene.ran.err, /context compacted/);
      assert.ok(scene.side.length > 0, 'a turn without tools');
      assertServed(scene);
    });
  }

  for (const upstream of ['chat', 'messages'] as const) {
    test(`R-6 codex on a ${upstream} upstream: tools that it searched for are offered`, async () => {
      const id = upstream === 'messages' ? 'toolu_01one' : 'call_one';
      const call = { id, name: 'tool_search', input: { query: 'agent', limit: 3 } };
      const scene = await ask('gpt-5.5', upstream, [{ calls: [call] }, { text: 'Searched.' }]);
      assertSaid(scene, 'Searched.');
      assert.match(resultsIn(upstream, scene.main[1])[0]?.text ?? '', /Tools found/);
      const offered = scene.main.map((body) => JSON.stringify(body['tools']));
      assert.doesNotMatch(offered[0] ?? '', /close_agent/);
      assert.match(offered[1] ?? '', /"multi_agent_v1__close_agent"/);
      assertServed(scene);
    });
  }
});

/** An answer that ended because it may not be longer. */
function cutIn(upstream: Wire): Answer {
  const text = 'Half an answer';
  if (upstream !== 'responses') return answerIn(upstream, { text, length: true }, true);
  return responsesAnswer([{ ...textItem(text), status: 'incomplete' }], {
    stream: true,
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
  });
}
