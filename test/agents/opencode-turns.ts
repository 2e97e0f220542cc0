/** opencode itself, driven through the gateway (clients.md §5). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { listAt, numberAt, objectAt, textAt, type Dialect } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import { chatChunk, chatFrame } from '../upstream/chat.ts';
import { messagesFrames } from '../upstream/messages.ts';
import { opencode } from './agents.ts';
import { tooLong } from './too-long.ts';
import { reported } from './turn.ts';
import { withAgent } from './installed.ts';
import { contentText, play, resultsIn, roles, sideText } from './scene.ts';
import { assertSaid, assertServed, picture, toolTurns } from './tool-turns.ts';

const half = {
  chat: [chatFrame(chatChunk({ role: 'assistant', content: 'Half an ans' }))],
  messages: messagesFrames({ text: 'Half an answer' }).slice(0, 4),
} as const;

const other = { chat: 'messages', messages: 'chat' } as const;

/** Everything of opencode on the upstream of the other dialect, and a turn on its own. */
export function opencodeTurns(dialect: Dialect): void {
  withAgent('opencode', (command) => {
    let rig: Rig;
    before(async () => {
      rig = await startRig();
    });
    after(() => rig.stop());
    const agent = opencode(command, dialect);
    toolTurns(() => rig, agent);
    const upstream = other[dialect];
    const id = upstream === 'chat' ? 'call_1' : 'toolu_1';
    const pair = `${agent.name} on a ${upstream} upstream`;

    test(`§3 F3 ${pair}: its title is asked for, and the usage is what the upstream reported`, async () => {
      const scene = await play(rig, {
        agent,
        upstream,
        question: 'Count the quinces.',
        options: ['--format', 'json'],
        steps: () => [{ text: 'Seven.' }],
      });
      assert.equal(scene.ran.code, 0, scene.ran.err);
      const events = scene.ran.out
        .split('\n')
        .map((line) => objectAt(tryParseObject(line) ?? {}, 'part'));
      assert.equal(events.find((part) => part['type'] === 'text')?.['text'], 'Seven.');
      const tokens = objectAt(
        events.find((part) => part['type'] === 'step-finish') ?? {},
        'tokens',
      );
      assert.equal(numberAt(tokens, 'input'), reported.fresh);
      assert.equal(numberAt(objectAt(tokens, 'cache'), 'read'), reported.cacheRead);
      assert.equal(numberAt(tokens, 'output'), reported.output);
      assert.equal(scene.side.length, 1);
      assert.match(JSON.stringify(scene.side[0]), /Generate a title[^]*Count the quinces\./);
      assertServed(scene);
      for (const call of scene.calls) assert.equal(textAt(call, 'notes'), '');
    });

    test(`D1 D3 ${pair}: thoughts are shown, and come back to the upstream as they were`, async () => {
      const [thinking, signature] = ['Perhaps "so"\nor 東京.', 'EqQBCkYIBxgCKkB+/=='] as const;
      const scene = await play(rig, {
        agent,
        upstream,
        options: ['--thinking'],
        files: { 'note.txt': 'N1\n' },
        steps: (at) => [
          { thinking, signature, text: 'I look.', calls: [agent.read(id, at('note.txt'))] },
          { text: 'Seen.' },
        ],
      });
      assertSaid(scene, 'Seen.');
      assert.ok(scene.ran.out.includes('Perhaps "so"'), scene.ran.out);
      const turn = listAt(scene.main[1] ?? {}, 'messages').find((m) => m['role'] === 'assistant');
      if (upstream === 'messages') {
        const [first] = listAt(turn ?? {}, 'content');
        assert.deepEqual(first, { type: 'thinking', thinking, signature });
      } else {
        assert.equal(turn?.['content'], 'I look.', 'thoughts are no text');
      }
      assertServed(scene);
    });

    test(`B4 ${pair}: a picture that its tool reads reaches the upstream`, async () => {
      const scene = await play(rig, {
        agent,
        upstream,
        files: { 'p.png': picture },
        steps: (at) => [{ calls: [agent.read(id, at('p.png'))] }, { text: 'A dot.' }],
      });
      assertSaid(scene, 'A dot.');
      assert.equal(resultsIn(upstream, scene.main[1]).length, 1);
      assert.ok(JSON.stringify(scene.main[1]).includes(picture.toString('base64')));
    });

    test(`H1 ${pair}: a context that is too small is compacted, and it continues`, async () => {
      const scene = await play(rig, {
        agent,
        upstream,
        files: { 'note.txt': 'N1\n' },
        steps: (at) => [
          { text: 'I look.', calls: [agent.read(id, at('note.txt'))] },
          { answer: { status: 400, body: tooLong[upstream] } },
          { text: 'On with less.' },
        ],
      });
      assert.ok(scene.ran.out.includes('On with less.'), `${scene.ran.out}\n${scene.ran.err}`);
      assert.equal(scene.side.length, 2, 'a title and a summary');
      const last = scene.main[2] ?? {};
      assert.deepEqual(resultsIn(upstream, last), [], 'the history is gone');
      const words = listAt(last, 'messages').map(contentText).join('\n');
      assert.ok(words.includes(sideText), `the summary stands for it: ${words}`);
    });

    test(`E1 ${pair}: an answer that is cut off is not taken as whole`, async () => {
      const scene = await play(rig, {
        agent,
        upstream,
        steps: () => [
          { answer: { body: half[upstream], ending: 'reset' } },
          { text: 'Whole now.' },
        ],
      });
      assert.ok(!scene.ran.out.includes('Half an ans'));
      // Both of its packages ask again, because of the words of the last frame (C2).
      assertSaid(scene, 'Whole now.');
      assert.deepEqual(roles(scene.main[1]), roles(scene.main[0]));
    });
  });
}
