/**
 * Corrections learned from refusals: a member that a model refuses, or takes in another form. They are remembered per
 * provider and model while the gateway runs; a reload creates new providers, which start from the
 * configuration.
 * A refusal of something that the client wrote may be the client's own fault, so it changes only the calls of
 * that client's team (or key), until a second team meets the same refusal. What the gateway wrote by
 * itself is learned for all at once. A lesson expires after an hour: a changed model or a wrong lesson costs
 * one request an hour.
 * An API that a server lacks is learned for the whole provider at once: its members do not matter.
 */
import type { JsonObject } from '../json/value.ts';
import { GatewayError } from '../core/errors.ts';
import type { LongBodies } from './long-bodies/body-thread.ts';
import { sentError } from './long-bodies/transfer.ts';
import type { Provider, Target } from '../core/provider.ts';
import type { Clock } from '../core/runtime.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import {
  type Changes,
  type Correction,
  correctionOf,
  readComplaint,
  writtenByClient,
} from '../dialects/shared/refusals.ts';
import { maxBytesAtOnce } from '../json/scan.ts';
import { tryParseObject } from '../json/parse.ts';
import { type JsonSource, parseClientBody } from '../core/client-body.ts';
import type { Pieces } from '../json/pieces.ts';

const maxModels = 500;
/** A lesson is one trait by one tenant; the oldest is dropped first. */
const maxLessonsPerModel = 500;
const lessonMs = 3_600_000;

/** How many tenants must meet the same refusal before it applies to all. */
const tenantsForAll = 2;

interface Lesson {
  readonly trait: string;
  readonly value: unknown;
  /** Undefined if the gateway wrote the refused member by itself. */
  readonly tenant: string | undefined;
  /** Monotonic ms. */
  readonly until: number;
}

interface ModelLessons {
  lessons: readonly Lesson[];
  /** The traits by tenant, valid until the first of their lessons expires. */
  readonly merged: Map<string, { readonly traits: UpstreamTraits; readonly until: number }>;
}

/** The lessons of one call. */
export interface Taught {
  readonly target: Target;
  readonly tenant: string;
  /** About members that the client wrote. */
  readonly byClient: Changes;
  /** About members that the gateway wrote by itself. */
  readonly byGateway: Changes;
}

export class LearnedParameters {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #byProvider = new WeakMap<Provider, Map<string, ModelLessons>>();
  /** Until when each address and counter counts as missing, monotonic ms. */
  readonly #missing = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** The traits of a model with the lessons for all and for this tenant. */
  traits({ provider, model }: Target, tenant: string): UpstreamTraits {
    const known = this.#byProvider.get(provider)?.get(model);
    if (known === undefined) return provider.traits(model);
    const now = this.#clock.now();
    const merged = known.merged.get(tenant);
    if (merged !== undefined && now < merged.until) return merged.traits;
    known.lessons = known.lessons.filter(({ until }) => until > now);
    const lessons = lessonsFor(known.lessons, tenant);
    const facts = Object.fromEntries(lessons.map(({ trait, value }) => [trait, value]));
    const traits = { ...provider.traits(model), ...facts };
    if (known.merged.size >= maxLessonsPerModel) known.merged.clear();
    const until = Math.min(Infinity, ...lessons.map((lesson) => lesson.until));
    known.merged.set(tenant, { traits, until });
    return traits;
  }

  /** Whether the provider is known to lack the API by which it would be called. */
  lacksApi(target: Target): boolean {
    return this.#isMissing(addressOf(target));
  }

  /** The address of this API is unknown to the provider's server, and its own API is known to it. */
  rememberMissing(target: Target): void {
    this.#rememberMissing(addressOf(target));
  }

  /** Whether the model is known to have no counter of tokens. */
  lacksCounter(target: Target): boolean {
    return this.#isMissing(counterOf(target));
  }

  rememberCounterless(target: Target): void {
    this.#rememberMissing(counterOf(target));
  }

  #isMissing(address: string): boolean {
    const until = this.#missing.get(address);
    return until !== undefined && this.#clock.now() < until;
  }

  #rememberMissing(address: string): void {
    this.#missing.set(address, this.#clock.now() + lessonMs);
    const [oldest] = this.#missing.keys();
    if (this.#missing.size > maxModels && oldest !== undefined) this.#missing.delete(oldest);
  }

  remember({ target, tenant, byClient, byGateway }: Taught): void {
    const until = this.#clock.now() + lessonMs;
    const lesson = (taught: Changes, by: string | undefined): readonly Lesson[] =>
      Object.entries(taught).map(([trait, value]) => ({ trait, value, tenant: by, until }));
    const fresh = [...lesson(byGateway, undefined), ...lesson(byClient, tenant)];
    if (fresh.length === 0) return;
    const { provider, model } = target;
    const models = this.#byProvider.get(provider) ?? new Map<string, ModelLessons>();
    this.#byProvider.set(provider, models);
    const replaced = (old: Lesson): boolean =>
      fresh.some(({ trait, tenant: by }) => trait === old.trait && by === old.tenant);
    const kept = (models.get(model)?.lessons ?? []).filter((lesson) => !replaced(lesson));
    models.delete(model);
    const lessons = [...kept, ...fresh].slice(-maxLessonsPerModel);
    models.set(model, { lessons, merged: new Map() });
    const [oldest] = models.keys();
    if (models.size > maxModels && oldest !== undefined) models.delete(oldest);
  }
}

