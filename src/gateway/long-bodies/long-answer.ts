/** Writes or relays a long answer in the worker thread. */
import type { DialectId } from '../../core/conversation.ts';
import type { AnswerContext } from '../../core/dialect.ts';
import type { Generation, Usage } from '../../core/generation.ts';
import { Pieces } from '../../json/pieces.ts';
import type { LongBodies } from './body-thread.ts';
import type { PlainContext } from './jobs.ts';
import { addNotes, bufferOver } from './transfer.ts';

export interface LongAnswer {
  /** Dialect of the client. */
  readonly client: DialectId;
  readonly context: AnswerContext;
  /** The upstream's own bytes, where they are relayed; they cannot be read afterwards. */
  readonly document?: Buffer;
  /** Usage of a relayed document that has none to believe. */
  readonly gap?: Usage | undefined;
  /** The answer, where it is written. */
  readonly generation?: Generation;
}

const nothing = Pieces.of(Buffer.alloc(0));

/** @returns the document for the client. @throws GatewayError */
export async function writeLongAnswer(
  bodies: LongBodies,
  { client, context, document, gap, generation }: LongAnswer,
): Promise<Buffer> {
  const { sealing, notes } = context;
  const plain: PlainContext = {
    model: context.model,
    requestId: context.requestId,
    createdSeconds: context.createdSeconds,
    wantsUsageFrame: context.wantsUsageFrame,
    promptTokensEstimate: context.promptTokensEstimate,
    ...(context.conversation === undefined ? {} : { conversation: context.conversation }),
    ...(sealing === undefined ? {} : { upstream: sealing.upstream }),
  };
  const pieces = document === undefined ? nothing : Pieces.of(document);
  const written = await bodies.run(
    'answer',
    { client, context: plain, gap, ...(generation === undefined ? {} : { generation }) },
    { id: bodies.nextId(), pieces, give: document !== undefined },
  );
  addNotes(notes, written.notes);
  for (const [id, shown] of written.shown) sealing?.callShown?.(id, shown);
  return bufferOver(written.bytes);
}
