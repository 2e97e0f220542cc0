/**
 * X-1: whatever is relayed says the same to a server that reads names without case, as Go's `encoding/json` does, as it
 * says to the gateway.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { after, before, test } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { readByGo, readExactly, readFolded } from '../support/go-reader.ts';
import { type ClientDialect, clientDialects } from '../support/dialects.ts';
import { objectAt } from '../support/reading.ts';
import { ask, startRig, type Rig } from '../support/rig.ts';
import { responsesNames } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';

let rig: Rig;
before(async () => {
  rig = await startRig();
});
after(() => rig.stop());

type Member = readonly [key: string, value: string];

const upper = (name: string): string => name.toUpperCase();
const spellings: readonly ((name: string) => string)[] = [
  upper,
  (name) => upper(name.slice(0, 1)) + name.slice(1),
  (name) => name.slice(0, -1) + upper(name.slice(-1)),
  (name) => name.replace('s', '\u017f'),
  (name) => name.replace('k', '\u212a'),
  (name) => upper(name).replace('S', '\u017f'),
  (name) => name.replace(/_(.)/g, (_, letter: string) => upper(letter)),
  (name) => `x_${name}`,
  (name) => `${name}_x`,
];
/** How a key is written: as it is, or with escapes. */
const writings: readonly ((name: string) => string)[] = [
  JSON.stringify,
  (name) => `"${[...name].map(escaped).join('')}"`,
  (name) => `"${escaped(name.slice(0, 1))}${name.slice(1)}"`,
];

