/** The client half of the Responses dialect: `POST /v1/responses`. */
import type { AnswerContext, ClientDialect } from '../../core/dialect.ts';
import { type Generation, replay } from '../../core/generation.ts';
import { TwinNames } from '../../core/shape.ts';
import { type JsonObject, isObject, type Json, isArray } from '../../json/value.ts';
import { limitHeaders } from '../openai-chat/client.ts';
import { shapedWriter } from '../shared/request/demanded-call.ts';
import { writeError } from './errors.ts';
import { badValue, shapeWords } from './fields.ts';
import { ownedKeys, readHead } from './head.ts';
import { storedResponses } from './stored.ts';
import { Lifecycle } from './answer/lifecycle.ts';
import { ResponsesAnswerRelay } from './relay/answer.ts';
import { readRequest } from './request/read.ts';
import { requestShape } from './shape.ts';
import { ResponsesStreamWriter } from './answer/stream-write.ts';
import type { RequestParameters } from '../../core/description.ts';
import { BodyDescription, userTextsOf } from '../shared/body/describe.ts';
import { translatedTier } from '../shared/request/responses-fields.ts';

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
  // For errors outside of a call. Writers, relays and openings write failures that fit the events they sent.
  writeStreamError: (error, requestId) =>
    new Lifecycle({
      model: '',
      createdSeconds: 0,
      newId: (prefix) => `${prefix}${requestId}`,
    }).fail(error, requestId),
  keepAlive: () => ': ping\n\n',
  limitHeaders,
};

/** The same object as in the last event of a stream. */
function writeResponse(generation: Generation, context: AnswerContext): JsonObject {
  const writer = new ResponsesStreamWriter(context);
  const shaped = shapedWriter(writer, context, shapeWords);
  for (const event of replay(generation)) shaped.write(event);
  return writer.document();
}

// The members of a Responses body that the gateway reads. `BodyDescription` reads those that chat bodies have too.

/** Members without a price of their own. The reservation covers the prompt and the cap. */
const prompting: ReadonlySet<string> = new Set(['input', 'instructions', 'max_output_tokens']);
/** Caps of other formats. A server that reads one may write more than the cap of this format allows. */
const otherCaps: ReadonlySet<string> = new Set(['max_tokens', 'max_completion_tokens']);

export class ResponsesDescription extends BodyDescription {
  override opening(): string {
    const { instructions, input } = this.body;
    return this.openingOf(instructions, isArray(input) ? input : [input ?? null]);
  }

  override *userTexts(): Generator<string> {
    const { input } = this.body;
    if (typeof input === 'string') yield input;
    if (isArray(input)) for (const item of input) yield* userTextsOf(item);
  }

  override translatedTier(): string | undefined {
    const tier = this.serviceTier();
    return tier === undefined ? undefined : translatedTier(tier);
  }

  override capMember(): string {
    return 'max_output_tokens';
  }

  protected override isHarmless(member: string): boolean {
    return prompting.has(member) || (!otherCaps.has(member) && super.isHarmless(member));
  }

  override parameters(): RequestParameters {
    const { max_output_tokens: cap, text } = this.options;
    const format = isObject(text) ? text['format'] : undefined;
    return {
      ...super.parameters(),
      maxTokens: Number.isSafeInteger(cap) ? Number(cap) : undefined,
      json: isObject(format) && isJson(format['type']),
    };
  }
}

function isJson(type: Json | undefined): boolean {
  return type === 'json_object' || type === 'json_schema';
}
