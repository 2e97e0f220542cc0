/** Is this answer whole and right? A measurement with a wrong answer in it is not a result. */
import { isObject, type JsonObject } from '../src/json/value.ts';
import { tryParseObject } from '../src/json/parse.ts';
import { chunkMark, marksPerChunk, promptTokens, unaryTokens } from './bodies.ts';
import type { Dialect } from './protocol.ts';

/** What is wrong with a whole answer; undefined when nothing is. */
export function faultOfUnary(dialect: Dialect, text: string): string | undefined {
  const body = tryParseObject(text);
  if (body === undefined) return 'the answer is not a JSON object';
  return faultOfUsage(dialect, body.usage, unaryTokens);
}

/** What is wrong with the payload of a stream of `chunks` content chunks; undefined when nothing is. */
export function faultOfStream(dialect: Dialect, text: string, chunks: number): string | undefined {
  const marks = (text.split(chunkMark).length - 1) / marksPerChunk(dialect);
  if (marks !== chunks) return `${marks} content chunks instead of ${chunks}`;
  const frames = text.split('\n\n').filter((frame) => frame.trim() !== '');
  const data = frames.flatMap(dataOf);
  switch (dialect) {
    case 'openai-chat':
      return faultOfChat(data, chunks);
    case 'anthropic-messages':
      return faultOfMessages(data, chunks);
    case 'openai-responses':
      return faultOfResponses(data, chunks);
    default:
      return dialect satisfies never;
  }
}

function dataOf(frame: string): string[] {
  const line = frame.split('\n').find((line) => line.startsWith('data:'));
  return line === undefined ? [] : [line.slice(5).trim()];
}

function faultOfChat(data: readonly string[], chunks: number): string | undefined {
  if (data.at(-1) !== '[DONE]') return 'the stream does not end with [DONE]';
  let finishes = 0;
  let usage: unknown;
  // The content chunks are counted by their mark: only the last frames need a parser.
  for (const text of data.slice(-6, -1)) {
    const frame = tryParseObject(text);
    if (frame === undefined) return 'a frame is not a JSON object';
    if (text.includes('"finish_reason":"stop"')) finishes += 1;
    usage = frame.usage ?? usage;
  }
  if (finishes !== 1) return `${finishes} finish frames`;
  return faultOfUsage('openai-chat', usage, chunks);
}

function faultOfMessages(data: readonly string[], chunks: number): string | undefined {
  const last = data.slice(-4).map(tryParseObject);
  if (last.at(-1)?.type !== 'message_stop') return 'the stream does not end with message_stop';
  const delta = last.find((event) => event?.type === 'message_delta');
  return faultOfUsage('anthropic-messages', delta?.usage, chunks);
}

function faultOfResponses(data: readonly string[], chunks: number): string | undefined {
  const last = tryParseObject(data.at(-1) ?? '');
  if (last?.type !== 'response.completed') {
    return 'the stream does not end with response.completed';
  }
  const usage = isObject(last.response) ? last.response.usage : undefined;
  return faultOfUsage('openai-responses', usage, chunks);
}

function faultOfUsage(dialect: Dialect, usage: unknown, output: number): string | undefined {
  if (!isObject(usage)) return 'no usage';
  const [input, made] = counts(dialect, usage);
  return input === promptTokens && made === output
    ? undefined
    : `usage is ${String(input)} + ${String(made)}, not ${promptTokens} + ${output}`;
}

function counts(dialect: Dialect, usage: JsonObject): readonly unknown[] {
  return dialect === 'openai-chat'
    ? [usage.prompt_tokens, usage.completion_tokens]
    : [usage.input_tokens, usage.output_tokens];
}
