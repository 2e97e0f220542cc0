/** The recorded answers of real providers, with their framing put back. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import {
  listAt,
  numberAt,
  objectAt,
  readDocument,
  readStream,
  textAt,
  type Dialect,
  type Seen,
} from '../support/reading.ts';

const folder = join(import.meta.dirname, '../../../shared/recordings');

/** Why the tests on recordings are left out, or undefined where they can run. */
export const whyLeftOut = existsSync(folder)
  ? undefined
  : 'left out: there are no recordings at ../shared/recordings';

export interface RecordedDocument {
  readonly name: string;
  readonly upstream: Dialect;
  readonly body: JsonObject;
  readonly text: string;
}

export interface RecordedStream {
  readonly name: string;
  readonly upstream: Dialect;
  readonly events: readonly JsonObject[];
  /** Each event as it stood on the wire, end mark included. */
  readonly frames: readonly string[];
  /** Position of the event that carries the finish reason. */
  readonly finishAt: number;
}

const folders: { readonly [name: string]: Dialect } = {
  'anthropic-messages': 'messages',
  'openai-chat': 'chat',
  'openai-compatible': 'chat',
};

function files(
  ending: string,
): readonly (readonly [upstream: Dialect, name: string, text: string])[] {
  if (whyLeftOut !== undefined) return [];
  return Object.entries(folders).flatMap(([name, upstream]) =>
    globSync(`*${ending}`, { cwd: join(folder, name) })
      .sort()
      .map((file) => {
        const text = readFileSync(join(folder, name, file), 'utf8');
        return [upstream, basename(file, ending), text] as const;
      }),
  );
}

export function recordedDocuments(): readonly RecordedDocument[] {
  return files('.json').map(([upstream, name, text]) => {
    const body = tryParseObject(text);
    if (body === undefined) throw new Error(`${name} is not a JSON object`);
    return { name, upstream, body, text };
  });
}

export function recordedStreams(): readonly RecordedStream[] {
  return files('.chunks.txt').map(([upstream, name, text]) => {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    const events = lines.map((line) => {
      const event = tryParseObject(line);
      if (event === undefined) throw new Error(`${name}: no JSON object: ${line}`);
      return event;
    });
    const frames = lines.map((line, index) =>
      upstream === 'chat'
        ? `data: ${line}\n\n`
        : `event: ${textAt(events[index] ?? {}, 'type')}\ndata: ${line}\n\n`,
    );
    return {
      name,
      upstream,
      events,
      frames: upstream === 'chat' ? [...frames, 'data: [DONE]\n\n'] : frames,
      finishAt: events.findIndex((event) => hasFinish(upstream, event)),
    };
  });
}

function hasFinish(upstream: Dialect, event: JsonObject): boolean {
  return upstream === 'chat'
    ? listAt(event, 'choices').some((choice) => typeof choice['finish_reason'] === 'string')
    : typeof objectAt(event, 'delta')['stop_reason'] === 'string';
}

/** What a recorded document says, in the numbers that both dialects must show. */
export function expectedOfDocument(recorded: RecordedDocument): Seen {
  return withAllOutput(
    readDocument(recorded.upstream, recorded.body),
    objectAt(recorded.body, 'usage'),
  );
}

export function expectedOfStream(recorded: RecordedStream): Seen {
  const seen = readStream(recorded.upstream, recorded.frames.join(''));
  const usages = recorded.events.map((event) => objectAt(event, 'usage'));
  return withAllOutput(seen, usages.findLast((usage) => Object.keys(usage).length > 0) ?? {});
}

/** xAI leaves reasoning out of `completion_tokens`; its total tells (translation.md §7.4). */
function withAllOutput(seen: Seen, usage: JsonObject): Seen {
  if (seen.usage === undefined) return seen;
  const { output, reasoning } = seen.usage;
  const total = numberAt(usage, 'total_tokens');
  const excluded = reasoning > 0 && total === numberAt(usage, 'prompt_tokens') + output + reasoning;
  return excluded ? { ...seen, usage: { ...seen.usage, output: output + reasoning } } : seen;
}