/** The same for all credentials and routes of a provider. */
function addressOf({ provider: { id, generate } }: Target): string {
  return `${id} ${generate.origin}${generate.path}`;
}

/** Each model by itself: some of a provider can be counted, others not. */
function counterOf({ provider, model }: Target): string {
  return `${provider.id} counts ${model}`;
}

/** The lessons that apply to a tenant: those for all, then its own, which take precedence. */
function lessonsFor(lessons: readonly Lesson[], tenant: string): readonly Lesson[] {
  const tenants = new Map<string, number>();
  const alike = ({ trait, value }: Lesson): string => `${trait} ${JSON.stringify(value)}`;
  for (const lesson of lessons) {
    const known = tenants.get(alike(lesson)) ?? 0;
    tenants.set(alike(lesson), lesson.tenant === undefined ? tenantsForAll : known + 1);
  }
  const shared = lessons.filter((lesson) => (tenants.get(alike(lesson)) ?? 0) >= tenantsForAll);
  return [...shared, ...lessons.filter((lesson) => lesson.tenant === tenant)];
}

/** A request that was refused. */
export interface Refused {
  readonly error: GatewayError;
  /** The body that was sent. */
  readonly sent: JsonObject;
  readonly traits: UpstreamTraits;
  /** The client's own body, or its skeleton. */
  readonly asked: JsonObject;
}

export interface LearnedCorrection extends Correction {
  /** The client wrote the refused member, not the gateway. */
  readonly byClient: boolean;
}

/** The traits that avoid the refused form; undefined = none known. */
export function correctionFor({
  error,
  sent,
  traits,
  asked,
}: Refused): LearnedCorrection | undefined {
  const complaint = readComplaint(error);
  if (complaint === undefined) return undefined;
  const correction = correctionOf(complaint, { sent, traits });
  if (correction === undefined) return undefined;
  return { ...correction, byClient: writtenByClient(correction, asked) };
}

/** A refusal, the body that got it, and a possible correction. */
export interface RefusedRequest {
  readonly error: GatewayError;
  readonly body: Pieces;
  readonly correction: LearnedCorrection;
}

/** The sent request. */
export interface SentRequest {
  readonly body: Pieces;
  readonly traits: UpstreamTraits;
  /** The client's own body. */
  readonly source: JsonSource;
  /** Whether the request may still be sent once more. */
  readonly wanted: () => boolean;
}

const noKeys: ReadonlySet<string> = new Set();

/**
 * What a refusal teaches; undefined if nothing. The sent request is parsed only if one of its members is
 * refused (most failures have other causes), in the worker thread if it is long (G11).
 */
export async function readRefused(
  error: GatewayError,
  { body, traits, source, wanted }: SentRequest,
  bodies: LongBodies,
): Promise<RefusedRequest | undefined> {
  if (readComplaint(error) === undefined) return undefined;
  const asked = source.skeleton;
  const sent = readSent(body);
  let correction: LearnedCorrection | undefined;
  if (sent !== undefined) correction = correctionFor({ error, sent, traits, asked });
  else {
    const input = { error: sentError(error), traits, asked };
    try {
      correction = await bodies.run('correct', input, {
        id: bodies.nextId(),
        pieces: body,
        wanted,
      });
    } catch {
      // The client gets the refusal, not an error of the thread that searched for its cause.
      return undefined;
    }
  }
  return correction && { error, body, correction };
}

/**
 * A translated body may nest deeper than a client's: tools and arguments are nested further. Undefined = it is
 * long.
 */
function readSent(body: Pieces): JsonObject | undefined {
  try {
    return parseClientBody(body, noKeys)?.skeleton;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return body.length > maxBytesAtOnce ? undefined : tryParseObject(body.toString());
  }
}

/** A request that is sent once more, and why. */
export interface Again {
  readonly refused: RefusedRequest;
  /** All members refused so far. */
  readonly members: readonly string[];
  /** Lessons to record if the corrected request succeeds. */
  readonly taught: Pick<Taught, 'byClient' | 'byGateway'>;
}

/** The next request after one more refusal; `before` is the correction for the previous ones. */
export function corrected(refused: RefusedRequest, before: Again | undefined): Again {
  const { members, lasting, traits, byClient } = refused.correction;
  const { taught = { byClient: {}, byGateway: {} } } = before ?? {};
  const author = byClient ? 'byClient' : 'byGateway';
  return {
    refused,
    members: [...(before?.members ?? []), ...members],
    taught: lasting ? { ...taught, [author]: { ...taught[author], ...traits } } : taught,
  };
}
