/**
 * D3: nothing of an answer is lost in silence. An unknown member in any object of any answer of the corpus, an unknown
 * type of any of its objects, and an unknown event at any place of its stream are noted, arrive, or fail the call; for
 * each client of another API, as a document and as a stream.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Frame } from '../../src/core/dialect.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { NoteList } from '../../src/core/notes.ts';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { answerContext, halves, upstreamHalves } from '../property/dialect-halves.ts';
import {
  clientDialects,
  pairs,
  type Pair,
  upstreamDialects,
  type UpstreamDialect,
} from '../support/dialects.ts';
import { converseDocument, eventsOf as converseEvents } from '../upstream/converse.ts';
import { geminiDocument, streamOf as geminiStream } from '../upstream/gemini.ts';
import { eventsOf } from './answer-sample.ts';
import { answerSamples, documentOf } from './answers.ts';
import { converseAnswers, geminiAnswers } from './cloud-answers.ts';
import { type FoundObject, objectsIn, withMember } from './objects.ts';

/** An answer in both forms. Each event has its name first, which is empty where events have none. */
interface Sample {
  readonly name: string;
  readonly document: JsonObject;
  readonly events: readonly NamedEvent[];
}
type NamedEvent = readonly [name: string, data: JsonObject];
type Path = readonly (string | number)[];

const clouds: { readonly [D in 'gemini' | 'converse']: readonly Sample[] } = {
  gemini: Object.entries(geminiAnswers).map(([name, answer]) => {
    const named = { ...answer, more: { responseId: 'response-1', ...answer.more } };
    const { body } = geminiStream(named);
    assert.ok(Array.isArray(body));
    const chunks = body.map((frame) => tryParseObject(String(frame).slice('data: '.length)) ?? {});
    return { name, document: geminiDocument(named), events: chunks.map((each) => ['', each]) };
  }),
  converse: Object.entries(converseAnswers).map(([name, answer]) => ({
    name,
    document: converseDocument(answer),
    events: converseEvents(answer).flatMap((event) =>
      Object.entries(event).map(([type, data]): NamedEvent => [type, isObject(data) ? data : {}]),
    ),
  })),
};

/** An answer of a chat vendor that ran tools and lists its sources. */
const searched: Sample = {
  name: 'sources beside the text',
  document: {
    id: 'x',
    citations: ['https://a.example'],
    search_results: [{ url: 'https://a.example', title: 'A' }],
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Yes [1].',
          annotations: [{ type: 'url_citation', url_citation: { url: 'https://b.example' } }],
        },
        finish_reason: 'stop',
      },
    ],
  },
  events: [
    ['', { id: 'x', choices: [{ index: 0, delta: { role: 'assistant', content: 'Yes [1].' } }] }],
    ['', { id: 'x', citations: ['https://a.example'], choices: [] }],
    ['', { id: 'x', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }],
  ],
};

function samplesOf(upstream: UpstreamDialect): readonly Sample[] {
  if (upstream === 'gemini' || upstream === 'converse') return clouds[upstream];
  const samples = answerSamples[upstream].map((sample) => {
    const document = documentOf(upstream, sample);
    const events = eventsOf(upstream, document, sample.events).map((event): NamedEvent => {
      const { type } = event;
      return [upstream !== 'chat' && typeof type === 'string' ? type : '', event];
    });
    return { name: sample.name, document, events };
  });
  return upstream === 'chat' ? [...samples, searched] : samples;
}

/** What an answer became, or undefined where the call failed. */
interface Outcome {
  readonly written: string;
  readonly noted: readonly string[];
  /** Those among them that no reader knew. */
  readonly unknown: readonly string[];
}

type Reading = (upstream: UpstreamDialect, client: Pair['client']) => Outcome | undefined;

function attempted(read: () => Outcome): Outcome | undefined {
  try {
    return read();
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return undefined;
  }
}

function toldIn({ all }: NoteList): Omit<Outcome, 'written'> {
  const unknown = all.filter(({ why }) => why === 'only its provider knows it');
  return { noted: all.map(({ path }) => path), unknown: unknown.map(({ path }) => path) };
}

function ofDocument(document: JsonObject): Reading {
  return (upstream, client) =>
    attempted(() => {
      const notes = new NoteList();
      const { upstream: half, traits } = upstreamHalves[upstream];
      const generation = half.readResponse(document, traits, notes);
      const context = { ...answerContext(), notes };
      const written = JSON.stringify(halves[client].client.writeResponse(generation, context));
      return { written, ...toldIn(notes) };
    });
}

