/** What the upstream gets of a request. */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/json/value.ts';
import type { Reply } from '../support/http.ts';
import { listAt, textAt, type Dialect } from '../support/reading.ts';
import { ask, type Rig } from '../support/rig.ts';
import { requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';

export interface Sent {
  readonly body: JsonObject;
  readonly reply: Reply;
}

/** Asks with more or other members than a minimal request has, and expects an answer. */
export async function sendThrough(
  rig: Rig,
  [dialect, upstream]: readonly [Dialect, Dialect],
  more: JsonObject,
): Promise<Sent> {
  const { model, script } = rig.play(upstream, replying(upstream, { text: 'ok' }));
  const reply = await ask(rig, dialect, requestBody(dialect, { model, stream: false, more }));
  assert.equal(reply.status, 200, reply.text);
  return { body: script.requests[0]?.json ?? {}, reply };
}

/** All text of a chat message, whether a string or parts. */
export function chatText(message: JsonObject): string {
  const { content } = message;
  if (typeof content === 'string') return content;
  return listAt(message, 'content')
    .map((part) => textAt(part, 'text'))
    .join('');
}
