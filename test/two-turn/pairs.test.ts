/**
 * Each client on each upstream, and then on another: what one provider sealed reaches no other, no call fails over it, and
 * it finds its way home (R-58, R-59; D1, D3, §5.4).
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { send, type Reply } from '../support/http.ts';
import { clientDialects, upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { endpointOf } from '../support/requests.ts';
import { answerIn } from '../upstream/reply.ts';
import type { Script } from '../upstream/scripted.ts';
import { firstTurns, type FirstTurn } from './first-turns.ts';
import { histories, secondBody, type History } from './histories.ts';
import { startStage, type Stage } from './stage.ts';

let stage: Stage;
before(async () => {
  stage = await startStage();
});
after(() => stage.stop());

/** One first answer of each upstream, and what must not leave it. */
const turns: {
  readonly [D in UpstreamDialect]: { readonly name: string; readonly proof: string };
} = {
  chat: { name: 'reasoning_content of DeepSeek', proof: 'First the time' },
  messages: { name: 'signed thinking', proof: 'ErUBCkYIBxgCIkD' },
  responses: { name: 'encrypted reasoning', proof: 'gAAAAB' },
  gemini: { name: 'a signed call of Gemini 3', proof: 'CiQBjz1rX25K' },
  converse: { name: 'signed reasoning of Claude by Converse', proof: 'ErUBConverse' },
};

/** Every server of Claude reads what another one signed. */
function areClaude(...both: readonly UpstreamDialect[]): boolean {
  return both.every((each) => each === 'messages' || each === 'converse');
}

function turnOf(upstream: UpstreamDialect): FirstTurn {
  const turn = firstTurns.find(({ name }) => name === turns[upstream].name);
  assert.ok(turn !== undefined);
  return turn;
}

let played = 0;

/** A model of this turn's provider that answers so. */
function play(
  turn: FirstTurn,
  first: boolean,
): { readonly model: string; readonly script: Script } {
  played += 1;
  const name = `${turn.model}-p${played}`;
  const done = answerIn(turn.upstream, { text: 'ok' }, false);
  const answers = first ? [turn.answer(false), done] : [done];
  return {
    model: `${turn.provider}/${name}`,
    script: stage[turn.upstream].script(name, ...answers),
  };
}

async function askSecond(
  history: History,
  model: string,
  kept: Awaited<ReturnType<History['ask']>>,
): Promise<Reply> {
  const reply = await send(
    stage.url() + endpointOf[history.dialect],
    secondBody(history, model, kept),
  );
  assert.equal(reply.status, 200, reply.text);
  return reply;
}

const kinds = ['raw document', 'previous_response_id'];

for (const client of clientDialects) {
  for (const history of histories.filter(
    ({ dialect, name }) => dialect === client && kinds.includes(name),
  )) {
    for (const from of upstreamDialects) {
      describe(`${client} client, ${history.name}, first on ${from}`, () => {
        for (const to of upstreamDialects.filter((each) => each !== from)) {
          test(`R-58 R-59 D1 then on ${to}, and back`, async () => {
            const turn = turnOf(from);
            const home = play(turn, true);
            const away = play(turnOf(to), false);
            const kept = await history.ask(stage.url(), home.model);
            await askSecond(history, away.model, kept);
            const sent = away.script.requests[0]?.body.toString() ?? '';
            assert.equal(sent.includes(turns[from].proof), areClaude(from, to), sent);
            assert.ok(!sent.includes('gw1.'), 'nor what the gateway sealed');
            for (const word of ['get_time', 'noon']) assert.ok(sent.includes(word), sent);
            await askSecond(history, home.model, kept);
            const back = home.script.requests[1]?.body.toString() ?? '';
            assert.ok(back.includes(turns[from].proof), back);
          });
        }
      });
    }
  }
}
