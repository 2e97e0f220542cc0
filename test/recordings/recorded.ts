/** The recorded answers of real providers, with their framing put back. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { upstreamDialects, type ClientDialect, type UpstreamDialect } from '../support/dialects.ts';
import {
  listAt,
  messagesUsageOf,
  numberAt,
  objectAt,
  readDocument,
  readStream,
  textAt,
  type Seen,
  type SeenCall,
} from '../support/reading.ts';
import type { Bytes } from '../faults/stream-pieces.ts';
import { converseFrame } from '../upstream/converse.ts';
import { joined } from '../upstream/reply.ts';

const folder = join(import.meta.dirname, '../../../shared/recordings');

/** Why the tests on recordings are left out, or undefined where they can run. */
export const whyOmitted = existsSync(folder)
  ? undefined
  : 'left out: there are no recordings at ../shared/recordings';

export interface RecordedDocument<D extends UpstreamDialect = UpstreamDialect> {
  readonly name: string;
  readonly upstream: D;
  readonly body: JsonObject;
  readonly text: string;
}

export interface RecordedStream<D extends UpstreamDialect = UpstreamDialect> {
  readonly name: string;
  readonly upstream: D;
  readonly events: readonly JsonObject[];
  /** Each event as it stood on the wire, end mark included. */
  readonly frames: readonly Bytes[];
  /** The frames in one piece. */
  readonly whole: Bytes;
  /** Position of the event that carries the finish reason. */
  readonly finishAt: number;
}

/** Where answers of a dialect lie. */
const patterns: { readonly [D in UpstreamDialect]: readonly string[] } = {
  chat: [
    'openai-chat/*',
    'openai-compatible/*',
    'azure/azure-deepseek-*',
    'azure/envoy-azure-chat-basic*',
  ],
  messages: ['anthropic-messages/*'],
  responses: ['openai-responses/*', 'azure/azure-t*'],
  gemini: ['gemini/google-*', 'gemini/agentgateway-[!r]*', 'gemini/agentgateway-reasoning*'],
  converse: ['bedrock-converse/a*'],
};

function files<D extends UpstreamDialect>(
  ending: string,
  of: readonly D[],
): readonly (readonly [upstream: D, name: string, text: string])[] {
  if (whyOmitted !== undefined) return [];
  return of.flatMap((upstream) =>
    patterns[upstream]
      .flatMap((pattern) => globSync(`${pattern}${ending}`, { cwd: folder }).sort())
      .filter((file) => !file.endsWith('.headers.json'))
      .map((file) => {
        const text = readFileSync(join(folder, file), 'utf8');
        return [upstream, basename(file, ending), text] as const;
      }),
  );
}

/** The documents of these upstreams; of all by default. */
export function recordedDocuments(): readonly RecordedDocument[];
export function recordedDocuments<D extends UpstreamDialect>(
  of: readonly D[],
): readonly RecordedDocument<D>[];
export function recordedDocuments(
  of: readonly UpstreamDialect[] = upstreamDialects,
): readonly RecordedDocument[] {
  return files('.json', of).map(([upstream, name, text]) => {
    const body = tryParseObject(text);
    if (body === undefined) throw new Error(`${name} is not a JSON object`);
    return { name, upstream, body, text };
  });
}

/** The streams of these upstreams, each answer of a file by itself. */
export function recordedStreams(): readonly RecordedStream[];
export function recordedStreams<D extends UpstreamDialect>(
  of: readonly D[],
): readonly RecordedStream<D>[];
export function recordedStreams(
  of: readonly UpstreamDialect[] = upstreamDialects,
): readonly RecordedStream[] {
  return files('.chunks.txt', of).flatMap(([upstream, name, text]) => {
    const lines = linesOf(name, text);
    const answers: readonly (readonly Line[])[] =
      upstream === 'responses' ? answersOf(lines) : [lines];
    return answers.map((its, i) => {
      const events = its.map(({ line, event }) => frameOf[upstream](line, event));
      const frames = upstream === 'chat' ? [...events, 'data: [DONE]\n\n'] : events;
      return {
        name: answers.length === 1 ? name : `${name}#${i + 1}`,
        upstream,
        events: its.map(({ event }) => event),
        frames,
        whole: joined(frames),
        finishAt: its.findIndex(({ event }) => hasFinish[upstream](event)),
      };
    });
  });
}

interface Line {
  readonly line: string;
  readonly event: JsonObject;
}

/** Two lines of one recording lack their last brace. */
function linesOf(name: string, text: string): readonly Line[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((read) => {
    const line = tryParseObject(read) === undefined ? `${read}}` : read;
    const event = tryParseObject(line);
    if (event === undefined) throw new Error(`${name}: no JSON object: ${line}`);
    return { line, event };
  });
}

