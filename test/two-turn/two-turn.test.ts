/**
 * The answer to a first question, kept the way each client keeps it and sent back with the results of
 * its calls: what reaches the upstream then (requirements.md D1–D7, wire/translation.md §5).
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { isInSample } from '../support/depth.ts';
import { send } from '../support/http.ts';
import { listAt } from '../support/reading.ts';
import type { ClientDialect, UpstreamDialect } from '../support/dialects.ts';
import { endpointOf } from '../support/requests.ts';
import { answerIn } from '../upstream/reply.ts';
import type { Script } from '../upstream/scripted.ts';
import {
  chatTurns,
  firstTurns,
  geminiTurns,
  messagesTurns,
  responsesTurns,
  type FirstTurn,
} from './first-turns.ts';
import { histories, question, secondBody, type History } from './histories.ts';
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
  const done = answerIn(turn.upstream, { text: 'ok' }, false);
  const script = stage[turn.upstream].script(name, turn.answer(history.stream), done);
  const model = `${turn.provider}/${name}`;
  return { history, turn, model, script, kept: await history.ask(stage.url(), model) };
}

async function askSecond({ history, turn, model, script, kept }: Asked): Promise<Second> {
  const url = stage.url() + endpointOf[history.dialect];
  const reply = await send(url, secondBody(history, model, kept));
  assert.equal(reply.status, 200, reply.text);
  const body = script.requests[1]?.json ?? {};
  const message = assistantIn[turn.upstream](body);
  return { body, message, notes: String(reply.headers['x-gateway-notes'] ?? '') };
}

const assistantMessage = (body: JsonObject): JsonObject =>
  listAt(body, 'messages').find(({ role }) => role === 'assistant') ?? {};

/** What the first answer is in the second request. */
const assistantIn: { readonly [D in UpstreamDialect]: (body: JsonObject) => JsonObject } = {
  chat: assistantMessage,
  messages: assistantMessage,
  converse: assistantMessage,
  responses: (body) => ({
    items: listAt(body, 'input').filter(
      ({ type, role }) => role !== 'user' && type !== 'function_call_output',
    ),
  }),
  gemini: (body) => listAt(body, 'contents').find(({ role }) => role === 'model') ?? {},
};

/** The expected message with the ids that this client was shown: some are illegal in its dialect. */
function withShownIds(message: JsonObject, { history, kept }: Asked): JsonObject {
  if (history.dialect === 'chat') return withoutItemIds(message);
  if (message['tool_calls'] === undefined) return message;
  const shown =
    history.dialect === 'messages'
      ? listAt(kept, 'content').filter(({ type }) => type === 'tool_use')
      : listAt(kept, 'items').filter(({ type }) => type === 'function_call');
  const calls = listAt(message, 'tool_calls');
  return {
    ...message,
    tool_calls: calls.map((call, i) => {
      const id = String(shown[i]?.['call_id'] ?? shown[i]?.['id']);
      return { ...call, id: legalId.test(id) ? id : renamed };
    }),
  };
}

const legalId = /^[\w-]+$/;
const renamed = 'another id';

/** The message as it is compared: an id that no other vendor would take may have become another, the same in its result. */
function compared({ message, body }: Second, { history, kept }: Asked): JsonObject {
  if (history.dialect === 'chat') return withoutItemIds(message);
  const [shown] = listAt(kept, 'items').filter(({ type }) => type === 'function_call');
  const [call] = listAt(message, 'tool_calls');
  if (call === undefined || legalId.test(String(shown?.['call_id'] ?? ''))) return message;
  if (history.dialect === 'messages') return message;
  const answered = listAt(body, 'messages').find(({ role }) => role === 'tool');
  assert.equal(answered?.['tool_call_id'], call['id'], 'the result answers the call');
  return { ...message, tool_calls: [{ ...call, id: renamed }] };
}

/** A chat client has no place for the id of a reasoning item; its encrypted content goes without it, too. */
function withoutItemIds(message: JsonObject): JsonObject {
  if (message['items'] === undefined) return message;
  return { items: listAt(message, 'items').map(({ id: _id, ...item }) => item) };
}

const historiesOf = (client: ClientDialect): readonly History[] =>
  histories.filter(({ dialect }) => dialect === client);
const chatHistories = historiesOf('chat');
const messagesHistories = historiesOf('messages');
const translated = firstTurns
  .flatMap((turn) =>
    histories
      .filter(({ dialect }) => dialect !== turn.upstream)
      .map((history) => ({ turn, history })),
  )
  .filter((_, i) => isInSample(i, 5));

describe('D1 D2 D3 D5 D6 §5.3 §5.4 translated, while the gateway remembers', () => {
  for (const { turn, history } of translated) {
    test(`${turn.name} comes back exactly: ${history.dialect} ${history.name}`, async () => {
      const first = await askFirst(history, turn);
      const second = await askSecond(first);
      const { body, notes } = second;
      assert.deepEqual(compared(second, first), withShownIds(turn.expected, first));
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
      const second = await askSecond(first);
      const { body, notes } = second;
      const whole = isWhole(first);
      const expected = whole ? turn.expected : turn.unknown;
      assert.deepEqual(compared(second, first), withShownIds(expected, first));
      if (turn.upstream !== 'messages') return;
      assert.equal(body['thinking'] === undefined, !whole, 'thinking is off for this call');
      assert.equal(notes.includes('thinking is off'), !whole, notes);
      assert.equal(notes.includes('changed or incomplete'), !whole && history.keeps === 'last');
    });
  });
});

const proofAlone = new Set([
  'signed thinking without text',
  'encrypted reasoning without a summary',
  'reasoning of Claude by Converse that is not shown',
  ...geminiTurns.map(({ name }) => name),
]);

function isWhole({ turn, history }: Asked): boolean {
  if (history.keeps === 'all' || history.keeps === 'joined') return true;
  // A signature alone fits into the last piece.
  return history.keeps === 'last' && proofAlone.has(turn.name);
}

describe('relayed', () => {
  for (const [i, turn] of chatTurns.entries()) {
    const whole = chatHistories.filter(({ keeps }) => keeps !== 'joined');
    for (const history of whole.filter((_, j) => isInSample(i + j, 5))) {
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

  for (const [i, turn] of responsesTurns.entries()) {
    for (const history of historiesOf('responses').filter((_, j) => isInSample(i + j, 5))) {
      test(`D1 R-3 ${turn.name} passes as the client sent it: ${history.name}`, async () => {
        const first = await askFirst(history, turn);
        const { body, notes } = await askSecond(first);
        const kept = listAt(first.kept, 'items');
        assert.deepEqual(listAt(body, 'input'), [
          question,
          ...kept,
          ...turn.callIds.map((id) => ({
            type: 'function_call_output',
            call_id: id,
            output: 'noon',
          })),
        ]);
        assert.equal(body['previous_response_id'], undefined);
        assert.equal(body['store'], false);
        assert.equal(notes, '');
      });
    }
  }

  for (const [i, turn] of messagesTurns.entries()) {
    for (const history of messagesHistories.filter((_, j) => isInSample(i + j, 5))) {
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
