/**
 * What upstreams taught by a 400 (B9): a member that the gateway wrote, or can spell otherwise, and
 * that this model refuses. Remembered per provider and model while the gateway runs; a reload of the
 * configuration makes new providers, and they start with what is written there.
 *
 * Only what is translated is corrected. A relayed request is the client's own: what its vendor's API
 * would refuse there must be refused here, `max_tokens` for a reasoning model included, or a client
 * could not be told its mistake. Corrected in relayed requests is what the client did not write: the
 * gateway's own `stream_options`, and a missing `stream` where documents are refused (E11).
 */
import type { JsonObject } from '../core/conversation.ts';
import type { GatewayError } from '../core/errors.ts';
import type { Provider, Target } from '../core/provider.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import { correctionOf, type Correction } from './corrections.ts';
import { readComplaint } from './named-parameters.ts';

const maxModels = 500;

interface Learned {
  readonly facts: Correction['traits'];
  readonly traits: UpstreamTraits;
}

export class LearnedParameters {
  readonly #byProvider = new WeakMap<Provider, Map<string, Learned>>();

  /** The traits of a model with all that was learned of it. */
  traits({ provider, model }: Target): UpstreamTraits {
    return this.#byProvider.get(provider)?.get(model)?.traits ?? provider.traits(model);
  }

  remember({ provider, model }: Target, correction: Correction['traits']): void {
    if (Object.keys(correction).length === 0) return;
    const models = this.#byProvider.get(provider) ?? new Map<string, Learned>();
    this.#byProvider.set(provider, models);
    const facts = { ...models.get(model)?.facts, ...correction };
    models.delete(model);
    models.set(model, { facts, traits: { ...provider.traits(model), ...facts } });
    const [oldest] = models.keys();
    if (models.size > maxModels && oldest !== undefined) models.delete(oldest);
  }
}

/** A request that was refused. */
export interface Refused {
  readonly error: GatewayError;
  /** As it was sent. */
  readonly sent: JsonObject;
  readonly traits: UpstreamTraits;
  /** The client's own body, where that was relayed. */
  readonly relayed: JsonObject | undefined;
}

/** With which traits the request would be written in a way that may please; undefined = none known. */
export function correctionFor({ error, sent, traits, relayed }: Refused): Correction | undefined {
  const complaint = readComplaint(error);
  if (complaint === undefined) return undefined;
  const correction = correctionOf(complaint, { sent, traits });
  if (relayed === undefined || correction === undefined) return correction;
  const own = ownMembers(correction.traits, relayed);
  return own === undefined ? undefined : { ...correction, traits: own };
}

/** Of what was refused in a relayed request, that which the client did not write. */
function ownMembers(
  { usageOption, streams }: Correction['traits'],
  relayed: JsonObject,
): Correction['traits'] | undefined {
  if (usageOption === false && relayed['stream_options'] === undefined) return { usageOption };
  return streams === 'only' && relayed['stream'] !== true ? { streams } : undefined;
}
