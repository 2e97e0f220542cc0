/**
 * What lets requests in at an upstream where it changes from request to request: tokens that end, signatures over the
 * bytes (decision 0053). A key that stays is a header of the endpoint and needs none of this.
 */
import type { Pieces } from '../json/pieces.ts';
import type { GatewayError } from './errors.ts';

/** A request whose bytes are final: nothing but the credential's headers is added to it. */
export interface FinalRequest {
  readonly method: 'GET' | 'POST';
  /** `https://host:port`, as the host is sent. */
  readonly origin: string;
  /** With its query. */
  readonly path: string;
  /** Flat name, value, name, value; without host and length. */
  readonly headers: readonly string[];
  readonly body: Pieces | undefined;
}

/** Shared by all requests of the endpoints that have it. */
export interface RequestCredential {
  /** Where it comes from, in words for people: `managed identity`. Never a value. */
  readonly source: string;
  /**
   * The headers to add, flat. A promise only where nothing valid is at hand: while an old token holds, no call waits
   * for a new one. @throws GatewayError `upstream_auth`, as a rejection.
   */
  headersFor(request: FinalRequest): readonly string[] | Promise<readonly string[]>;
  /**
   * Fetches what the first request will need, so that it does not wait; absent = nothing is fetched.
   * @throws GatewayError `upstream_auth`, as a rejection
   */
  prepare?(): Promise<void>;
  /**
   * The upstream refused a request that had these headers. True where the credential is the reason and a newer one can
   * be had: the request is worth one repeat.
   */
  renew(sent: readonly string[], refusal: GatewayError): boolean;
  /** Flat headers whose values no error may quote: those that requests were sent with last. */
  readonly secrets: readonly string[];
}
