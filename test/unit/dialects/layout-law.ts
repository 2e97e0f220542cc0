/** Frames that are told by their layout mean, and are passed on as, what each of them says by itself (C4, F45). */
import assert from 'node:assert/strict';
import type {
  AnswerRelay,
  ClientDialect,
  Frame,
  StreamReader,
  UpstreamDialect,
} from '../../../src/core/dialect.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { chatTraits } from '../../../src/core/traits.ts';
import { answerContext, framesOf } from '../openai-chat/answer-context.ts';

interface Side {
  readonly reader: StreamReader;
  readonly relay: AnswerRelay;
}

interface Outcome {
  readonly events: readonly GenerationEvent[] | 'refused';
  readonly sent: string | undefined;
}

function outcome({ reader, relay }: Side, one: Frame, mayBePlain: boolean): Outcome {
  let events: readonly GenerationEvent[];
  try {
    events = reader.read(one);
  } catch {
    return { events: 'refused', sent: undefined };
  }
  const plain = mayBePlain && reader.plain === true && relay.plainFrame !== undefined;
  const sent = plain ? relay.plainFrame?.(one) : relay.frame(one, events);
  return { events, sent: sent?.toString().replace(/\{ +/, '{') };
}

/** @param datas of the frames of one stream, each with its name where it has one */
export function assertLayoutLaw(
  client: ClientDialect,
  upstream: UpstreamDialect,
  datas: readonly { readonly data: string; readonly name?: string }[],
): void {
  const side = (): Side => ({
    reader: upstream.streamReader(chatTraits),
    relay: client.answerRelay(answerContext()),
  });
  const quick = side();
  const exact = side();
  const frameOf = (data: string, name: string | undefined): Frame => {
    const [only] = framesOf(`${name === undefined ? '' : `event: ${name}\n`}data: ${data}\n\n`);
    return only ?? assert.fail('no frame');
  };
  for (const [i, { data, name }] of datas.entries()) {
    const line = data.replaceAll('\n', ' ');
    const one = outcome(quick, frameOf(line, name), true);
    // White space that differs from frame to frame: none is like the one before.
    const other = outcome(exact, frameOf(line.replace('{', `{${' '.repeat(i + 1)}`), name), false);
    assert.deepEqual(one, other);
    if (one.events === 'refused') return;
  }
}