const nothing = Buffer.alloc(0);

function frameOf([name, data]: NamedEvent): Frame {
  const event = name === '' ? undefined : name;
  return { bytes: nothing, event, data: JSON.stringify(data) };
}

function ofStream(events: readonly NamedEvent[], isChat: boolean): Reading {
  const frames = events.map(frameOf);
  if (isChat) frames.push({ bytes: nothing, event: undefined, data: '[DONE]' });
  return (upstream, client) =>
    attempted(() => {
      const notes = new NoteList();
      const { upstream: half, traits } = upstreamHalves[upstream];
      const reader = half.streamReader(traits, notes);
      const writer = halves[client].client.streamWriter({ ...answerContext(), notes });
      let written = '';
      const all = [...frames.map((frame) => () => reader.read(frame)), () => reader.end()];
      for (const event of all.flatMap((read) => read())) {
        if (event.type === 'error') throw event.error;
        written += writer.write(event);
      }
      written += writer.end();
      return { written, ...toldIn(notes) };
    });
}

/** One change of a sample, and where it is. */
interface Change {
  readonly name: string;
  readonly form: 'document' | 'stream';
  readonly reading: Reading;
}

type Changing = (value: JsonObject) => readonly (readonly [string, JsonObject])[];

function* changesOf(
  sample: Sample,
  upstream: UpstreamDialect,
  change: Changing,
): Generator<Change> {
  const isChat = upstream === 'chat';
  for (const [name, document] of change(sample.document)) {
    yield { name, form: 'document', reading: ofDocument(document) };
  }
  for (const [at, [type, data]] of sample.events.entries()) {
    for (const [name, changed] of change(data)) {
      const events = sample.events.with(at, [type, changed]);
      const where = type === '' ? name : `${type}.${name}`;
      yield { name: where, form: 'stream', reading: ofStream(events, isChat) };
    }
  }
}

const stranger = ['made_up_inside', { deep: 'nothing knows this' }] as const;

/**
 * Objects that are carried, noted or left out as a whole, by the table of decisions: counts, reports on the call, what
 * repeats the request, runs of the provider's own tools, and arguments of calls.
 */
const wholes: { readonly [D in UpstreamDialect]: RegExp } = {
  chat: /(^|\.)(usage|logprobs|audio|moderation|images|executed_tools|search_results|metadata)\b/,
  messages:
    /(^|\.)(usage|stop_details|container|context_management|diagnostics|input_transformations|caller)\b/,
  responses:
    /(^|\.)(usage|tools|text|reasoning|metadata|logprobs|incomplete_details|error|prompt|tool_choice|moderation|conversation|action|operation|caller|environment|tool_usage|prompt_cache_options|prompt_cache_diagnostics|access_programs|billing|image|context_management|content_filters)\b/,
  gemini:
    /(^|\.)(usageMetadata|citationMetadata|searchEntryPoint|safetyRatings|args|web|retrievedContext|maps|urlContextMetadata)\b/,
  converse:
    /(^|\.)(usage|metrics|trace|serviceTier|performanceConfig|additionalModelResponseFields|input)\b/,
};

/** Blocks, items and parts that only their API has, and events of their progress. */
const ownTypes: { readonly [D in UpstreamDialect]: RegExp } = {
  chat: /^$/,
  messages: /^(?!tool_use).*(_use|_result|_listing|_upload|compaction|compaction_delta|fallback)$/,
  responses:
    /_output$|_call$|^mcp_|^(compaction|program|additional_tools)|^response\.(\w+_call|audio|\w+_call_\w+|mcp_list_tools|compaction)\./,
  gemini: /^(executableCode|codeExecutionResult|inlineData)$/,
  converse: /^$/,
};

function isOwn(upstream: UpstreamDialect, value: JsonObject): boolean {
  const { type } = value;
  if (type === 'function_call' || type === 'custom_tool_call') return false;
  if (/^response\.(function|custom)/.test(String(type))) return false;
  const names = typeof type === 'string' ? [type] : Object.keys(value);
  return names.some((name) => ownTypes[upstream].test(name));
}

function withStrangers(upstream: UpstreamDialect): Changing {
  return (value) =>
    shown(upstream, value).map(({ path }) => [
      [...path, stranger[0]].join('.'),
      withMember(value, path, stranger),
    ]);
}

