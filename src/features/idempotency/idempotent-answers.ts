/**
 * Answers by `Idempotency-Key` (E17): a request that is repeated with its key gets the answer of the first one
 * and costs nothing, at any gateway on the same store and after a restart. The gateway that answers holds a
 * lease in the store and renews it; if it dies, the lease expires. If the store is unavailable, such a request
 * is refused: a client that sends the header prefers waiting to a second answer.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { GatewayError } from '../../core/errors.ts';
import type { Receipt } from '../../core/call.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import type { Sealer } from '../../core/secret.ts';
import type { ClientSink } from '../../gateway/answer/client-answer.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { tryParseObject } from '../../json/parse.ts';
import { leaseMs, renewEveryMs } from '../../store/counters/counters.ts';
import {
  type AnswerClaim,
  type AnswerStore,
  type Claimed,
  type OwnClaim,
  storedBytes,
} from '../../store/sealed.ts';
import { StoreError } from '../../store/store-error.ts';
import { AnswerTee } from '../answer-tee.ts';

// What the store may know of a request with an `Idempotency-Key` and of its answer: nothing readable. The key
// for both is derived from the client's own API key, which the store never holds (S2). A stolen database or
// backup shows no text of an answer and confirms no guess of a prompt. Only a request with the same API key and
// the same `Idempotency-Key` can decrypt the answer.

export interface StoredAnswer {
  readonly status: number;
  /** Flat: name, value, …; without the ids of its request. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface IdempotentRequest {
  /** Whose request it is: two clients may choose the same key. */
  readonly keyId: string;
  /** The API key as the client presented it. */
  readonly secret: string;
  readonly idempotencyKey: string;
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
}

/** A request as the store knows it, and what opens its answer. */
interface SealedRequest {
  readonly id: string;
  readonly keyId: string;
  /** Two parts: the secret that it was sent with, and the request. */
  readonly fingerprint: string;
  readonly sealKey: Buffer;
}

const keyBytes = 32;
const ivBytes = 12;
const tagBytes = 16;
/** Of what is sealed; another form would have another number. */
const version = 1;
const headBytes = 1 + ivBytes + tagBytes;
const proofLength = 16;

/** @param sealer digests with a key of the store: ids cannot be made outside of this installation. */
export function sealRequest(request: IdempotentRequest, sealer: Sealer): SealedRequest {
  const { keyId, secret, idempotencyKey, method, path, body } = request;
  const id = sealer.digest(`idempotency\n${keyId}\n${idempotencyKey}`);
  // A key of an installation may be short (MODEL_GATEWAY_KEY): the client's other key adds what it has.
  const root = Buffer.from(
    hkdfSync('sha256', `${secret}\n${idempotencyKey}`, id, 'idempotent answer', 2 * keyBytes),
  );
  const markKey = root.subarray(keyBytes);
  const proof = createHmac('sha256', markKey).update('secret').digest('base64url');
  const whole = createHmac('sha256', markKey).update(`${method} ${path}\n`).update(body);
  const fingerprint = `${proof.slice(0, proofLength)}.${whole.digest('base64url')}`;
  return { id, keyId, fingerprint, sealKey: root.subarray(0, keyBytes) };
}

