/** How large a call is asked to be, for whoever reserves what it may use. */
import type { ClientDialect, RequestHead } from '../core/dialect.ts';
import type { JsonSource } from '../core/json.ts';
import type { Route, Target } from '../core/provider.ts';
import { inTurns, isLong } from '../core/steps.ts';
import { countPrompt, promptCounting, promptOf, promptReading } from '../tokens/prompt.ts';
import { askedImages, askedSearches, rememberImages, type AskedSearches } from './asked-pieces.ts';
import type { Gateway } from './call.ts';
import { tokenizedPrompt } from './count-tokens.ts';
import { otherModels, type OtherModels } from './other-models.ts';

/** Nobody writes a letter or a digit like this, unless to hide a mark. */
const escapes: readonly string[] = ['\\u005', '\\u006', '\\u007', '\\u0031'];

export interface SizedCall {
  readonly dialect: ClientDialect;
  readonly source: JsonSource;
  readonly head: RequestHead;
  readonly route: Route;
}

export interface SizedTarget {
  readonly provider: string;
  readonly model: string;
  readonly maxOutputTokens?: number;
}

interface SizedSearches extends AskedSearches {
  /** Target by target, whether it is known to run them. */
  readonly sure: readonly boolean[];
}

/** Asked for only as far as limits need it: most calls have none. */
export class CallSize {
  readonly #gateway: Gateway;
  readonly #call: SizedCall;
  readonly #limitOf: (target: Target) => number | undefined;
  #targets: readonly SizedTarget[] | undefined;
  /** Tokens of the prompt by its characters. */
  #guess: number | undefined;

  /** @param limitOf the model's own cap on an answer, where its provider tells. */
  constructor(gateway: Gateway, call: SizedCall, limitOf: (target: Target) => number | undefined) {
    this.#gateway = gateway;
    this.#call = call;
    this.#limitOf = limitOf;
  }

  get targets(): readonly SizedTarget[] {
    this.#targets ??= this.#sizedTargets();
    return this.#targets;
  }

  #sizedTargets(): readonly SizedTarget[] {
    return this.#call.route.targets.map((target): SizedTarget => {
      const sized = { provider: target.provider.id, model: target.model };
      // Where the client says a cap, nobody asks for the model's own.
      const cap = this.maxOutputTokens === undefined ? this.#capOf(target) : undefined;
      return cap === undefined ? sized : { ...sized, maxOutputTokens: cap };
    });
  }

  get maxOutputTokens(): number | undefined {
    return this.#call.head.maxOutputTokens;
  }

  get choices(): number {
    return this.#call.head.choices ?? 1;
  }

  /** Where there is nobody else to ask, nothing runs beside a request. */
  get hedged(): boolean {
    const { hedge, targets } = this.#call.route;
    return hedge !== undefined && targets.length > 1;
  }

  /**
   * Looks a long prompt through with turns for all others in between, so that nobody waits where its numbers are asked
   * for (G11). Undefined for a short one: it is looked at then, at once.
   */
  prepare(): Promise<void> | undefined {
    return isLong(this.#call.source) ? this.#readInTurns() : undefined;
  }

  async #readInTurns(): Promise<void> {
    const { source } = this.#call;
    const prompt = await inTurns(promptReading(source.value));
    rememberImages(source, prompt);
    this.#guess = await inTurns(promptCounting(prompt, this.#gateway.random));
  }

  /** Tokens of the prompt at most, by a guess of all its text. */
  promptAtMost(): number {
    this.#guess ??= countPrompt(promptOf(this.#call.source.value), this.#gateway.random);
    const guess = this.#guess;
    const { estimator } = this.#gateway;
    let most = 0;
    for (const { provider, model } of this.#call.route.targets) {
      most = Math.max(most, estimator.promptAtMost(`${provider.id}/${model}`, guess));
    }
    return most;
  }

  /** Tokens of the prompt by the models' own tokenizers; undefined when one of them has none. */
  async promptExactly(): Promise<number | undefined> {
    const { dialect, source, route } = this.#call;
    const { sealer } = this.#gateway.memory;
    let most = 0;
    for (const target of route.targets) {
      const tokens = await tokenizedPrompt(this.#gateway, {
        target,
        source,
        dialect: dialect.id,
        reading: (body, notes) => dialect.requestReading(body, notes, sealer),
      });
      if (tokens === undefined) return undefined;
      most = Math.max(most, tokens);
    }
    return most;
  }

  /** Vendors that know marks write what is marked; others write as they like, for the usual time. */
  cacheWrites(): 'none' | 'usual' | 'long' {
    const { source } = this.#call;
    if (source.holds('escape') && escapes.some((escape) => source.pieces.includes(escape))) {
      return 'long';
    }
    if (source.holds('cacheControl')) return source.holds('hour') ? 'long' : 'usual';
    const marked = this.#call.route.targets.every(
      ({ provider, model }) => provider.traits(model).cacheMarks,
    );
    return marked ? 'none' : 'usual';
  }

  /** By the names of their parts; written with escapes, a name may be any. */
  media(): boolean {
    const { source } = this.#call;
    return source.holds('escape') || source.holds('media');
  }

  others(): OtherModels | undefined {
    return otherModels(this.#call.source.outline, this.#call);
  }

  images(): number {
    return askedImages(this.#call.source);
  }

  searches(): SizedSearches | undefined {
    const { dialect, source, route } = this.#call;
    let most: AskedSearches | undefined;
    const sure = route.targets.map((target) => {
      const asked = askedSearches(source.outline, dialect, target);
      if (asked !== undefined && asked.most > (most?.most ?? 0)) most = asked;
      return asked !== undefined && target.provider.traits(target.model).webSearch !== undefined;
    });
    return most && { ...most, sure };
  }

  serviceTier(): string | undefined {
    const { service_tier: tier, speed } = this.#call.source.outline;
    if (speed === 'fast') return speed;
    return typeof tier === 'string' ? tier : undefined;
  }

  /** The member that asks for a tier which vendors charge more for; a cheaper one is no harm. */
  dearerBy(): string | undefined {
    const { service_tier: tier, speed } = this.#call.source.outline;
    const member =
      tier === 'priority' || tier === 'fast'
        ? 'service_tier'
        : speed === 'fast'
          ? 'speed'
          : undefined;
    return member !== undefined && this.#mayBeServed() ? member : undefined;
  }

  /** Whether a target would get the wish for a tier, and not lose it in translation. */
  #mayBeServed(): boolean {
    const { dialect, route } = this.#call;
    return route.targets.some(({ provider, model }) => {
      const { serviceTiers, fastMode } = provider.traits(model);
      return provider.dialect.id === dialect.id || serviceTiers === true || fastMode === true;
    });
  }

  /** A dialect that demands a cap is sent one where the client's does not. */
  #capOf(target: Target): number | undefined {
    const { provider, model } = target;
    const demanded = provider.dialect.id !== this.#call.dialect.id;
    const sent = demanded ? provider.traits(model).defaultMaxOutputTokens : undefined;
    return sent ?? this.#limitOf(target);
  }
}
