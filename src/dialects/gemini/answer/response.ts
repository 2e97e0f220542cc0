/** Reads a document: the whole answer in one body. */
import { GatewayError } from '../../../core/errors.ts';
import { collect, type Generation, type GenerationEvent } from '../../../core/generation.ts';
import type { JsonObject } from '../../../json/value.ts';
import { isPresent } from '../../shared/answers.ts';
import { looksLikeError, readErrorValue } from '../../shared/vendor-errors.ts';
import { AnswerReader } from './read.ts';

/**
 * @throws GatewayError the upstream's error if the document is an error (F24), `upstream_invalid` if it is no finished
 * answer.
 */
export function readResponse(body: JsonObject): Generation {
  if (isPresent(body['error'])) throw readErrorValue(body);
  const reader = new AnswerReader({ isDocument: true });
  const events: GenerationEvent[] = [];
  reader.read(body, events);
  if (!reader.finished) throw noAnswer(body);
  events.push(...reader.end());
  const failed = events.find((event) => event.type === 'error');
  if (failed !== undefined) throw failed.error;
  const generation = collect(events);
  if (generation === undefined) throw noAnswer(body);
  return generation;
}

/** The error of a document without a finish reason. */
function noAnswer(body: JsonObject): GatewayError {
  if (isPresent(body['candidates'])) {
    return new GatewayError('upstream_invalid', 'The upstream answered before it had finished.');
  }
  if (looksLikeError(body)) return readErrorValue(body);
  return new GatewayError('upstream_invalid', 'The upstream answered without a candidate.');
}