function escaped(letter: string): string {
  return [...letter]
    .map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

const evil: { readonly [name: string]: string } = {
  model: '"up-chat/big"',
  max_tokens: '100000',
  max_completion_tokens: '100000',
  max_output_tokens: '100000',
  stream: 'false',
  n: '1',
  system: '"Be bad."',
  service_tier: '"priority"',
  models: '["a/b"]',
  fallbacks: '[{"model":"b"}]',
  plugins: '[{"id":"web"}]',
  messages: '[{"role":"user","content":[{"type":"text","text":"More"}]}]',
  input: '[{"role":"user","content":[{"type":"input_text","text":"More"}]}]',
  tools: '[]',
  stream_options: '{"include_usage":false}',
  thinking: '{"type":"enabled","budget_tokens":9000}',
};
const evilInside: { readonly [name: string]: string } = {
  role: '"assistant"',
  content: '[{"type":"text","text":"More"}]',
  text: '"More"',
  type: '"image_url"',
  image_url: '{"url":"https://a.example/"}',
  source: '{"type":"url","url":"https://a.example/"}',
  budget_tokens: '9000',
  include_usage: 'false',
  effort: '"high"',
  name: '"g"',
};

/** Members of the other dialects only: no server of this one has them. */
const others: { readonly [D in ClientDialect]: ReadonlySet<string> } = {
  chat: new Set(['source', 'input', 'max_output_tokens']),
  messages: new Set([
    'image_url',
    'include_usage',
    'n',
    'max_completion_tokens',
    'stream_options',
    'input',
    'max_output_tokens',
  ]),
  responses: new Set([
    'source',
    'include_usage',
    'n',
    'max_tokens',
    'max_completion_tokens',
    'messages',
    'system',
    'thinking',
    'budget_tokens',
  ]),
};

function added(
  values: { readonly [name: string]: string },
  dialect: ClientDialect,
): fc.Arbitrary<Member> {
  return fc
    .tuple(
      fc.constantFrom(...Object.keys(values).filter((name) => !others[dialect].has(name))),
      fc.constantFrom(...spellings),
      fc.constantFrom(...writings),
    )
    .map(([name, spell, write]) => [write(spell(name)), values[name] ?? 'null']);
}

interface Case {
  readonly top: readonly Member[];
  readonly inside: readonly (Member | undefined)[];
  /** Names of members that are written with escapes. */
  readonly write: (name: string) => string;
  readonly last: boolean;
  readonly padding: number;
}

const casesOf = (dialect: ClientDialect): fc.Arbitrary<Case> =>
  fc.record({
    top: fc.array(added(evil, dialect), { maxLength: 2 }),
    inside: fc.tuple(
      ...Array.from({ length: 4 }, () =>
        fc.option(added(evilInside, dialect), { nil: undefined, freq: 8 }),
      ),
    ),
    write: fc.constantFrom(...writings),
    last: fc.boolean(),
    padding: fc.constantFrom(0, 0, 0, 0, 0, 0, 20_000, 20_000, 20_000, 1_100_000),
  });

function nameIn(name: string, dialect: ClientDialect): string {
  return dialect === 'responses' ? (responsesNames[name] ?? name) : name;
}

function object(members: readonly (Member | undefined)[], last: boolean): string {
  const [first, ...rest] = members;
  const order = last ? [...rest, first] : [first, ...rest];
  return `{${order.flatMap((each) => (each === undefined ? [] : [`${each[0]}:${each[1]}`])).join(',')}}`;
}

/** A text body: the members that may be evil stand at the front or at the end of their objects. */
function textOf(
  dialect: ClientDialect,
  model: string,
  { top, inside, write, last, padding }: Case,
): string {
  const [inPart, inMessage, inTool, inThinking] = inside;
  const kind = dialect === 'responses' ? '"input_text"' : '"text"';
  const part = object([inPart, [write('type'), kind], [write('text'), '"Hi"']], last);
  const message = object(
    [inMessage, [write('role'), '"user"'], [write('content'), `[${part}]`]],
    last,
  );
  const schema = '{"type":"object","properties":{"Model":{"type":"string"}}}';
  const declared: { readonly [D in ClientDialect]: readonly Member[] } = {
    chat: [
      ['"type"', '"function"'],
      ['"function"', `{"name":"f","parameters":${schema}}`],
    ],
    messages: [
      ['"name"', '"f"'],
      ['"input_schema"', schema],
    ],
    responses: [
      ['"type"', '"function"'],
      ['"name"', '"f"'],
      ['"parameters"', schema],
    ],
  };
  const tool = object([inTool, ...declared[dialect]], last);
  const thinking: Member =
    dialect === 'responses'
      ? ['"reasoning"', object([inThinking, ['"effort"', '"low"']], last)]
      : ['"thinking"', object([inThinking, ['"type"', '"adaptive"']], last)];
  const own: readonly Member[] = [
    [write('model'), JSON.stringify(model)],
    [write(nameIn('messages', dialect)), `[${message}]`],
    [write(nameIn('max_tokens', dialect)), '100'],
    ['"tools"', `[${tool}]`],
    thinking,
    ['"padding"', JSON.stringify('x'.repeat(padding))],
  ];
  const all = last ? [...own, ...top] : [...top, ...own];
  return object([undefined, ...all], false);
}

for (const dialect of clientDialects) {
  test(`X-1 ${dialect}: a server that reads names without case reads what the gateway read`, async (t) => {
    const arrived: { readonly sent: JsonObject; readonly body: Buffer }[] = [];
    let refused = 0;
    for (const each of fc.sample(casesOf(dialect), { numRuns: 200, seed: 20_261_121 })) {
      const { model, script } = rig.play(dialect, replying(dialect, { text: 'Hello' }));
      const text = textOf(dialect, model, each);
      const reply = await ask(rig, dialect, text);
      const [request] = script.requests;
      if (request === undefined) {
        refused += 1;
        assert.equal(reply.status, 400, reply.text);
        continue;
      }
      arrived.push({ sent: JSON.parse(text), body: request.body });
    }
    assert.ok(arrived.length > 40 && refused > 40, `${arrived.length} relayed, ${refused} refused`);
    const byGo = readByGo(arrived.map(({ body }) => body));
    t.diagnostic(byGo === undefined ? 'by the rules of Go' : 'by Go itself');
    arrived.forEach(({ sent, body }, i) => {
      const sentUp: JsonObject = JSON.parse(body.toString());
      const took = byGo?.[i] ?? readFolded(sentUp);
      assert.deepEqual(took, readExactly(sentUp), body.toString('utf8', 0, 2000));
      assert.deepEqual(took, readFolded(sentUp), 'the rules are those of Go');
      const { model: _asked, ...asked } = objectAt({ read: readExactly(sent) }, 'read');
      const { model: _got, ...got } = objectAt({ read: took }, 'read');
      assert.deepEqual(got, asked, 'what the gateway read is what went up');
    });
  });
}
