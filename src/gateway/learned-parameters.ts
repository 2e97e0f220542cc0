/**
 * What upstreams taught by a refusal (B9): a member that this model refuses, or takes in another form. It is kept per
 * provider and model while the gateway runs; a reload of the configuration makes new providers, which start with what
 * is written there.
 *
 * A refusal of something that the client wrote may be the client's own doing, so it changes the calls of that client's
 * team (or key) only, until a second team meets the same refusal. What the gateway wrote by itself is learned for
 * all at once. A lesson ends after an hour: a model that changed, or a wrong lesson, costs one request an hour.
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
/** A lesson is one trait by one tenant; the oldest goes first. */
const maxLessonsPerModel = 500;
const lessonMs = 3_600_000;

/** How many tenants must meet the same refusal before it holds for all. */
const tenantsForAll = 2;

interface Lesson {
  readonly trait: string;
  readonly value: unknown;
  /** Undefined where the gateway wrote by itself what was refused. */
  readonly tenant: string | undefined;
  /** Monotonic ms. */
  readonly until: number;
}

interface ModelLessons {
  lessons: readonly Lesson[];
  /** The traits by tenant, until the first lesson in them ends. */
  readonly merged: Map<string, { readonly traits: UpstreamTraits; readonly until: number }>;
}

/** What one call was taught. */
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

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** The traits of a model with what was learned for all and for this tenant. */
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

/** The lessons that hold for a tenant: those of all, then its own, which win. */
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
  /** As it was sent. */
  readonly sent: JsonObject;
  readonly traits: UpstreamTraits;
  /** The client's own body, or its skeleton. */
  readonly asked: JsonObject;
}

export interface LearnedCorrection extends Correction {
  /** The client wrote what was refused, not the gateway by itself. */
  readonly byClient: boolean;
}

/** With which traits the request would be written in a way that may please; undefined = none known. */
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

/** A refusal, the body that got it, and what may please instead. */
export interface RefusedRequest {
  readonly error: GatewayError;
  readonly body: Pieces;
  readonly correction: LearnedCorrection;
}

/** What was sent, and how. */
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
 * What a refusal teaches; undefined where it teaches nothing. The request behind it is read only where a member of it is
 * refused (most failures are about something else), in the worker thread where it is long (G11).
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
      // The client is told of the refusal, not of a thread that could not look for its reason.
      return undefined;
    }
  }
  return correction && { error, body, correction };
}

/** A translated body may nest deeper than a client's may: tools and arguments stand further in. Undefined = it is long. */
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
  /** All that was refused so far. */
  readonly members: readonly string[];
  /** What is to be known of the model if it answers now. */
  readonly taught: Pick<Taught, 'byClient' | 'byGateway'>;
}

/** The next request after one more refusal; `before` is what was corrected for the ones before it. */
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
