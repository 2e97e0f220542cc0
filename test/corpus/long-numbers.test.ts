/**
 * An integer with more digits than a double holds is kept as an object (`JSON.rawJSON`) that cannot become a text by
 * `String`. In place of each member of each sample it is carried or refused, and never a failure of the gateway.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBody } from '../../src/core/client-body.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { NoteList } from '../../src/core/notes.ts';
import { isArray, isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { corpus } from './samples.ts';
import { clientDialects, upstreamDialects } from '../support/dialects.ts';
import type { AnyDialect } from '../support/reading.ts';
import { requestBody } from '../support/requests.ts';
import { ask, halves, upstreamHalves } from '../property/dialect-halves.ts';

const digits = '12345678901234567890';
const mark = '@digits@';

/** Copies of the value, each with another member replaced by the mark. */
function* marked(value: Json): Generator<Json> {
  if (isArray(value)) {
    for (const [i, each] of value.entries()) {
      yield value.with(i, mark);
      for (const inner of marked(each)) yield value.with(i, inner);
    }
  } else if (isObject(value)) {
    for (const [key, each] of Object.entries(value)) {
      if (each === undefined) continue;
      yield { ...value, [key]: mark };
      for (const inner of marked(each)) yield { ...value, [key]: inner };
    }
  }
}

function refusesProperly(work: () => void, text: string): void {
  try {
    work();
  } catch (error) {
    const why = error instanceof Error ? error.stack : String(error);
    assert.ok(error instanceof GatewayError && error.code !== 'internal', `${why}\n${text}`);
  }
}

function translateEverywhere(dialect: AnyDialect, text: string): void {
  const { client } = halves[dialect];
  const source = parseBody(Buffer.from(text), new Set());
  refusesProperly(() => client.readHead(source.value), text);
  refusesProperly(() => {
    const described = client.describe(source);
    described.prompt();
    described.raisedCost({ reasoningBudget: undefined, tokensOf: () => 1 });
  }, text);
  for (const upstream of upstreamDialects) {
    const half = upstreamHalves[upstream];
    refusesProperly(() => {
      // What the head refuses is read by no translation.
      client.readHead(source.value);
      const read = client.readRequest(source.value, new NoteList());
      half.upstream.writeRequest(read, ask(half), new NoteList());
    }, text);
  }
}

for (const dialect of clientDialects) {
  test(`${dialect}: a long number in any place is carried or refused`, () => {
    let seen = 0;
    for (const { sends } of Object.values(corpus[dialect])) {
      const more: JsonObject = { ...sends };
      const body = requestBody(dialect, { model: 'm', stream: false, more });
      for (const each of marked(body)) {
        seen += 1;
        translateEverywhere(dialect, JSON.stringify(each).replace(`"${mark}"`, digits));
      }
    }
    assert.ok(seen > 500, String(seen));
  });
}
