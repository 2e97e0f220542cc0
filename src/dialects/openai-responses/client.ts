/** The half of the Responses dialect that faces clients: `POST /v1/responses`. */
import type { AnswerContext, ClientDialect } from '../../core/dialect.ts';
import { type Generation, replay } from '../../core/generation.ts';
import { TwinNames } from '../../core/shape.ts';
import type { JsonObject } from '../../json/value.ts';
import { limitHeaders } from '../openai-chat/client.ts';
import { shapedWriter } from '../shared/demanded-call.ts';
import { ResponsesDescription } from './describe.ts';
import { writeError } from './error-write.ts';
import { badValue, shapeWords } from './fields.ts';
import { ownedKeys, readHead } from './head.ts';
import { storedResponses } from './stored.ts';
import { Lifecycle } from './lifecycle.ts';
import { ResponsesAnswerRelay } from './relay-answer.ts';
import { readRequest } from './request-read.ts';
import { requestShape } from './shape.ts';
import { ResponsesStreamWriter } from './stream-write.ts';

export const openaiResponsesClient: ClientDialect = {
  id: 'openai-responses',
  paths: ['/v1/responses'],
  scope: 'responses',
  stored: storedResponses,
  compactPath: '/v1/responses/compact',
  count: {
    path: '/v1/responses/input_tokens',
    readModel: (body) => readHead(body).model,
    readRequest,
    write: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  },
  ownedKeys,
  names: new TwinNames(requestShape, ownedKeys),
  fault: badValue,
  readHead,
  describe: (source) => new ResponsesDescription(source),
  readRequest,
  writeResponse,
  streamWriter: (context) => {
    const writer = new ResponsesStreamWriter(context);
    return shapedWriter(writer, context, shapeWords);
  },
  openStream: (context) => new Lifecycle(context),
  answerRelay: (context) => new ResponsesAnswerRelay(context),
  writeError,
  // Used where nothing is known of the call: writers, relays and openings tell failures with what was sent.
  writeStreamError: (error, requestId) =>
    new Lifecycle({
      model: '',
      createdSeconds: 0,
      newId: (prefix) => `${prefix}${requestId}`,
    }).fail(error, requestId),
  keepAlive: () => ': ping\n\n',
  limitHeaders,
};

/** The object with which a stream of the same answer ends. */
function writeResponse(generation: Generation, context: AnswerContext): JsonObject {
  const writer = new ResponsesStreamWriter(context);
  const shaped = shapedWriter(writer, context, shapeWords);
  for (const event of replay(generation)) shaped.write(event);
  return writer.document();
}
