/** Step 7 for whole answers: the client's document, or a stream made of one (F22). */
import type { AnswerContext, ClientDialect } from '../core/dialect.ts';
import { replay, type Generation } from '../core/generation.ts';
import type { DocumentAnswer } from './upstream-answer.ts';

export interface DocumentOptions {
  /** The upstream speaks the client's dialect: its bytes are kept. */
  readonly relayed: boolean;
  readonly dialect: ClientDialect;
  readonly context: AnswerContext;
}

/** The bytes of a JSON answer in the client's dialect. */
export function documentBytes(answer: DocumentAnswer, options: DocumentOptions): Buffer {
  const { dialect, context } = options;
  if (options.relayed) {
    const { usage } = answer.generation;
    return dialect.answerRelay(context).document(answer.bytes, answer.body, usage);
  }
  return Buffer.from(JSON.stringify(dialect.writeResponse(answer.generation, context)));
}

/** A whole stream, ending included, of a generation that came as a document. */
export function replayedStream(
  generation: Generation,
  dialect: ClientDialect,
  context: AnswerContext,
): string {
  const writer = dialect.streamWriter(context);
  let text = '';
  for (const event of replay(generation)) text += writer.write(event);
  return text + writer.end();
}