/** @param iv 12 random bytes, other ones each time. */
export function sealAnswer(request: SealedRequest, answer: StoredAnswer, iv: Uint8Array): Buffer {
  const head = Buffer.from(JSON.stringify({ status: answer.status, headers: answer.headers }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  const cipher = createCipheriv('aes-256-gcm', request.sealKey, iv);
  cipher.setAAD(boundTo(request));
  const pieces = [length, head, answer.body].map((part) => cipher.update(part));
  pieces.push(cipher.final());
  return Buffer.concat([Buffer.of(version), iv, cipher.getAuthTag(), ...pieces]);
}

/** Undefined for what was sealed for another request, with another secret, or was changed since. */
export function openAnswer(request: SealedRequest, sealed: Uint8Array): StoredAnswer | undefined {
  if (sealed.length < headBytes || sealed[0] !== version) return undefined;
  const iv = sealed.subarray(1, 1 + ivBytes);
  const cipher = createDecipheriv('aes-256-gcm', request.sealKey, iv, { authTagLength: tagBytes });
  cipher.setAAD(boundTo(request));
  cipher.setAuthTag(sealed.subarray(1 + ivBytes, headBytes));
  try {
    const opened = cipher.update(sealed.subarray(headBytes));
    cipher.final();
    const start = 4 + opened.readUInt32BE();
    const head = tryParseObject(opened.toString('utf8', 4, start));
    const status = head?.['status'];
    const headers = head?.['headers'];
    if (typeof status !== 'number' || !Array.isArray(headers)) return undefined;
    return { status, headers: headers.map(String), body: opened.subarray(start) };
  } catch {
    // The seal does not fit: what was decrypted means nothing.
    return undefined;
  }
}

/** An answer that was moved to another row does not open there. */
function boundTo({ id, fingerprint }: SealedRequest): Buffer {
  return Buffer.from(`${id} ${fingerprint}`);
}

/** What may be stored, by all gateways on the store; of one API key the oldest go first. */
export interface KeepLimits {
  readonly keepMs: number;
  /** Of one answer; longer ones are passed on and not stored. */
  readonly answerBytes: number;
  readonly keyBytes: number;
  readonly keyAnswers: number;
  /** Of all answers together. */
  readonly totalBytes: number;
  /** Answers that are being given lie in the memory of the gateway that gives them. */
  readonly memoryBytes: number;
}

/** What became of requests with the header, for metrics; each counts up from the start. */
type IdempotencyTallies = {
  /** Answered, and stored. */
  kept: number;
  /** Answered, and not stored: too long, or no room in memory. */
  unkept: number;
  replayed: number;
  /** Asked to retry later, since the first request is still being answered. */
  busy: number;
  /** Another request under the same key. */
  conflict: number;
  /** Answered, and the answer cannot be repeated. */
  expired: number;
  /** Refused because the store was not available. */
  refused: number;
  /** The lease was lost to another gateway while this one answered. */
  lost: number;
};

/** `too long` = it was answered, and the answer is too long to be stored. */
type Finished = StoredAnswer | 'too long' | undefined;

/** Either what was answered before, or the right to answer now. */
type Claim =
  | { readonly kept: StoredAnswer }
  | ({ readonly kept: undefined; finish(answer: Finished): Promise<void> } & RecordingRoom);

/** Answers that are still being given lie in memory. */
interface RecordingRoom {
  /**
   * Reserves this many more bytes for a recording; false when they are not available. `finish` releases them.
   */
  hold(bytes: number): boolean;
}

interface IdempotentAnswersDeps {
  readonly store: AnswerStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: (count: number) => Uint8Array;
  /** The current ones: a reload replaces them. */
  readonly limits: () => KeepLimits;
}

/** An answer that is given and not yet stored; it waits while the store is away. */
interface Unkept {
  readonly claim: OwnClaim;
  readonly sealed: Uint8Array | undefined;
  readonly givenAt: number;
  /** Called once, when nothing of it is in memory any more. */
  done(): void;
}

/** How long an answer waits for a store that is away. Its key is then free when its lease ends. */
const keepTriesMs = 600_000;

export class IdempotentAnswers {
  readonly tallies: IdempotencyTallies = {
    kept: 0,
    unkept: 0,
    replayed: 0,
    busy: 0,
    conflict: 0,
    expired: 0,
    refused: 0,
    lost: 0,
  };
  readonly #deps: IdempotentAnswersDeps;
  /** By id: what this gateway answers now. */
  readonly #running = new Map<string, OwnClaim>();
  readonly #abandoned: AbandonedClaims;
  #waiting: Unkept[] = [];
  #renewing: NodeJS.Timeout | undefined;
  #memory = 0;
  #storedSinceSweep = 0;
  #onManyStored: (() => void) | undefined;

  constructor(deps: IdempotentAnswersDeps) {
    this.#deps = deps;
    this.#abandoned = new AbandonedClaims(deps.store, deps.clock);
  }

  /** Bytes of answers that are being given, or wait for the store. */
  get memory(): number {
    return this.#memory;
  }

  /** Calls this gateway answers now, or could not keep yet. */
  get claims(): number {
    return this.#running.size + this.#waiting.length;
  }

  get limits(): KeepLimits {
    return this.#deps.limits();
  }

  /** Calls `sweep` when this gateway alone stored a sixteenth of what all may take. */
  onManyStored(sweep: () => void): void {
    this.#onManyStored = sweep;
  }

  /**
   * @param owner id of the call that would answer.
   * @throws GatewayError `idempotency_busy` while another request with the key is answered,
   * `idempotency_conflict` for another request under the same key, `idempotency_expired` when the answer cannot
   * be repeated, `store_unavailable` when the store cannot be read.
   */
  async claim(request: IdempotentRequest, owner: string): Promise<Claim> {
    const sealed = sealRequest(request, this.#deps.sealer);
    const kept = await this.#ask(sealed, owner);
    if (kept !== undefined) {
      this.tallies.replayed += 1;
      return { kept };
    }
    const claim = { id: sealed.id, owner };
    this.#running.set(claim.id, claim);
    this.#renewSoon();
    let held = 0;
    const giveBack = (): void => {
      this.#memory -= held;
      held = 0;
    };
    return {
      kept: undefined,
      hold: (bytes) => {
        if (this.#memory + bytes > this.limits.memoryBytes) return false;
        held += bytes;
        this.#memory += bytes;
        return true;
      },
      finish: (answer) => {
        if (this.#running.get(claim.id) === claim) this.#running.delete(claim.id);
        if (answer === undefined) {
          giveBack();
          return this.#release(claim);
        }
        const givenAt = this.#deps.clock.now();
        const unkept = { claim, sealed: this.#sealed(sealed, answer), givenAt, done: giveBack };
        return this.#keep(unkept);
      },
    };
  }

  /** Prolongs the leases of what runs, and stores what could not be stored before. Never throws. */
  async renew(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const waiting = this.#waiting;
    this.#waiting = [];
    if (this.#abandoned.size > 0) await this.#abandoned.giveUpAll();
    const claims = [...this.#running.values(), ...waiting.map(({ claim }) => claim)];
    if (claims.length === 0) {
      if (this.#abandoned.size === 0) this.#stopRenewing();
      return;
    }
    try {
      await store.renew(claims, leaseMs);
    } catch (error) {
      log.warn('idempotency_not_renewed', { claims: claims.length, reason: String(error) });
    }
    for (const each of waiting) {
      if (clock.now() - each.givenAt < keepTriesMs) {
        await this.#keep(each);
        continue;
      }
      each.done();
      log.error('idempotency_not_kept', { call: each.claim.owner });
    }
  }

  /** Stores what waits, if it can, and ends; leases that are left run out. Never throws. */
  async close(): Promise<void> {
    await this.renew();
    this.#stopRenewing();
  }

  /** The answer of an earlier sending; undefined = this one may answer. @throws GatewayError */
  async #ask(sealed: SealedRequest, owner: string): Promise<StoredAnswer | undefined> {
    const { id, keyId, fingerprint } = sealed;
    const wanted = { id, keyId, owner, fingerprint, leaseMs };
    const own = this.#ownClaim(id);
    // A database whose clock jumped ahead has ended the leases of calls that run, until they are renewed (G17).
    if (own !== undefined) await this.#deps.store.renew([own], leaseMs).catch(() => undefined);
    let claimed = await this.#claim(wanted);
    if (claimed.state === 'running' && (await this.#abandoned.giveUp(id))) {
      claimed = await this.#claim(wanted);
    }
    if (claimed.state === 'mine') return undefined;
    const same = claimed.fingerprint === fingerprint;
    // Whether both were sent with the same API key text; one of a rotation's two secrets is not the other.
    if (
      !same &&
      sealed.fingerprint.slice(0, proofLength) === claimed.fingerprint.slice(0, proofLength)
    ) {
      throw this.#refusal(
        'conflict',
        new GatewayError(
          'idempotency_conflict',
          'Another request was sent with this Idempotency-Key. Use a new key for each request.',
        ),
      );
    }
    if (claimed.state === 'running') {
      throw this.#refusal(
        'busy',
        new GatewayError(
          'idempotency_busy',
          'A request with this Idempotency-Key is being answered; ask again in a moment.',
          { retryAfterMs: 1000 },
        ),
      );
    }
    const kept = claimed.answer && openAnswer(sealed, claimed.answer);
    if (kept !== undefined) return kept;
    throw this.#refusal('expired', expired(same ? claimed.answer : 'other secret'));
  }

  /** What this gateway answers now under this id, or could not keep yet. */
  #ownClaim(id: string): OwnClaim | undefined {
    return this.#running.get(id) ?? this.#waiting.find(({ claim }) => claim.id === id)?.claim;
  }

  async #claim(wanted: AnswerClaim): Promise<Claimed> {
    try {
      return await this.#deps.store.claim(wanted);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      // It may be done all the same.
      this.#abandoned.add({ id: wanted.id, owner: wanted.owner });
      this.#renewSoon();
      this.#deps.log.warn('idempotency_refused', { reason: error.message });
      throw this.#refusal(
        'refused',
        new GatewayError(
          'store_unavailable',
          'The gateway cannot look up the Idempotency-Key now; retry later. Nothing was sent to a model.',
        ),
      );
    }
  }

  #refusal(tally: keyof IdempotencyTallies, error: GatewayError): GatewayError {
    this.tallies[tally] += 1;
    return error;
  }

  #sealed(request: SealedRequest, answer: StoredAnswer | 'too long'): Uint8Array | undefined {
    if (answer === 'too long') return undefined;
    return sealAnswer(request, answer, this.#deps.random(12));
  }

  async #release(claim: OwnClaim): Promise<void> {
    try {
      await this.#deps.store.release(claim);
    } catch (error) {
      // Its lease runs out.
      this.#deps.log.debug('idempotency_not_released', { reason: String(error) });
    }
  }

  async #keep(unkept: Unkept): Promise<void> {
    const { claim, sealed } = unkept;
    const { store, log } = this.#deps;
    const { keepMs, keyBytes, keyAnswers } = this.limits;
    const most = { keepMs, maxBytes: keyBytes, maxAnswers: keyAnswers };
    try {
      const isMine = await store.keep({ ...claim, answer: sealed, ...most });
      this.tallies[isMine ? (sealed === undefined ? 'unkept' : 'kept') : 'lost'] += 1;
      if (!isMine) log.warn('idempotency_lost', { call: claim.owner });
      unkept.done();
      this.#noteKept(storedBytes(sealed));
    } catch (error) {
      if (this.#waiting.length === 0) {
        log.warn('idempotency_write_retried', { call: claim.owner, reason: String(error) });
      }
      this.#waiting.push(unkept);
      // While it was tried nothing ran and nothing waited: the timer may have ended.
      this.#renewSoon();
    }
  }

  #stopRenewing(): void {
    clearInterval(this.#renewing);
    this.#renewing = undefined;
  }

  #renewSoon(): void {
    this.#renewing ??= setInterval(() => void this.renew(), renewEveryMs).unref();
  }

  #noteKept(bytes: number): void {
    this.#storedSinceSweep += bytes;
    if (this.#storedSinceSweep < this.limits.totalBytes / 16) return;
    this.#storedSinceSweep = 0;
    this.#onManyStored?.();
  }
}

