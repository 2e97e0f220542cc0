/**
 * Agents against upstreams that fail: each ends as it does without the gateway, or better (C1, C2, C3). How
 * often an upstream was asked tells whether an agent tried in vain; no time is measured.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { begun } from '../faults/stream-pieces.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { errorIn } from '../upstream/reply.ts';
import type { Answer } from '../upstream/scripted.ts';
import { claudeCode, continueCli, opencode, pi, qwenCode, type Agent } from './agents.ts';
import { withAgent } from './installed.ts';
import { play, roles } from './scene.ts';
import { assertSaid } from './tool-turns.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

const agents: readonly (readonly [string, (program: readonly string[]) => Agent])[] = [
  ['claude-code', claudeCode],
  ['opencode', (program) => opencode(program, 'chat')],
  ['opencode', (program) => opencode(program, 'messages')],
  ['qwen-code', qwenCode],
  ['pi', pi],
  ['continue', continueCli],
];

/** As vLLM, llama.cpp and many chat templates do. */
function systemFirst(body: JsonObject): Answer | undefined {
  const late = roles(body).findIndex((role) => role === 'system' || role === 'developer') > 0;
  const twice = roles(body).filter((role) => role === 'system').length > 1;
  return late || twice
    ? errorIn('chat', 400, 'System message must be at the beginning.')
    : undefined;
}

/** What an agent sees of a failure does not depend on the upstream's dialect: each is tried once (told-alike.test.ts). */
function failures(agent: Agent): void {
  const upstream = agent.dialect === 'messages' ? 'messages' : 'chat';
  const foreign = upstream === 'chat' ? 'messages' : 'chat';

  test(`C3 ${agent.name} on a ${upstream} upstream: a wrong key of the gateway ends it at once`, async () => {
    const refused = { answer: errorIn(upstream, 401, 'Incorrect API key provided.') };
    const { ran, main, calls } = await play(rig, {
      agent,
      upstream,
      steps: () => [refused],
    });
    const shown = `${ran.out}\n${ran.err}`;
    assert.match(shown, /credentials or account/, shown);
    assert.equal(main.length, 1, `it asked ${main.length} times: ${shown}`);
    for (const call of calls.filter(({ status }) => status !== 200)) {
      assert.equal(call['error'], 'upstream_auth');
    }
  });

  test(`C2 ${agent.name} on a ${foreign} upstream: a stream that breaks is asked for again, and it ends well`, async () => {
    const cut: Answer = { body: [begun(foreign)], framing: 'chunked', ending: 'reset' };
    const scene = await play(rig, {
      agent,
      upstream: foreign,
      steps: () => [{ answer: cut }, { text: 'Here is all of it.' }],
    });
    assertSaid(scene, 'Here is all of it.');
    assert.equal(scene.main.length, 2);
  });
}

for (const [name, made] of agents) {
  withAgent(name, (program) => {
    const agent = made(program);
    failures(agent);

    test(`C1 ${agent.name}: an upstream that takes instructions at the beginning only`, async () => {
      const scene = await play(rig, {
        agent,
        upstream: 'chat',
        refuses: systemFirst,
        files: { 'note.txt': 'The word is quince-4711.\n' },
        steps: (at) => [
          { calls: [agent.read('call_Zk3v', at('note.txt'))] },
          { text: 'It says that the word is quince.' },
        ],
      });
      assertSaid(scene, 'It says that the word is quince.');
      assert.equal(scene.main.length, 2);
      for (const call of scene.calls) assert.equal(call['outcome'], 'ok', JSON.stringify(call));
    });
  });
}
