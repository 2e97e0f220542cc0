/** What a request refers to is put into it before it is read any further, and its response is kept at its end. */
import type { Principal } from '../access/principal.ts';
import type { JsonSource } from '../core/client-body.ts';
import type { ClientDialect, RequestState } from '../core/dialect.ts';
import { GatewayError } from '../core/errors.ts';
import type { KeptAnswer, KeptResponses } from '../core/kept-response.ts';
import { KeepingSink, type Kept } from '../features/stored-responses/keeping-sink.ts';
import type {
  Referred,
  ResponseOwner,
  StoredResponses,
} from '../features/stored-responses/stored-responses.ts';
import type { ClientSink } from '../gateway/client-answer.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { LongBody } from '../gateway/long-bodies/long-body.ts';
import { bufferOver, receivedPieces } from '../gateway/long-bodies/transfer.ts';
import type { Pieces } from '../json/pieces.ts';

interface StateParts {
  readonly responses: StoredResponses;
  readonly gateway: Pick<Gateway, 'bodies' | 'later'>;
}

/** A request with state, as it came. */
interface StatefulRequest {
  readonly dialect: ClientDialect;
  readonly kept: KeptResponses;
  readonly source: JsonSource;
  readonly state: RequestState;
  readonly owner: ResponseOwner;
}

/** A request with all that it referred to. */
export interface ExpandedRequest {
  readonly pieces: Pieces;
  /** The array of its own items. */
  readonly input: Buffer;
}

export function ownerOf({ keyId }: Principal, secret: string): ResponseOwner {
  return { keyId, secret };
}

export function refersTo({ previousResponseId, itemReferences }: RequestState): boolean {
  return previousResponseId !== undefined || itemReferences.length > 0;
}

/**
 * The request with the items that it refers to.
 * @param mostBytes of a request
 * @throws GatewayError for what is unknown; `too_large`; `store_unavailable`
 */
export async function expandRequest(
  { responses, gateway }: StateParts,
  { dialect, kept, source, state, owner }: StatefulRequest,
  mostBytes: number,
): Promise<ExpandedRequest> {
  const { before, found } = await responses.resolve(owner, state, {
    dialect: kept,
    bytes: mostBytes,
  });
  const expanded = await expandedBy(gateway, { dialect, kept, source }, { before, found });
  if (expanded.pieces.length > mostBytes) {
    throw new GatewayError(
      'too_large',
      `The request with all that it refers to is larger than ${mostBytes} bytes.`,
    );
  }
  return expanded;
}

async function expandedBy(
  { bodies }: Pick<Gateway, 'bodies'>,
  { dialect, kept, source }: Pick<StatefulRequest, 'dialect' | 'kept' | 'source'>,
  { before, found }: Referred,
): Promise<ExpandedRequest> {
  if (source instanceof LongBody) {
    const job = { client: dialect.id, before, found };
    const { input, body } = await bodies.run('expand', job, source);
    return { input: bufferOver(input), pieces: receivedPieces(body, source.pieces) };
  }
  const input = kept.inputOf(source, found);
  return { input, pieces: kept.expand(source, [...before, input]) };
}

interface AnsweredRequest extends StatefulRequest {
  /** The array of its own items; absent where nothing was put into it. */
  readonly input: Buffer | undefined;
  /** Wall-clock ms. */
  readonly startedAt: number;
}

/** A sink that keeps the response at the end of the answer. */
export function keepingSink(
  { responses, gateway }: StateParts,
  request: AnsweredRequest,
  sink: ClientSink,
): KeepingSink {
  const { kept, owner, state, startedAt } = request;
  const keep = async (answer: KeptAnswer): Promise<Kept> => {
    try {
      const input = request.input ?? (await inputOf(gateway, request));
      if (!responses.fits(input, answer.response)) return 'large';
      const { previousResponseId: previous, itemReferences: referred } = state;
      await responses.keep(owner, { ...answer, input, referred, previous, startedAt });
      return 'kept';
    } catch (error) {
      responses.failed(String(error));
      return 'failed';
    }
  };
  const late = (): void => responses.failed('the store did not answer in time');
  return new KeepingSink({ sink, dialect: kept, later: gateway.later, keep, late });
}

async function inputOf(
  { bodies }: Pick<Gateway, 'bodies'>,
  { dialect, kept, source }: AnsweredRequest,
): Promise<Buffer> {
  if (!(source instanceof LongBody)) return kept.inputOf(source, nothing);
  const job = { client: dialect.id, found: nothing };
  return bufferOver((await bodies.run('expand', job, source)).input);
}

const nothing: ReadonlyMap<string, Buffer> = new Map();
