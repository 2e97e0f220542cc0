/** G11 G2: what is translated in steps, with turns for others in between, is what is translated at once. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { describe, test } from 'node:test';
import type { Conversation, JsonObject, Part, Tool } from '../../src/core/conversation.ts';
import { jsonInSteps } from '../../src/core/json-write.ts';
import { tryParseObject } from '../../src/core/json.ts';
import { NoteList, type Note } from '../../src/core/notes.ts';
import { inTurns, type Steps } from '../../src/core/steps.ts';
import { dialects } from '../support/reading.ts';
import { conversation } from './arbitraries.ts';
import { checkAsync } from './checking.ts';
import { ask, halves, type Halves } from './dialect-halves.ts';

/** Where it grows beyond a step: in turns, in parts of one turn, or in the schema of one tool. */
const grown: fc.Arbitrary<Conversation> = fc
  .record({
    asked: conversation,
    where: fc.constantFrom('turns', 'parts', 'schema'),
    count: fc.integer({ min: 300, max: 600 }),
    strict: fc.boolean(),
  })
  .map(({ asked, where, count, strict }): Conversation => {
    switch (where) {
      case 'turns':
        return { ...asked, turns: repeated(asked.turns, count) };
      case 'parts': {
        const parts = Array.from({ length: count }, (_, i): Part => {
          return { type: 'text', text: `part ${i}` };
        });
        return { ...asked, turns: [...asked.turns, { role: 'user', parts }] };
      }
      default:
        return { ...asked, tools: [...asked.tools, wideTool(count, strict)] };
    }
  });

function repeated<T>(items: readonly T[], count: number): readonly T[] {
  return Array.from({ length: Math.ceil(count / items.length) }, () => items).flat();
}

function wideTool(count: number, strict: boolean): Tool {
  const names = Array.from({ length: count }, (_, i) => `${i % 2 === 0 ? 'n' : ''}${i}`);
  const properties = Object.fromEntries(
    names.map((name, i) => [
      name,
      i % 3 === 0 ? { type: 'string', minLength: i } : { anyOf: [{ type: 'null' }, { const: i }] },
    ]),
  );
  const schema = { type: 'object', properties, required: names, additionalProperties: false };
  return { name: 'wide', schema, strict };
}

interface Outcome {
  readonly notes: readonly Note[];
  readonly steps: number;
  readonly bytes: string;
}

function atOnce(body: JsonObject, client: Halves, upstream: Halves): Outcome {
  const notes = new NoteList();
  const read = client.client.readRequest(body, notes);
  const written = upstream.upstream.writeRequest(read, ask(upstream), notes);
  return { notes: notes.all, steps: 1, bytes: JSON.stringify(written) };
}

async function inSteps(body: JsonObject, client: Halves, upstream: Halves): Promise<Outcome> {
  const notes = new NoteList();
  let steps = 1;
  function* counted<T>(work: Steps<T>): Steps<T> {
    for (let step = work.next(); ; step = work.next()) {
      if (step.done === true) return step.value;
      steps += 1;
      yield;
    }
  }
  const read = await inTurns(counted(client.client.requestReading(body, notes)));
  const writing = upstream.upstream.requestWriting(read, ask(upstream), notes);
  const bytes = (await jsonInSteps(await inTurns(counted(writing)))).toString();
  return { notes: notes.all, steps, bytes };
}

for (const dialect of dialects) {
  const client = halves[dialect];
  describe(dialect, () => {
    for (const other of dialects.filter((each) => each !== dialect)) {
      test(`G11 a long ${dialect} body to ${other} is the same in steps`, async (context) => {
        let long = 0;
        await checkAsync(context, grown, async (asked) => {
          const written = client.upstream.writeRequest(asked, ask(client), new NoteList());
          const body = tryParseObject(JSON.stringify(written)) ?? {};
          const whole = atOnce(body, client, halves[other]);
          const stepped = await inSteps(body, client, halves[other]);
          assert.equal(stepped.bytes, whole.bytes);
          assert.deepEqual(stepped.notes, whole.notes);
          if (stepped.steps > 1) long += 1;
        });
        assert.ok(long > 0, 'none had several steps');
      });
    }
  });
}

test('G2 the text of what is heavy anywhere is that of JSON.stringify', async (context) => {
  const bodies = fc.record({
    value: fc.jsonValue({ maxDepth: 3 }),
    names: fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 6 }),
    count: fc.integer({ min: 1000, max: 3000 }),
    asList: fc.boolean(),
  });
  await checkAsync(context, bodies, async ({ value, names, count, asList }) => {
    const item = JSON.stringify(value);
    const many = Array.from({ length: count }, (_, i) => (asList ? item : `"${i}x":[${item}]`));
    const heavy = asList ? `[${many.join(',')}]` : `{${many.join(',')}}`;
    const text = names.reduce(
      (inner, name) => `{${JSON.stringify(name)}:${inner},"__proto__":[[],{},${item}]}`,
      heavy,
    );
    const body = { ...tryParseObject(text), absent: undefined };
    assert.equal((await jsonInSteps(body)).toString(), JSON.stringify(body));
  });
});