/** The objects in which an unknown member must be noted. */
function shown(upstream: UpstreamDialect, value: JsonObject): readonly FoundObject[] {
  const objects = objectsIn(value);
  const own = objects.filter((each) => isOwn(upstream, each.value)).map(({ path }) => path);
  const isInside = (path: Path): boolean =>
    own.some((outer) => outer.every((step, i) => path[i] === step));
  return objects.filter(({ path }) => !isInside(path) && !wholes[upstream].test(path.join('.')));
}

function isNoted(name: string, { noted }: Outcome): boolean {
  return noted.some((path) => path.endsWith(stranger[0]) || `${name}.`.startsWith(`${path}.`));
}

for (const { client, upstream } of pairs.filter((pair) => pair.client !== pair.upstream)) {
  test(`D3 ${upstream} to ${client}: a member that nothing knows, in each object of each answer`, () => {
    const silent = new Set<string>();
    let seen = 0;
    for (const sample of samplesOf(upstream)) {
      for (const { name, reading } of changesOf(sample, upstream, withStrangers(upstream))) {
        const found = reading(upstream, client);
        if (found === undefined) continue;
        seen += 1;
        if (!isNoted(name, found) && !found.written.includes(stranger[0]))
          silent.add(`${sample.name}: ${name}`);
      }
    }
    assert.deepEqual([...silent], []);
    assert.ok(seen > 100, String(seen));
  });

  test(`D3 ${upstream} to ${client}: an unknown type of each object of each answer`, () => {
    const silent = new Set<string>();
    let seen = 0;
    for (const sample of samplesOf(upstream)) {
      const plain = {
        document: ofDocument(sample.document)(upstream, client),
        stream: ofStream(sample.events, upstream === 'chat')(upstream, client),
      };
      for (const { name, reading, form } of changesOf(sample, upstream, withTypes(upstream))) {
        const [found, before] = [reading(upstream, client), plain[form]];
        if (found === undefined || before === undefined) continue;
        seen += 1;
        const isSame = found.written === before.written;
        const isTold =
          found.noted.length > before.noted.length ||
          found.noted.some((path) => !before.noted.includes(path));
        if (!isSame && !isTold) silent.add(`${sample.name}: ${form} ${name}`);
      }
    }
    assert.deepEqual([...silent], []);
    assert.ok(seen > 0 || upstream === 'gemini' || upstream === 'converse', String(seen));
  });

  test(`D3 ${upstream} to ${client}: an event that nothing knows, at each place of each stream`, () => {
    const silent = new Set<string>();
    for (const sample of samplesOf(upstream)) {
      for (const at of sample.events.keys()) {
        const events = sample.events.toSpliced(at, 0, strangeEvents[upstream]);
        const found = ofStream(events, upstream === 'chat')(upstream, client);
        if (found !== undefined && !found.noted.some((path) => path.includes('made_up')))
          silent.add(`${sample.name}: before ${at}`);
      }
    }
    assert.deepEqual([...silent], []);
  });
}

/** APIs whose events have no type have a chunk with a member that nothing knows. */
const strangeEvents: { readonly [D in UpstreamDialect]: NamedEvent } = {
  chat: ['', { id: 'chatcmpl-1', made_up: 1, choices: [] }],
  messages: ['made_up', { type: 'made_up', deep: 1 }],
  responses: ['response.made_up', { type: 'response.made_up', deep: 1 }],
  gemini: ['', { made_up: 1, candidates: [] }],
  converse: ['made_up', { deep: 1 }],
};

/** Any object with a type has another one, but for those that are carried as a whole. */
function withTypes(upstream: UpstreamDialect): Changing {
  return (value) =>
    shown(upstream, value)
      .filter(({ value: object }) => typeof object['type'] === 'string')
      .map(({ path }) => [
        [...path, 'type'].join('.'),
        withMember(value, path, ['type', 'made_up_type']),
      ]);
}

test('D3 no member of an answer of the corpus is noted as unknown', () => {
  for (const upstream of upstreamDialects) {
    for (const { name, document, events } of samplesOf(upstream)) {
      for (const reading of [ofDocument(document), ofStream(events, upstream === 'chat')]) {
        const noted = clientDialects.flatMap((client) => reading(upstream, client)?.unknown ?? []);
        assert.deepEqual(
          noted.filter((path) => !path.endsWith('searchEntryPoint')),
          [],
          `${upstream}: ${name}`,
        );
      }
    }
  }
});