/** Each `response.created` begins an answer. */
function answersOf(lines: readonly Line[]): readonly (readonly Line[])[] {
  const answers: Line[][] = [];
  for (const line of lines) {
    if (line.event['type'] === 'response.created') answers.push([]);
    answers.at(-1)?.push(line);
  }
  return answers;
}

const named = (line: string, event: JsonObject): string =>
  `event: ${textAt(event, 'type')}\ndata: ${line}\n\n`;

const frameOf: {
  readonly [D in UpstreamDialect]: (line: string, event: JsonObject) => Bytes;
} = {
  chat: (line) => `data: ${line}\n\n`,
  messages: named,
  responses: named,
  gemini: (line) => `data: ${line}\r\n\r\n`,
  converse: (_, event) => converseFrame(event),
};

const hasFinish: { readonly [D in UpstreamDialect]: (event: JsonObject) => boolean } = {
  chat: (event) =>
    listAt(event, 'choices').some((choice) => typeof choice['finish_reason'] === 'string'),
  messages: (event) => typeof objectAt(event, 'delta')['stop_reason'] === 'string',
  responses: (event) => /^response\.(completed|incomplete|failed)$/.test(textAt(event, 'type')),
  gemini: (event) =>
    listAt(event, 'candidates').some((each) => textAt(each, 'finishReason') !== ''),
  converse: (event) => event['messageStop'] !== undefined,
};

/** What a recorded answer says to a client of this dialect, in the numbers that all dialects must show. */
export function expectedOfDocument(recorded: RecordedDocument, client?: ClientDialect): Seen {
  const { upstream, body } = recorded;
  const seen = readDocument(upstream, body);
  return told(seen, { client, items: listAt(body, 'output'), usage: objectAt(body, 'usage') });
}

export function expectedOfStream(recorded: RecordedStream, client?: ClientDialect): Seen {
  const { upstream, events, whole } = recorded;
  const usages = events.map((event) => objectAt(event, 'usage'));
  return told(readStream(upstream, whole), {
    client,
    items: events
      .filter((event) => event['type'] === 'response.output_item.done')
      .map((event) => objectAt(event, 'item')),
    usage: usages.findLast((usage) => Object.keys(usage).length > 0) ?? {},
  });
}

/**
 * Calls of an answer as they are compared: where a recording has no id, the gateway made one.
 * @param expected those of the recording
 */
export function withRecordedIds(
  calls: readonly SeenCall[],
  expected: readonly SeenCall[],
): readonly SeenCall[] {
  const ids = new Set(calls.map(({ id }) => id));
  if (ids.size !== calls.length || ids.has('')) return calls;
  return calls.map((call, i) => (expected[i]?.id === '' ? { ...call, id: '' } : call));
}

interface Told {
  readonly client: ClientDialect | undefined;
  /** Of a response. */
  readonly items: readonly JsonObject[];
  readonly usage: JsonObject;
}

function told(seen: Seen, { client, items, usage }: Told): Seen {
  const spoken = items
    .filter((item) => item['type'] === 'message')
    .map((item) =>
      listAt(item, 'content')
        .map((part) => textAt(part, 'text'))
        .join(''),
    );
  // Chat has one text: a blank line tells where a message of a response ends (wire/responses.md §5.3).
  const text = client === 'chat' && spoken.length > 1 ? spoken.join('\n\n') : seen.text;
  // A relayed answer has the totals as they are. All others, and the ledger, have what is billed.
  const billed = client === 'messages' ? seen : withCompactions(seen, usage);
  return withAllOutput({ ...billed, text }, usage);
}

/** The totals of a messages answer leave out what was used to compact the conversation (wire/messages.md). */
function withCompactions(seen: Seen, usage: JsonObject): Seen {
  let sum = seen.usage;
  for (const each of listAt(usage, 'iterations')) {
    if (sum === undefined || each['type'] !== 'compaction') continue;
    const { fresh, output } = messagesUsageOf(each);
    sum = { ...sum, fresh: sum.fresh + fresh, output: sum.output + output };
  }
  return sum === undefined ? seen : { ...seen, usage: sum };
}

/** xAI leaves reasoning out of `completion_tokens`; its total tells (translation.md §7.4). */
function withAllOutput(seen: Seen, usage: JsonObject): Seen {
  if (seen.usage === undefined) return seen;
  const { output, reasoning } = seen.usage;
  const total = numberAt(usage, 'total_tokens');
  const excluded = reasoning > 0 && total === numberAt(usage, 'prompt_tokens') + output + reasoning;
  return excluded ? { ...seen, usage: { ...seen.usage, output: output + reasoning } } : seen;
}
