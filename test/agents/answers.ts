/** Answers as real providers stream them: many small deltas, calls in fragments, usage where it belongs. */
import { setTimeout } from 'node:timers/promises';
import type { JsonObject } from '../../src/json/value.ts';
import { chatChunk, chatDone, chatFrame, chatUsageChunk } from '../upstream/chat.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messageStart,
  messagesFrame,
  messageStop,
} from '../upstream/messages.ts';
import { answerIn } from '../upstream/reply.ts';
import { randomSplit, type Answer } from '../upstream/scripted.ts';
import { responsesFrames, responsesReply } from './responses-answers.ts';
import { reported, type AgentCall, type Turn, type Wire } from './turn.ts';

/** The answer in the upstream's dialect: streamed and cut at odd places, or whole. */
export function answerOf(wire: Wire, turn: Turn, stream: boolean): Answer {
  if (!stream) return replyOf(wire, turn);
  const frames = framesOf(wire, turn);
  return { body: frames.join(''), framing: 'chunked', split: randomSplit(frames.length, 300) };
}

/** The first half of the stream's frames, and then a reset of the connection. */
export function brokenIn(wire: Wire, turn: Turn): Answer {
  const frames = framesOf(wire, turn);
  return { body: frames.slice(0, Math.ceil(frames.length / 2)), ending: 'reset' };
}

/** The first half of the document, and then a reset of the connection. */
export function brokenDocumentIn(wire: Wire, turn: Turn): Answer {
  const { body } = replyOf(wire, turn);
  const text = String(body);
  const headers = { 'content-type': 'application/json' };
  return { headers, body: [text.slice(0, text.length / 2)], ending: 'reset' };
}

/** The whole stream, with a silence before each frame. */
export function slowIn(wire: Wire, turn: Turn, silenceMs: number): Answer {
  return { body: [slowly(framesOf(wire, turn), silenceMs)], framing: 'chunked' };
}

/** The whole stream, with one silence in its middle. */
export function pausedIn(wire: Wire, turn: Turn, silenceMs: number): Answer {
  const frames = framesOf(wire, turn);
  const middle = Math.ceil(frames.length / 2);
  const rest = slowly([frames.slice(middle).join('')], silenceMs);
  return { body: [frames.slice(0, middle).join(''), rest], framing: 'chunked' };
}

async function* slowly(frames: readonly string[], silenceMs: number): AsyncGenerator<string> {
  for (const frame of frames) {
    await setTimeout(silenceMs);
    yield frame;
  }
}

function framesOf(wire: Wire, turn: Turn): readonly string[] {
  if (wire === 'responses') return responsesFrames(turn);
  return wire === 'chat' ? chatStream(turn) : messagesStream(turn);
}

function replyOf(wire: Wire, turn: Turn): Answer {
  if (wire === 'responses') return responsesReply(turn);
  const { text, calls } = turn;
  const reply = {
    ...(text === undefined ? {} : { text }),
    ...(calls === undefined
      ? {}
      : { calls: calls.map((call) => ({ ...call, arguments: JSON.stringify(call.input) })) }),
    usage: { ...reported, reasoning: 0 },
  };
  return answerIn(wire, reply, false);
}

const pieceLength = 9;

function pieces(text: string | undefined): readonly string[] {
  const characters = [...(text ?? '')];
  const list: string[] = [];
  for (let at = 0; at < characters.length; at += pieceLength) {
    list.push(characters.slice(at, at + pieceLength).join(''));
  }
  return list;
}

function chatStream({ thinking, text, calls = [] }: Turn): readonly string[] {
  const prompt = reported.fresh + reported.cacheRead;
  const chunks = [
    chatChunk({ role: 'assistant', content: '' }),
    ...pieces(thinking).map((part) => chatChunk({ reasoning_content: part })),
    ...pieces(text).map((part) => chatChunk({ content: part })),
    ...calls.flatMap(({ id, name, input }, index) => [
      chatChunk({
        tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
      }),
      ...pieces(JSON.stringify(input)).map((part) =>
        chatChunk({ tool_calls: [{ index, function: { arguments: part } }] }),
      ),
    ]),
    chatChunk({}, calls.length > 0 ? 'tool_calls' : 'stop'),
    chatUsageChunk({
      prompt_tokens: prompt,
      completion_tokens: reported.output,
      total_tokens: prompt + reported.output,
      prompt_tokens_details: { cached_tokens: reported.cacheRead },
    }),
  ];
  return [...chunks.map((chunk) => chatFrame(chunk)), chatDone];
}

function messagesStream(turn: Turn): readonly string[] {
  const { calls = [] } = turn;
  const usage = {
    input_tokens: reported.fresh,
    cache_read_input_tokens: reported.cacheRead,
    cache_creation_input_tokens: reported.cacheWrite,
    output_tokens: reported.output,
  };
  const blocks: readonly (readonly [JsonObject, readonly JsonObject[]])[] = [
    ...(turn.thinking === undefined ? [] : [thinkingBlock(turn.thinking, turn.signature ?? 'sig')]),
    ...(turn.text === undefined ? [] : [textBlock(turn.text)]),
    ...calls.map(callBlock),
  ];
  const events = [
    messageStart(usage),
    { type: 'ping' },
    ...blocks.flatMap(([start, deltas], index) => [
      blockStart(index, start),
      ...deltas.map((delta) => blockDelta(index, delta)),
      blockStop(index),
    ]),
    messageDelta(calls.length > 0 ? 'tool_use' : 'end_turn', usage),
    messageStop,
  ];
  return events.map((event) => messagesFrame(event));
}

type Block = readonly [start: JsonObject, deltas: readonly JsonObject[]];

function thinkingBlock(thinking: string, signature: string): Block {
  return [
    { type: 'thinking', thinking: '', signature: '' },
    [
      ...pieces(thinking).map((part) => ({ type: 'thinking_delta', thinking: part })),
      { type: 'signature_delta', signature },
    ],
  ];
}

function textBlock(text: string): Block {
  return [
    { type: 'text', text: '' },
    pieces(text).map((part) => ({ type: 'text_delta', text: part })),
  ];
}

function callBlock({ id, name, input }: AgentCall): Block {
  return [
    { type: 'tool_use', id, name, input: {} },
    ['', ...pieces(JSON.stringify(input))].map((part) => ({
      type: 'input_json_delta',
      partial_json: part,
    })),
  ];
}
