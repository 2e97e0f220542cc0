/** Writes a whole response: the object with which a stream of the same answer ends. */
import type { AnswerContext } from '../../core/dialect.ts';
import { type Generation, replay } from '../../core/generation.ts';
import type { JsonObject } from '../../json/value.ts';
import { shapedWriter } from '../shared/demanded-call.ts';
import { ResponsesStreamWriter } from './stream-write.ts';
import { shapeWords } from './fields.ts';

export function writeResponse(generation: Generation, context: AnswerContext): JsonObject {
  const writer = new ResponsesStreamWriter(context);
  const shaped = shapedWriter(writer, context, shapeWords);
  for (const event of replay(generation)) shaped.write(event);
  return writer.document();
}
