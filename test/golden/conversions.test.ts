/**
 * Freezes conversions literally: what each vendor gets of each request, and what clients get of each answer, relayed
 * and translated. What is right about them is proven by test/corpus, test/vendors and test/recordings; this test
 * shows every difference that a change makes. Vendors that get the same stand together.
 */
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { answering } from '../corpus/answer-sample.ts';
import { answerSamples, documentOf } from '../corpus/answers.ts';
import { cloudAnswers } from '../corpus/cloud-answers.ts';
import { sendSample, startCorpusRig, type CorpusRig } from '../corpus/corpus.ts';
import { corpus } from '../corpus/samples.ts';
import { upstreamDialects, type UpstreamDialect } from '../support/dialects.ts';
import { send, type Reply } from '../support/http.ts';
import { allDialects, type AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { startVendors } from '../support/vendors.ts';
import { memberShapes, promiseShapes } from '../vendors/members.ts';
import { messagesVendors, type MessagesRules } from '../vendors/messages-rules.ts';
import { messagesShapes } from '../vendors/messages-shapes.ts';
import { shapes, type Shape } from '../vendors/shapes.ts';
import { startStrictVendors } from '../vendors/strict.ts';
import { vendors } from '../vendors/tables.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import { assertGolden, laidOut } from './golden.ts';

/** Reasons of notes and messages of errors, which stand in a golden of their own. */
const sentences = new Set<string>();

let rig: CorpusRig;
before(async () => {
  rig = await startCorpusRig();
});
after(() => rig.stop());

for (const client of allDialects) {
  for (const upstream of upstreamDialects) {
    test(`corpus: ${client} requests to ${upstream} upstreams`, async (t) => {
      let text = '';
      for (const [id, sample] of Object.entries(corpus[client])) {
        const sent = await sendSample(rig, sample, { client, upstream });
        const answered = { status: sent.status, notes: sent.notes.join('; '), text: sent.text };
        text += `#### ${id}\n${outcome(sent.request, answered, sent.arrived[0])}\n`;
      }
      assertGolden(t, `corpus-${client}-to-${upstream}.txt`, text);
    });
  }
}

test('requests of all shapes to vendors of the chat dialect', async (t) => {
  const strict = await startStrictVendors();
  t.after(() => strict.stop());
  const text = await table([...shapes, ...memberShapes, ...promiseShapes], vendors, {
    nameOf: ({ provider, model }) => `${provider}/${model}`,
    send: async (rules, shape) => {
      const script = strict.script(rules);
      const first = script.requests.length;
      const model = `${rules.provider}/${rules.model}`;
      const body = { model, ...shape.body };
      const reply = await send(strict.gateway.url + endpointOf[shape.dialect], body);
      return { reply, received: script.requests[first] };
    },
  });
  assertGolden(t, 'vendors-chat.txt', text);
});

test('requests of all shapes to servers of the messages dialect', async (t) => {
  const idOf = ({ config }: MessagesRules, i: number): string =>
    config === undefined ? 'anthropic' : `vendor${i}`;
  const declared = messagesVendors.map((rules, i) => {
    const { config = {} } = rules;
    return [idOf(rules, i), { speaks: 'messages' as const, config }] as const;
  });
  const rig = await startVendors(Object.fromEntries(declared));
  t.after(() => rig.stop());
  // Those of Responses clients are played by test/vendors/messages-vendors.test.ts.
  const shapes = messagesShapes.flatMap(({ dialect, ...shape }) =>
    dialect === 'responses' ? [] : [{ ...shape, dialect }],
  );
  const text = await table(shapes, messagesVendors, {
    nameOf: ({ name }) => name,
    send: (rules, shape) => {
      const id = idOf(rules, messagesVendors.indexOf(rules));
      return rig.ask(shape.dialect, { model: `${id}/${rules.model}`, ...shape.body });
    },
  });
  assertGolden(t, 'vendors-messages.txt', text);
});

for (const upstream of allDialects) {
  test(`answers of ${upstream} upstreams to all clients`, async (t) => {
    let text = '';
    for (const sample of answerSamples[upstream]) {
      const answer = answering(upstream, documentOf(upstream, sample), sample.events);
      for (const client of allDialects) {
        const more = sample.to[client]?.asked ?? {};
        for (const stream of [false, true]) {
          const reply = await hear(client, upstream, { answer, stream, more });
          text += `#### ${sample.name}: ${client} ${stream ? 'stream' : 'document'}\n${reply}\n`;
        }
      }
    }
    assertGolden(t, `answers-${upstream}.txt`, text);
  });
}

for (const upstream of ['gemini', 'converse'] as const) {
  test(`answers of ${upstream} upstreams to all clients`, async (t) => {
    let text = '';
    for (const { name, document, stream: events } of cloudAnswers[upstream]) {
      for (const client of allDialects) {
        for (const stream of [false, true]) {
          const reply = await hear(client, upstream, {
            answer: stream ? events : document,
            stream,
          });
          text += `#### ${name}: ${client} ${stream ? 'stream' : 'document'}\n${reply}\n`;
        }
      }
    }
    assertGolden(t, `answers-${upstream}.txt`, text);
  });
}

test('the sentences of notes and errors', (t) => {
  assertGolden(t, 'conversions.prose.txt', `${[...sentences].toSorted().join('\n')}\n`);
});

interface Heard {
  readonly answer: (request: Received) => Answer;
  readonly stream: boolean;
  readonly more?: JsonObject;
}

let heard = 0;

/** What a client gets when the upstream gives this answer. */
async function hear(
  client: AnyDialect,
  upstream: UpstreamDialect,
  { answer, stream, more = {} }: Heard,
): Promise<string> {
  heard += 1;
  rig.upstreams[upstream].script(`heard-${heard}`, answer);
  const model = `up-${upstream}/heard-${heard}`;
  const body = requestBody(client, { model, stream, more });
  const reply = await send(rig.gateway.url + endpointOf[client], body);
  const text = settled(reply.text).replaceAll(model, 'MODEL').replaceAll(`heard-${heard}`, 'MODEL');
  return `${reply.status} ${notesOf(reply)}`.trimEnd() + `\n${text.trimEnd()}\n`;
}

interface Trial<Rules> {
  nameOf(rules: Rules): string;
  send(
    rules: Rules,
    shape: Shape,
  ): Promise<{ readonly reply: Reply; readonly received: Received | undefined }>;
}

/** For each shape what becomes of it, and at which vendors. */
async function table<Rules>(
  shapes: readonly Shape[],
  vendors: readonly Rules[],
  trial: Trial<Rules>,
): Promise<string> {
  let text = '';
  for (const shape of shapes) {
    const vendorsBy = new Map<string, string[]>();
    for (const rules of vendors) {
      const { reply, received } = await trial.send(rules, shape);
      const answered = { status: reply.status, notes: notesOf(reply), text: reply.text };
      const head = received === undefined ? '' : `${headOf(received)}\n`;
      const became = head + outcome(shape.body, answered, received?.json);
      const names = vendorsBy.get(became) ?? [];
      vendorsBy.set(became, [...names, trial.nameOf(rules)]);
    }
    text += `#### ${shape.dialect}: ${shape.name}\n`;
    for (const [became, names] of vendorsBy) text += `## ${names.join(', ')}\n${became}`;
    text += '\n';
  }
  return text;
}

interface Answered {
  readonly status: number;
  readonly notes: string;
  readonly text: string;
}

/** The status and notes, and the upstream's body; the error where nothing was sent. */
function outcome(asked: JsonObject, answered: Answered, arrived: JsonObject | undefined): string {
  const head = `${answered.status} ${answered.notes}`.trimEnd();
  if (arrived === undefined) {
    // The gateway's own count is an estimate that learns from earlier calls, whose settlement may come later.
    const text = settled(answered.text).replace(/"input_tokens":\d+/, '"input_tokens":"ESTIMATE"');
    return `${head}\n${text.trimEnd()}\n`;
  }
  const [sent, got] = [asked, arrived].map(({ model: _model, ...rest }) => laidOut(rest));
  return `${head}\n${sent === got ? 'as it was sent' : got}\n`;
}

/** What was noted of which member, without the reasons. */
function notesOf({ headers }: Reply): string {
  const notes = String(headers['x-gateway-notes'] ?? '');
  return notes.replace(
    /(: (?:dropped|changed)), (.*?)(?=; [^;:]+: (?:dropped|changed)|$)/g,
    (_, kept: string, why: string) => {
      sentences.add(why);
      return kept;
    },
  );
}

/** Headers of every request, and those whose values are made anew for each. */
const usual = new Set(['host', 'content-length', 'x-request-id', 'connection', 'accept-encoding']);

/** The path and the headers that a vendor or a request may have otherwise. */
function headOf({ path, headerLines }: Received): string {
  const lines = headerLines
    .filter(([name]) => !usual.has(name.toLowerCase()))
    .map(([name, value]) => `${name}: ${value.replace(/key-of-\S+/, 'KEY')}`);
  return [path, ...lines].join(', ');
}

/** Without ids, times and seals that are made anew for each call, and without the messages of errors. */
function settled(text: string): string {
  return text
    .replace(
      /"(chatcmpl-|msg_|req_|call_|toolu_|resp_|rs_|fc_|ctc_|ws_|tsc_|lsh_|sh_|apc_|item_|fco_|ctco_|tsco_|lsho_|sho_|apco_)[A-Za-z0-9_-]{8,}"/g,
      '"$1NEW"',
    )
    .replace(/"(created|created_at|completed_at)":\d{6,}/g, '"$1":NOW')
    .replace(/(gw1\.|gwr_\d+_\d+_)[\w.-]+/g, '$1SEAL')
    .replace(/"message":"((?:[^"\\]|\\.)*)"/g, (_, message: string) => {
      sentences.add(message);
      return '"message":"…"';
    });
}
