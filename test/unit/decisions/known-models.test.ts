/** D11, D12: what the tables and the notes say, held against the readers and writers at all known models. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import type { Note } from '../../../src/core/notes.ts';
import { corpus } from '../../corpus/samples.ts';
import { departures, sampleOf, sampleRequest, tryAt } from '../../decisions/elsewhere.ts';
import {
  knownModels,
  vendorsWithoutModels,
  type KnownModel,
} from '../../decisions/known-models.ts';
import { requestTables, rowId } from '../../decisions/rows.ts';
import { upstreamDialects, type UpstreamDialect } from '../../support/dialects.ts';
import { allDialects, type AnyDialect } from '../../support/reading.ts';

test('D12 every known vendor has a model that the samples are tried at', () => {
  assert.deepEqual(vendorsWithoutModels(), []);
});

test('D12 a demand that some models cannot be made to meet is not called the same everywhere', () => {
  const row = { id: 'tool_choice (required)', path: 'tool_choice' };
  const told = departures('chat', knownModels('messages'), row).told.map(({ name }) => name);
  assert.ok(told.includes('anthropic/claude-opus-5-5'), told.join());
});

test('D12 thinking that cannot be switched off is reported: grok-4, magistral, kimi-k2.7', () => {
  for (const target of [
    'xai/grok-4',
    'mistral/magistral-medium-latest',
    'moonshot/kimi-k2.7-code',
  ]) {
    const known = knownModels('chat').find(({ name }) => name === target);
    assert.ok(known !== undefined, target);
    const request = sampleRequest('messages', { sends: { thinking: { type: 'disabled' } } });
    assert.deepEqual(
      tryAt('messages', request, known).notes.map(({ path }) => path),
      ['thinking'],
      target,
    );
  }
});

/** Whether a value stands at a note's path. */
function stands(request: JsonObject, path: string): boolean {
  let value: Json | undefined = request;
  for (const step of path.split('.')) {
    if (Array.isArray(value)) value = value[Number(step)];
    else value = isObject(value) ? value[step] : undefined;
  }
  return value !== undefined;
}

/** Fields of each API at the top level, by the SDKs' types. */
function fieldsOf(dialect: AnyDialect): ReadonlySet<string> {
  return new Set(requestTables[dialect].rows.map(({ path }) => path.split(/[.[]/)[0] ?? ''));
}
const fields: { readonly [D in AnyDialect]: ReadonlySet<string> } = {
  chat: fieldsOf('chat'),
  messages: fieldsOf('messages'),
  responses: fieldsOf('responses'),
};

function untrue(request: JsonObject, { path, why }: Note, to: UpstreamDialect): boolean {
  if (!stands(request, path)) return true;
  const known = to === 'gemini' || to === 'converse' ? undefined : fields[to];
  return /has no such field/.test(why) && known?.has(path.split('.')[0] ?? '') === true;
}

for (const client of allDialects) {
  suite(`D11 notes of ${client} requests`, () => {
    for (const upstream of upstreamDialects) {
      const models = knownModels(upstream);
      test(`D11 at ${upstream} models: each names what was sent, and says what is so`, () => {
        const wrong = new Set<string>();
        for (const [id, sample] of Object.entries(corpus[client])) {
          const request = sampleRequest(client, sample);
          for (const known of models) {
            for (const note of tryAt(client, request, known).notes) {
              if (untrue(request, note, upstream)) wrong.add(`${id}: ${note.path}: ${note.why}`);
            }
          }
        }
        assert.deepEqual([...wrong], []);
      });
    }
  });
}

/** The request without the field. */
function without(request: JsonObject, path: readonly string[]): JsonObject {
  const copy: unknown = JSON.parse(JSON.stringify(request));
  const holder = path.slice(0, -1).reduce<unknown>((value, step) => Object(value)[step], copy);
  const last = path.at(-1) ?? '';
  if (Array.isArray(holder)) holder.splice(Number(last), 1);
  else Reflect.deleteProperty(Object(holder), last);
  return isObject(copy) ? copy : {};
}

/** Fields that every request has, or that are looked at in depth. */
const elsewhere: ReadonlySet<string> = new Set(['model', 'stream', 'messages', 'input', 'tools']);

/** The same holds without the field: the model does so anyway, or the gateway itself does it. */
function saysNothing(request: JsonObject, field: string, known: KnownModel): boolean {
  const { traits } = known;
  switch (field) {
    case 'stop':
    case 'stop_sequences':
      return traits.stopMax === 0 || traits.stopMax === 1;
    case 'tool_choice':
    case 'function_call': {
      const choice = request[field];
      return choice === 'auto' || (isObject(choice) && choice['type'] === 'auto');
    }
    case 'reasoning_effort':
      return request[field] === 'none' && traits.thinksByDefault !== true;
    case 'cache_control':
      return !traits.cacheMarks;
    case 'thinking':
      return traits.reasoningControl === 'none' && traits.reasonsFirst !== true;
    default:
      return false;
  }
}

for (const client of allDialects) {
  const { upstreams, towards } = requestTables[client];
  for (const upstream of upstreams) {
    const models = knownModels(upstream);
    test(`D12 what is EXACT at the top level of ${client} requests never vanishes at ${upstream} models`, () => {
      const vanished = new Set<string>();
      for (const row of towards(upstream)) {
        const { verdict, path, outer } = row;
        const [field = ''] = path.split('[');
        if (outer || verdict.decision !== 'EXACT' || verdict.to === '' || path.includes('.'))
          continue;
        const sample = sampleOf(client, rowId(row));
        if (sample === undefined || elsewhere.has(field) || row.when.includes('OpenAI')) continue;
        const request = sampleRequest(client, sample);
        for (const known of models) {
          if (saysNothing(request, field, known)) continue;
          const tried = tryAt(client, request, known);
          if (tried.refused !== undefined || tried.notes.length > 0) continue;
          const bare = tryAt(client, without(request, [field]), known);
          if (JSON.stringify(bare.body) === JSON.stringify(tried.body)) {
            vanished.add(`${rowId(row)} at ${known.name}`);
          }
        }
      }
      assert.deepEqual([...vanished], []);
    });
  }
}
