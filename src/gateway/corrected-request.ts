/** What of a request is sent differently after an upstream refused it by name (learned-parameters.ts). */
import type { JsonObject } from '../core/conversation.ts';
import { GatewayError } from '../core/errors.ts';
import { maxBytesAtOnce } from '../core/json-bytes.ts';
import { parseClientBody, tryParseObject, type JsonSource } from '../core/json.ts';
import type { Pieces } from '../core/pieces.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import type { Correction } from './corrections.ts';
import type { Refused } from './learned-parameters.ts';
import { readComplaint } from './named-parameters.ts';

const noKeys: ReadonlySet<string> = new Set();

/** A refusal and the body that got it. */
export interface RefusedRequest extends Refused {
  readonly body: Pieces;
}

/** What was sent, and how. */
export interface SentRequest {
  readonly body: Pieces;
  readonly traits: UpstreamTraits;
  /** The client's own body, where that was relayed. */
  readonly relayed: JsonSource | undefined;
}

/**
 * The request behind a refusal. It is read only where a member of it is refused (most failures are about something
 * else), in steps where it is long, and no more of it than is looked at: its long texts are not needed (G11).
 */
export async function readRefused(
  error: GatewayError,
  { body, traits, relayed }: SentRequest,
): Promise<RefusedRequest | undefined> {
  if (readComplaint(error) === undefined) return undefined;
  const sent = await readSent(body);
  return sent === undefined ? undefined : { error, body, sent, traits, relayed: relayed?.outline };
}

/**
 * A translated body may nest deeper than a client's may: tools and arguments stand further in. Such a one is
 * parsed in one go, or where it is too long for that not at all: its refusal is told as it is.
 */
async function readSent(body: Pieces): Promise<JsonObject | undefined> {
  try {
    return (await parseClientBody(body, noKeys)).outline;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return body.length > maxBytesAtOnce ? undefined : tryParseObject(body.toString());
  }
}

/** A request that is sent once more, and why. */
export interface Again {
  readonly refused: RefusedRequest;
  /** All that was refused so far. */
  readonly members: readonly string[];
  /** What is to be known of the model if it answers now. */
  readonly lasting: Correction['traits'];
}

/** The next request after one more refusal; `before` is what was corrected for the ones before it. */
export function corrected(
  refused: RefusedRequest,
  { members, lasting, traits }: Correction,
  before: Again | undefined,
): Again {
  return {
    refused,
    members: [...(before?.members ?? []), ...members],
    lasting: { ...before?.lasting, ...(lasting ? traits : {}) },
  };
}