function expired(answer: Uint8Array | 'other secret' | undefined): GatewayError {
  const why =
    answer === 'other secret'
      ? 'but with another secret of this API key, and only that secret decrypts the answer.'
      : answer === undefined
        ? 'but the answer was not stored for lack of room.'
        : 'but the stored answer can no longer be read.';
  return new GatewayError(
    'idempotency_expired',
    `The request with this Idempotency-Key was answered, ${why}`,
  );
}

// Claims with unknown outcome: the store did not answer. No call began for them and the client
// was refused, but a claim that was stored would block every repetition until its lease ends (E17). They are
// released again and again until the lease would be over, since the claim may be executed after the first
// release.

interface Abandoned {
  readonly claim: OwnClaim;
  readonly since: number;
}

class AbandonedClaims {
  readonly #store: Pick<AnswerStore, 'release'>;
  readonly #clock: Pick<Clock, 'now'>;
  #claims: readonly Abandoned[] = [];

  constructor(store: Pick<AnswerStore, 'release'>, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#clock = clock;
  }

  get size(): number {
    return this.#claims.length;
  }

  /** Gives it up for the first time in the background. */
  add(claim: OwnClaim): void {
    this.#claims = [...this.#claims, { claim, since: this.#clock.now() }];
    void this.#release([claim]);
  }

