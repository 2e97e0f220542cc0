/** Signs requests to AWS with the keys of a source (decisions 0053 and 0055). */
import type { FinalRequest, RequestCredential } from '../../core/credential.ts';
import type { GatewayError } from '../../core/errors.ts';
import type { Clock } from '../../core/runtime.ts';
import type { KeySource } from './aws-keys.ts';
import { type AwsKeys, type AwsScope, AwsSignature } from './aws-signature.ts';
import { TokenCache } from './token-cache.ts';

/** Errors for keys that expired or were replaced, by type, or by sentence where the body has no type. */
const endedKeys =
  /ExpiredToken|UnrecognizedClient|security token included in the request is (?:expired|invalid)/;
/** `Signature expired: 20261123T080000Z is now earlier than … (20261123T081000Z - 5 min.)`: the clocks differ. */
const wrongClock = /Signature (?:expired|not yet current)/;
/** The time of the service in that sentence. */
const serviceTime = /\((\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z [-+]/;

export class AwsSigner implements RequestCredential {
  readonly source: string;
  readonly #clock: Clock;
  readonly #signature: AwsSignature;
  readonly #fixed: AwsKeys | undefined;
  readonly #fetched: TokenCache<AwsKeys> | undefined;
  /** How far the clock of the service is ahead; ms. */
  #skewMs = 0;

  constructor(source: KeySource, scope: AwsScope, clock: Clock) {
    this.source = source.description;
    this.#clock = clock;
    this.#signature = new AwsSignature(scope);
    if ('keys' in source) this.#fixed = source.keys;
    else this.#fetched = new TokenCache(source, clock);
  }

  headersFor(request: FinalRequest): readonly string[] | Promise<readonly string[]> {
    const keys = this.#fixed ?? this.#fetched?.get();
    if (keys === undefined) return [];
    const sign = (by: AwsKeys): readonly string[] =>
      this.#signature.headersFor(request, by, this.#clock.wall() + this.#skewMs);
    return keys instanceof Promise ? keys.then(sign) : sign(keys);
  }

  async prepare(): Promise<void> {
    await this.#fetched?.prepare();
  }

  renew(sent: readonly string[], { upstream }: GatewayError): boolean {
    if (upstream === undefined || (upstream.status !== 403 && upstream.status !== 400))
      return false;
    if (this.#learnsTime(upstream.body)) return true;
    if (this.#fetched === undefined || !endedKeys.test(upstream.body)) return false;
    const by = sent[1] ?? '';
    this.#fetched.drop(({ accessKeyId }) => by.includes(`Credential=${accessKeyId}/`));
    return true;
  }

  get secrets(): readonly string[] {
    const known = this.#fixed === undefined ? (this.#fetched?.known ?? []) : [this.#fixed];
    return known.flatMap(({ accessKeyId, secretAccessKey, sessionToken }) => [
      'access-key-id',
      accessKeyId,
      'secret-access-key',
      secretAccessKey.reveal(),
      ...(sessionToken === undefined ? [] : ['x-amz-security-token', sessionToken.reveal()]),
    ]);
  }

  /** The clock of this machine is wrong: requests are signed by that of the service from now on. */
  #learnsTime(body: string): boolean {
    const found = wrongClock.test(body) ? serviceTime.exec(body) : null;
    if (found === null) return false;
    const [year = 0, month = 0, ...rest] = found.slice(1).map(Number);
    const [day = 0, hour = 0, minute = 0, second = 0] = rest;
    this.#skewMs = Date.UTC(year, month - 1, day, hour, minute, second) - this.#clock.wall();
    return true;
  }
}
