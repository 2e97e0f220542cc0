/** What the providers of a history answer: whole, or broken in one of the ways of reliability.md §2C. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Dialect } from '../support/reading.ts';
import {
  chatChunk,
  chatDocument,
  chatDone,
  chatError,
  chatFrame,
  chatUsageChunk,
} from '../upstream/chat.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messagesDocument,
  messagesError,
  messagesFrame,
  messageStart,
  messageStop,
} from '../upstream/messages.ts';
import type { Dice } from './dice.ts';

/** Tokens that every prompt of a history has by the providers' count. */
export const promptTokens = 5;

/** How a request ends; each name is a fault of its own, `ok` is none. */
export const faults = {
  status: 14,
  'reset-before-head': 3,
  'end-before-head': 3,
  'silent-before-head': 2,
  'silent-behind-head': 2,
  'cut-in-body': 5,
  'silent-in-body': 3,
  'error-in-stream': 4,
  'half-frame': 2,
  'broken-frame': 2,
  'bad-text': 1,
  'no-usage': 4,
  'no-terminator': 3,
  'no-finish': 3,
  'more-behind-end': 2,
  empty: 2,
  html: 2,
  'other-form': 4,
  'bad-chunk': 2,
  'short-body': 2,
  'end-of-connection': 2,
  redirect: 1,
  drip: 3,
} as const;
export type Fault = keyof typeof faults | 'ok';

/** What a provider would say if nothing broke. */
export interface Said {
  readonly text: string;
  /** As it reports it; undefined = not at all. */
  readonly output: number | undefined;
}

/** One thing that a provider does with its connection. */
export type Act =
  | { readonly send: Buffer }
  | { readonly wait: number }
  | { readonly last: 'reset' | 'fin' | 'silence' | 'done' };

export interface Asked {
  readonly dialect: Dialect;
  readonly stream: boolean;
  /** Tokens at most. */
  readonly cap: number;
}

export interface Played {
  readonly fault: Fault;
  readonly said: Said;
  readonly acts: readonly Act[];
}

/** Words of four bytes each, as many as tokens; the first one distinguishes replies. */
export function words(serial: number, count: number): string {
  let text = ` ${letter(serial / 676)}${letter(serial / 26)}${letter(serial)}`;
  for (let i = 1; i < count; i++) text += ` ${letter(i)}${letter(serial + i)}x`;
  return text;
}

function letter(value: number): string {
  return String.fromCharCode(97 + (Math.floor(value) % 26));
}

export function play(fault: Fault, asked: Asked, serial: number, dice: Dice): Played {
  const count = dice.int(1, Math.max(1, Math.min(asked.cap, 12)));
  const said: Said = {
    text: words(serial, count),
    output: fault === 'no-usage' ? undefined : count,
  };
  return { fault, said, acts: actsOf(fault, { asked, said, dice }) };
}

interface Stage {
  readonly asked: Asked;
  readonly said: Said;
  readonly dice: Dice;
}

function actsOf(fault: Fault, stage: Stage): readonly Act[] {
  const { dice, asked } = stage;
  switch (fault) {
    case 'status':
      return statusActs(stage);
    case 'reset-before-head':
      return [{ wait: dice.int(0, 300) }, { last: 'reset' }];
    case 'end-before-head':
      return [{ wait: dice.int(0, 300) }, { last: 'fin' }];
    case 'silent-before-head':
      return [{ last: 'silence' }];
    case 'silent-behind-head':
      return [{ send: head(asked.stream ? 'stream' : 'document', chunked) }, { last: 'silence' }];
    case 'redirect':
      return whole(head('document', 'location: http://elsewhere.test/\r\n', 302), '');
    case 'html':
      return whole(head('text/html', '', 200), '<html>sorry</html>');
    case 'empty':
      return whole(head(asked.stream ? 'stream' : 'document', '', 200), '');
    case 'other-form':
      return bodyActs(fault, { ...stage, asked: { ...asked, stream: !asked.stream } });
    default:
      return bodyActs(fault, stage);
  }
}

const chunked = 'transfer-encoding: chunked\r\n';

function head(kind: string, more: string, status = 200): Buffer {
  const types: { readonly [kind: string]: string } = {
    stream: 'text/event-stream; charset=utf-8',
    document: 'application/json',
  };
  return Buffer.from(
    `HTTP/1.1 ${status} Simulated\r\ncontent-type: ${types[kind] ?? kind}\r\n${more}`,
  );
}

