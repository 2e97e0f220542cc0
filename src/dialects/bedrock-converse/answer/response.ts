/** Reads a document: the whole answer in one body. */
import { GatewayError } from '../../../core/errors.ts';
import { collect, type Generation, type GenerationEvent } from '../../../core/generation.ts';
import { isObject, type JsonObject } from '../../../json/value.ts';
import { answerObjects } from '../../shared/answers.ts';
import { looksLikeError, readErrorValue } from '../../shared/vendor-errors.ts';
import { AnswerReader } from './read.ts';

/**
 * @throws GatewayError the upstream's error if the document is an error (F24), `upstream_invalid` if it is no finished
 * answer.
 */
export function readResponse(body: JsonObject): Generation {
  const events = answerEvents(body);
  const failed = events.find((event) => event.type === 'error');
  if (failed !== undefined) throw failed.error;
  const generation = collect(events);
  if (generation === undefined) throw notFinished();
  return generation;
}

/** The events that a stream of the same answer would have. @throws GatewayError like `readResponse` */
export function answerEvents(body: JsonObject): readonly GenerationEvent[] {
  const { output } = body;
  const message = isObject(output) ? output['message'] : undefined;
  if (!isObject(message)) {
    if (looksLikeError(body)) throw readErrorValue(body);
    throw new GatewayError('upstream_invalid', 'The upstream answered without a message.');
  }
  if (typeof body['stopReason'] !== 'string') throw notFinished();
  const reader = new AnswerReader();
  const events: GenerationEvent[] = [];
  reader.start(events);
  reader.stop(body);
  answerObjects(message['content'], 'content').forEach((block, i, { length }) => {
    reader.block(i, block, events, i === length - 1);
  });
  reader.usage(body, events);
  return [...events, ...reader.end()];
}

function notFinished(): GatewayError {
  return new GatewayError('upstream_invalid', 'The upstream answered before it had finished.');
}
