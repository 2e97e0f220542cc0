/** Streams of both dialects through gateway processes, and whether each of them ended as it should. */
import type { Instance } from '../cluster/instance.ts';
import { legalFrames, text } from '../faults/stream-pieces.ts';
import { send, type Reply } from '../support/http.ts';
import { endingOf, readStream, type Dialect } from '../support/reading.ts';
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

export interface StreamCall {
  readonly instance: Pick<Instance, 'url'>;
  readonly key: string;
  readonly dialect: Dialect;
  readonly model: string;
  readonly onData?: () => void;
}

export function stream({ instance, key, dialect, model, onData }: StreamCall): Promise<Reply> {
  const body = requestBody(dialect, { model, stream: true });
  return send(instance.url + endpointOf[dialect], body, {
    headers: { authorization: `Bearer ${key}` },
    ...(onData === undefined ? {} : { onData }),
  });
}

/** What is wrong with an answer of `scriptSlow`; undefined when nothing is. */
export function brokenness(dialect: Dialect, reply: Reply): string | undefined {
  if (reply.status !== 200) return `status ${reply.status}: ${reply.text.slice(0, 200)}`;
  if (!reply.complete) return 'cut';
  const ending = endingOf(dialect, reply.text);
  if (ending !== 'proper') return `ends ${ending}: ${reply.text.slice(-200)}`;
  return readStream(dialect, reply.text).text === text ? undefined : 'its text is another';
}