  /** Gives up those under this id; false when there are none. Never throws. */
  async giveUp(id: string): Promise<boolean> {
    const claims = this.#claims.map(({ claim }) => claim).filter((claim) => claim.id === id);
    await this.#release(claims);
    return claims.length > 0;
  }

  /** Releases all of them; those with an expired lease for the last time. Never throws. */
  async giveUpAll(): Promise<void> {
    const claims = this.#claims;
    const now = this.#clock.now();
    this.#claims = claims.filter(({ since }) => now - since < leaseMs);
    await this.#release(claims.map(({ claim }) => claim));
  }

  async #release(claims: readonly OwnClaim[]): Promise<void> {
    // A store that is away is tried again; in the end the lease expires.
    await Promise.allSettled(claims.map((claim) => this.#store.release(claim)));
  }
}

// A call with an `Idempotency-Key`: answered once, and with the same bytes when it is repeated.

interface IdempotentCall {
  readonly answers: IdempotentAnswers;
  readonly request: IdempotentRequest;
  readonly gateway: Pick<Gateway, 'later' | 'log'>;
  readonly sink: ClientSink;
  /** Of this sending. */
  readonly requestId: string;
}

/** A store that is slow or away holds the end of an answer up no longer than this. */
const maxHoldMs = 1000;

/**
 * The last bytes of an answer go out when it is stored, so that an answer which a client has seen to its end
 * is the one that it gets again, whatever happens to this process in between.
 * @param run serves the call; may throw before it began, which keeps nothing.
 * @throws GatewayError as `IdempotentAnswers.claim`, and what `run` throws.
 */
export async function answerOnce(
  call: IdempotentCall,
  run: (sink: ClientSink) => Promise<void>,
): Promise<void> {
  const { answers, gateway, sink, requestId, request } = call;
  const claim = await answers.claim(request, requestId);
  if (claim.kept !== undefined) {
    const ids = ['x-request-id', requestId, 'request-id', requestId];
    sink.start(claim.kept.status, [...ids, ...claim.kept.headers, 'idempotent-replayed', 'true']);
    sink.end(claim.kept.body);
    gateway.log.info('replayed', { id: requestId, key: request.keyId, status: claim.kept.status });
    return;
  }
  const tee = new AnswerTee(sink, {
    maxBytes: answers.limits.answerBytes,
    hold: (bytes) => claim.hold(bytes),
    holdsEnd: true,
    // Nothing is stored, and an error must not wait: a stop may close the connection next (G14).
    settled: (receipt) => {
      if (!isFinal(receipt)) tee.release();
    },
  });
  try {
    await run(tee);
  } finally {
    await atMost(gateway, claim.finish(isFinal(tee.receipt) ? answerOf(tee) : undefined));
    tee.release();
  }
}

/**
 * Headers of one request, which a replay has of its own; rate limits of the first sending would make clients wait.
 */
const ownHeader = /^(?:x-request-id|request-id|(?:x|anthropic)-ratelimit-.*)$/;

/** The answer as it is stored; undefined unless it came to its end. */
export function answerOf(tee: AnswerTee): Finished {
  if (!tee.ended) return undefined;
  if (!tee.complete) return 'too long';
  const { headers, status = 0, copy: body } = tee;
  return {
    status,
    headers: headers.filter((_, at) => !ownHeader.test(headers[at - (at % 2)] ?? '')),
    body,
  };
}

function atMost(gateway: Pick<Gateway, 'later'>, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const stop = gateway.later(maxHoldMs, resolve);
    void work.finally(() => {
      stop();
      resolve();
    });
  });
}

/** A wait may be over when the request comes again. */
const passing: ReadonlySet<number> = new Set([408, 409, 429]);

/** Whether the same request would have the same end: what failed otherwise is worth another try. */
function isFinal(receipt: Receipt | undefined): boolean {
  if (receipt === undefined) return false;
  const { outcome, status = 0, error, attempts, readToEnd } = receipt;
  // It was paid for in full: a repeated request gets it.
  if (outcome === 'ok' || readToEnd === true) return true;
  // A 400 of our own credential is mended by the operator, and then the same request is served.
  const refused =
    status >= 400 && status < 500 && !passing.has(status) && error !== 'upstream_auth';
  return outcome === 'failed' && attempts.length > 0 && refused;
}