/** A head and all of its body. */
function whole(begun: Buffer, body: string): readonly Act[] {
  const rest = `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  return [{ send: Buffer.concat([begun, Buffer.from(rest)]) }, { last: 'done' }];
}

function statusActs({ asked, dice }: Stage): readonly Act[] {
  const status = dice.pick([400, 401, 403, 404, 408, 409, 413, 429, 429, 429, 500, 502, 503, 529]);
  const after = dice.pick([
    '',
    '',
    'retry-after: 1\r\n',
    'retry-after: 7\r\n',
    'retry-after: x\r\n',
  ]);
  const text = `simulated ${status}`;
  const body = asked.dialect === 'chat' ? chatError(text, 't', null) : messagesError(text, 't');
  const more = status === 429 || status === 503 ? after : '';
  return [
    { wait: dice.int(0, 400) },
    ...whole(head('document', more, status), status === 502 ? '<html>502</html>' : body),
  ];
}

function bodyActs(fault: Fault, { asked, said, dice }: Stage): readonly Act[] {
  const pieces = asked.stream
    ? streamPieces(fault, asked.dialect, said, dice)
    : [documentText(fault, asked.dialect, said)];
  const kind = asked.stream ? 'stream' : 'document';
  const body = Buffer.from(pieces.join(''), fault === 'bad-text' ? 'latin1' : 'utf8');
  if (fault === 'end-of-connection') {
    const begun = Buffer.concat([head(kind, 'connection: close\r\n\r\n'), body]);
    return [...spread([begun], dice, fault), { last: 'fin' }];
  }
  if (fault === 'short-body') {
    const lie = head(kind, `content-length: ${body.length + 10}\r\n\r\n`);
    return [...spread([Buffer.concat([lie, body])], dice, fault), { last: 'fin' }];
  }
  const sent = [head(kind, `${chunked}\r\n`), ...pieces.map((piece) => chunk(piece, fault))];
  if (fault === 'bad-chunk') sent.splice(dice.int(1, sent.length), 0, Buffer.from('zz\r\n'));
  if (fault === 'cut-in-body' || fault === 'silent-in-body') {
    const all = Buffer.concat(sent);
    const begun = all.subarray(0, dice.int(60, Math.max(60, all.length - 1)));
    const last = fault === 'silent-in-body' ? 'silence' : dice.pick(['reset', 'fin'] as const);
    return [...spread([begun], dice, fault), { last }];
  }
  return [...spread([...sent, Buffer.from('0\r\n\r\n')], dice, fault), { last: 'done' }];
}

function chunk(text: string, fault: Fault): Buffer {
  const bytes = Buffer.from(text, fault === 'bad-text' ? 'latin1' : 'utf8');
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from('\r\n'),
  ]);
}

/** Cut anywhere, with pauses: what a read gives has nothing to do with what a write took. */
function spread(parts: readonly Buffer[], dice: Dice, fault: Fault): readonly Act[] {
  const all = Buffer.concat([...parts]);
  const acts: Act[] = [{ wait: dice.int(0, 500) }];
  const longest = dice.pick([17, 80, 400, 5000]);
  for (let at = 0; at < all.length;) {
    const length = dice.int(1, longest);
    acts.push({ send: all.subarray(at, at + length) });
    at += length;
    if (dice.chance(0.3)) acts.push({ wait: dice.int(0, fault === 'drip' ? 900 : 60) });
  }
  return acts;
}

function documentText(fault: Fault, dialect: Dialect, said: Said): string {
  const usage = usageOf(dialect, said);
  const text = said.text + (fault === 'bad-text' ? '\xff' : '');
  const body =
    dialect === 'chat'
      ? chatDocument({ text, usage: usage ?? null })
      : messagesDocument({ text, usage: usage ?? {} });
  if (fault === 'error-in-stream') {
    return dialect === 'chat'
      ? chatError('simulated', 'server_error', null)
      : messagesError('simulated', 'overloaded_error');
  }
  const json = JSON.stringify(body);
  return fault === 'half-frame' || fault === 'broken-frame' ? json.slice(0, -5) : json;
}

function usageOf(dialect: Dialect, { output }: Said): JsonObject | undefined {
  if (output === undefined) return undefined;
  return dialect === 'chat'
    ? {
        prompt_tokens: promptTokens,
        completion_tokens: output,
        total_tokens: promptTokens + output,
      }
    : { input_tokens: promptTokens, output_tokens: output };
}

function streamPieces(fault: Fault, dialect: Dialect, said: Said, dice: Dice): readonly string[] {
  const frames = [...(dialect === 'chat' ? chatPieces(fault, said) : messagesPieces(fault, said))];
  // The role or message_start is first: what breaks, breaks behind it, before the finish.
  const place = dice.int(1, Math.max(1, frames.length - 3));
  const broken: { readonly [fault in Fault]?: string } = {
    'error-in-stream':
      dialect === 'chat'
        ? chatFrame(chatError('simulated', 'server_error', null))
        : messagesFrame({
            type: 'error',
            error: { type: 'overloaded_error', message: 'simulated' },
          }),
    'broken-frame': 'data: {"type":\n\n',
    'bad-text': 'data: {"x":"\xff"}\n\n',
  };
  const inserted = broken[fault];
  if (inserted !== undefined) frames.splice(place, 0, inserted);
  if (fault === 'half-frame') return [...frames.slice(0, place), 'data: {"id":"x","ch'];
  return frames;
}

function deltasOf(text: string): readonly string[] {
  return text.match(/.{1,8}/gs) ?? [];
}

function chatPieces(fault: Fault, said: Said): readonly string[] {
  const usage = usageOf('chat', said);
  return [
    chatFrame(chatChunk({ role: 'assistant', content: '' })),
    ...deltasOf(said.text).map((content) => chatFrame(chatChunk({ content }))),
    ...(fault === 'no-finish' ? [] : [chatFrame(chatChunk({}, 'stop'))]),
    ...(usage === undefined ? [] : [chatFrame(chatUsageChunk(usage))]),
    ...(fault === 'no-terminator' ? [] : [chatDone]),
    ...(fault === 'more-behind-end' ? [chatFrame(chatChunk({ content: ' late' })), chatDone] : []),
  ];
}

function messagesPieces(fault: Fault, said: Said): readonly string[] {
  const usage = usageOf('messages', said);
  const late = blockDelta(0, { type: 'text_delta', text: ' late' });
  const events: readonly JsonObject[] = [
    messageStart(usage ?? {}),
    blockStart(0, { type: 'text', text: '' }),
    ...deltasOf(said.text).map((text) => blockDelta(0, { type: 'text_delta', text })),
    blockStop(0),
    ...(fault === 'no-finish' ? [] : [messageDelta('end_turn', usage ?? {})]),
    ...(fault === 'no-terminator' ? [] : [messageStop]),
    ...(fault === 'more-behind-end' ? [late, messageStop] : []),
  ];
  return events.map((event) => messagesFrame(event));
}
