/** Streams of all dialects through gateway processes, and whether each of them ended as it should. */
import type { Instance } from '../cluster/instance.ts';
import type { Socket } from 'node:net';
import { setInterval as ticks } from 'node:timers/promises';
import { frame, legalFrames, text } from '../faults/stream-pieces.ts';
import { send, type Reply } from '../support/http.ts';
import { type ClientDialect } from '../support/dialects.ts';
import { endingOf, readStream } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import type { ScriptedUpstream } from '../upstream/scripted.ts';

/** Makes a model whose answers wait between their first content and their end. */
export function scriptSlow(
  upstream: ScriptedUpstream,
  model: string,
  wait: () => Promise<unknown>,
): void {
  const frames = legalFrames('chat');
  upstream.script(model, () => ({
    body: [frames.slice(0, 2).join(''), wait(), frames.slice(2).join('')],
    framing: 'chunked',
    // A connection that is kept needs no new descriptor, and every call in time keeps it longer (F92).
    headers: { connection: 'close' },
  }));
}

/** Events of G1. */
const tickMs = 1000 / 20;

function said(content: string): string {
  return frame('chat', { choices: [{ index: 0, delta: { content } }] });
}

/** Numbered events, 20 a second, between two brackets; the last one says how many there were. */
async function* numbers(isOver: () => boolean): AsyncGenerator<string> {
  let count = 0;
  yield said('[');
  for await (const _ of ticks(tickMs)) {
    if (isOver()) break;
    count += 1;
    yield said(`${count} `);
  }
  yield said(`=${count}]`);
}

/** Makes a model whose answers say something 20 times a second (G1) until it is over. */
export function scriptPaced(
  upstream: ScriptedUpstream,
  model: string,
  isOver: () => boolean,
): void {
  const frames = legalFrames('chat');
  upstream.script(model, () => ({
    body: [frames.slice(0, 2).join(''), numbers(isOver), frames.slice(2).join('')],
    framing: 'chunked',
    headers: { connection: 'close' },
  }));
}

/** What is wrong with an answer of `scriptPaced`, and how many events came. */
export function pacedOutcome(
  dialect: ClientDialect,
  reply: Reply,
): { readonly broken: string | undefined; readonly events: number } {
  let events = -1;
  const withoutNumbers = (all: string): string =>
    all.replace(/\[([\d ]*)=(\d+)\]/, (whole, numbered: string, last: string) => {
      const inOrder = Array.from({ length: Number(last) }, (_, i) => `${i + 1} `).join('');
      if (numbered !== inOrder) return whole;
      events = Number(last);
      return '';
    });
  const broken = brokenness(dialect, reply, withoutNumbers);
  return { broken: broken ?? (events < 0 ? 'its events are others' : undefined), events };
}

export interface StreamCall {
  readonly instance: Pick<Instance, 'url'>;
  readonly key: string;
  readonly dialect: ClientDialect;
  readonly model: string;
  readonly onData?: () => void;
  /** An open connection to the gateway. */
  readonly socket?: Socket;
}

export function stream({
  instance,
  key,
  dialect,
  model,
  onData,
  socket,
}: StreamCall): Promise<Reply> {
  const body = requestBody(dialect, { model, stream: true });
  return send(instance.url + endpointOf[dialect], body, {
    headers: { authorization: `Bearer ${key}` },
    ...(onData === undefined ? {} : { onData }),
    ...(socket === undefined ? {} : { socket }),
  });
}

/** What is wrong with an answer of `scriptSlow`; undefined when nothing is. */
export function brokenness(
  dialect: ClientDialect,
  reply: Reply,
  read: (all: string) => string = (all) => all,
): string | undefined {
  if (reply.status !== 200) return `status ${reply.status}: ${reply.text.slice(0, 200)}`;
  if (!reply.complete) return 'cut';
  const ending = endingOf(dialect, reply.text);
  if (ending !== 'proper') return `ends ${ending}: ${reply.text.slice(-200)}`;
  return read(readStream(dialect, reply.text).text) === text ? undefined : 'its text is another';
}
