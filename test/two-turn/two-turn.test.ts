/**
 * The answer to a first question, kept the way each client keeps it and sent back with the results of
 * its calls: what reaches the upstream then (requirements.md D1–D7, wire/translation.md §5).
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { listAt } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';
import { chatDocument } from '../upstream/chat.ts';
import { messagesDocument } from '../upstream/messages.ts';
import type { Answer, Script } from '../upstream/scripted.ts';
import { chatTurns, messagesTurns, type FirstTurn } from './first-turns.ts';
import { histories, secondBody, type History } from './histories.ts';
import { startStage, type Stage } from './stage.ts';

let stage: Stage;
before(async () => {
  stage = await startStage();
});
after(() => stage.stop());

interface Asked {
  readonly history: History;
  readonly turn: FirstTurn;
  readonly model: string;
  readonly script: Script;
  readonly kept: JsonObject;
}

interface Second {
  readonly body: JsonObject;
  /** The assistant message. */
  readonly message: JsonObject;
  readonly notes: string;
}

let asked = 0;

async function askFirst(history: History, turn: FirstTurn): Promise<Asked> {
  asked += 1;
  const name = `${turn.model}-t${asked}`;
  const done: Answer = {
    body: JSON.stringify(
      turn.upstream === 'chat' ? chatDocument({ text: 'ok' }) : messagesDocument({ text: 'ok' }),
    ),
  };
  const script = stage[turn.upstream].script(name, turn.answer(history.stream), done);
  const model = `${turn.provider}/${name}`;
  return { history, turn, model, script, kept: await history.ask(stage.url(), model) };
}

async function askSecond({ history, model, script, kept }: Asked): Promise<Second> {
  const url = stage.url() + endpointOf[history.dialect];
  const reply = await send(url, secondBody(history, model, kept));
  assert.equal(reply.status, 200, reply.text);
  const body = script.requests[1]?.json ?? {};
  const message = listAt(body, 'messages').find(({ role }) => role === 'assistant') ?? {};
  return { body, message, notes: String(reply.headers['x-gateway-notes'] ?? '') };
}

/** The expected message with the ids that this client was shown: some are illegal in messages. */
function withShownIds(message: JsonObject, { history, kept }: Asked): JsonObject {
  if (history.dialect === 'chat' || message['tool_calls'] === undefined) return message;
  const shown = listAt(kept, 'content').filter(({ type }) => type === 'tool_use');
  const calls = listAt(message, 'tool_calls');
  return { ...message, tool_calls: calls.map((call, i) => ({ ...call, id: shown[i]?.['id'] })) };
}

const chatHistories = histories.filter(({ dialect }) => dialect === 'chat');
const messagesHistories = histories.filter(({ dialect }) => dialect === 'messages');
const translated = [
  ...messagesTurns.flatMap((turn) => chatHistories.map((history) => ({ turn, history }))),
  ...chatTurns.flatMap((turn) => messagesHistories.map((history) => ({ turn, history }))),
];

describe('D1 D2 D3 D5 D6 §5.3 §5.4 translated, while the gateway remembers', () => {
  for (const { turn, history } of translated) {
    test(`${turn.name} comes back exactly: ${history.dialect} ${history.name}`, async () => {
      const first = await askFirst(history, turn);
      const { body, message, notes } = await askSecond(first);
      assert.deepEqual(message, withShownIds(turn.expected, first));
      assert.equal(notes, '');
      if (turn.upstream === 'messages') assert.ok(body['thinking'] !== undefined);
    });
  }
});

describe('D3 D5 D6 §5.3 §5.4 translated, after a restart', () => {
  let all: readonly Asked[] = [];
  before(async () => {
    all = await Promise.all(translated.map(({ history, turn }) => askFirst(history, turn)));
    await stage.restart();
  });
  translated.forEach(({ turn, history }, i) => {
    test(`${turn.name}, nothing made up: ${history.dialect} ${history.name}`, async () => {
      const first = all[i];
      assert.ok(first !== undefined);
      const { body, message, notes } = await askSecond(first);
      const whole = isWhole(first);
      const expected = whole ? turn.expected : turn.unknown;
      assert.deepEqual(message, withShownIds(expected, first));
      if (turn.upstream !== 'messages') return;
      assert.equal(body['thinking'] === undefined, !whole, 'thinking is off for this call');
      assert.equal(notes.includes('thinking is off'), !whole, notes);
      assert.equal(notes.includes('changed or incomplete'), !whole && history.keeps === 'last');
    });
  });
});

function isWhole({ turn, history }: Asked): boolean {
  if (history.keeps === 'all' || history.keeps === 'joined') return true;
  // A signature alone fits into the last piece.
  return history.keeps === 'last' && turn.name === 'signed thinking without text';
}

describe('relayed', () => {
  for (const turn of chatTurns) {
    for (const history of chatHistories.filter(({ keeps }) => keeps !== 'joined')) {
      test(`D5 D6 ${turn.name} comes back: ${history.name}`, async () => {
        const first = await askFirst(history, turn);
        const { message } = await askSecond(first);
        const { role: _role, content: _content, ...wanted } = turn.expected;
        // What an upstream does not ask for is the client's own business.
        const loses = turn.provider === 'groq' && history.keeps !== 'all';
        const keys = loses ? ['tool_calls'] : Object.keys(wanted);
        for (const key of keys) assert.deepEqual(message[key], wanted[key], key);
      });
    }
  }

  for (const turn of messagesTurns) {
    for (const history of messagesHistories) {
      test(`D1 ${turn.name} passes as the client sent it: ${history.name}`, async () => {
        const first = await askFirst(history, turn);
        const { body, notes } = await askSecond(first);
        const sent = secondBody(history, first.model, first.kept);
        // The model refuses to go on thinking in a turn whose thinking the client did not keep.
        const off = history.keeps === 'standard' ? { thinking: { type: 'disabled' } } : {};
        assert.deepEqual(body, { ...sent, model: body['model'], ...off });
        assert.equal(notes.includes('thinking is off'), history.keeps === 'standard', notes);
        if (history.keeps === 'all') assert.deepEqual(first.kept, turn.expected);
      });
    }
  }
});
