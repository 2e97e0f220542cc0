/** Writes or relays a long answer in the worker thread. */
import type { DialectId, Part } from '../../core/conversation.ts';
import type { AnswerContext } from '../../core/dialect.ts';
import { Pieces } from '../../json/pieces.ts';
import type { BodyOfJob, LongBodies } from './body-thread.ts';
import type { MadeAnswer, PlainContext } from './jobs.ts';
import { addNotes, bufferOver } from './transfer.ts';

export interface LongAnswer {
  /** Dialect of the client. */
  readonly client: DialectId;
  readonly context: AnswerContext;
  readonly make: MadeAnswer;
  /** The upstream's document, where the answer is made of it; it cannot be read afterwards. */
  readonly document?: Buffer;
  /** Whether the client still waits. */
  readonly wanted?: () => boolean;
}

/** Characters of the texts and arguments of an answer. */
function textLength(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => {
    if (part.type === 'tool-call') return sum + part.argumentsJson.length;
    return sum + ('text' in part ? part.text.length : 0);
  }, 0);
}

const nothing = Pieces.of(Buffer.alloc(0));

/** @returns the document for the client. @throws GatewayError */
export async function writeLongAnswer(
  bodies: LongBodies,
  { client, context, make, document, wanted }: LongAnswer,
): Promise<Buffer> {
  const { sealing, notes } = context;
  const plain: PlainContext = {
    model: context.model,
    requestId: context.requestId,
    createdSeconds: context.createdSeconds,
    wantsUsageFrame: context.wantsUsageFrame,
    promptTokensEstimate: context.promptTokensEstimate,
    ...(context.state === undefined ? {} : { state: context.state }),
    ...(context.conversation === undefined ? {} : { conversation: context.conversation }),
    ...(sealing === undefined ? {} : { upstream: sealing.upstream }),
  };
  const body: BodyOfJob = {
    id: bodies.nextId(),
    pieces: document === undefined ? nothing : Pieces.of(document),
    textLength: make.from === 'generation' ? textLength(make.generation.parts) : 0,
    give: document !== undefined,
    ...(wanted === undefined ? {} : { wanted }),
  };
  const written = await bodies.run('answer', { client, context: plain, make }, body);
  addNotes(notes, written.notes);
  for (const [id, shown] of written.shown) sealing?.callShown?.(id, shown);
  return bufferOver(written.bytes);
}
