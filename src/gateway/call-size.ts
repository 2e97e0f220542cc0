/**
 * The size of a call, for the reservation of what it may use; `TokenEstimator` guesses counts that nothing reported
 * yet.
 */
import type {
  NamedModels,
  Prompt,
  RequestDescription,
  SearchRequest,
} from '../core/description.ts';
import type { ClientDialect, RequestHead } from '../core/dialect.ts';
import type { RaisedCost } from '../core/policy.ts';
import type { JsonSource } from '../core/client-body.ts';
import type { Route, Target } from '../core/provider.ts';
import { LongBody } from './long-bodies/body-thread.ts';
import { countPrompt } from '../tokens/prompt.ts';
import type { Gateway } from './gateway.ts';
import { tokenizedPrompt } from './count-tokens.ts';
import { oneSearch } from '../dialects/shared/body/requested-services.ts';

/** Letters and digits are never escaped like this, unless to hide a mark. */
const escapes: readonly string[] = ['\\u005', '\\u006', '\\u007', '\\u0031'];

export interface SizedCall {
  readonly dialect: ClientDialect;
  readonly source: JsonSource;
  readonly head: RequestHead;
  readonly route: Route;
  /** `auto`: the gateway sets cache marks if the client sets none. */
  readonly cache?: 'auto' | undefined;
}

export interface SizedTarget {
  readonly provider: string;
  readonly model: string;
  readonly maxOutputTokens?: number;
  readonly minOutputTokens?: number;
}

interface SizedSearches extends SearchRequest {
  /** Per target, whether it is known to run them. */
  readonly sure: readonly boolean[];
}

/** Each value is computed only if limits need it: most calls have none. */
export class CallSize {
  readonly #gateway: Gateway;
  readonly #call: SizedCall;
  /** The first target of each API by which the call may be sent. */
  readonly #forms: readonly Target[];
  readonly #request: RequestDescription;
  readonly #limitOf: (target: Target) => number | undefined;
  #targets: readonly SizedTarget[] | undefined;
  /** Prompt tokens estimated from characters. */
  #guess: number | undefined;

  /** @param limitOf the model's own output limit, if its provider states it. */
  constructor(gateway: Gateway, call: SizedCall, limitOf: (target: Target) => number | undefined) {
    this.#gateway = gateway;
    this.#call = call;
    this.#forms = formsOf(call);
    this.#request = call.dialect.describe(call.source);
    this.#limitOf = limitOf;
  }

  get targets(): readonly SizedTarget[] {
    this.#targets ??= this.#forms.map((target): SizedTarget => {
      const { provider, model } = target;
      const { minOutputTokens } = provider.traits(model);
      const least = minOutputTokens === undefined ? {} : { minOutputTokens };
      const sized = { provider: provider.id, model, ...least };
      // If the client sets a cap, the model's own limit is not needed.
      const cap = this.maxOutputTokens === undefined ? this.#capOf(target) : undefined;
      return cap === undefined ? sized : { ...sized, maxOutputTokens: cap };
    });
    return this.#targets;
  }

  get maxOutputTokens(): number | undefined {
    return this.uncapped ? undefined : this.#call.head.maxOutputTokens;
  }

  /** A request to compact takes no cap. */
  get uncapped(): boolean {
    return this.#call.head.compacts === true;
  }

  get choices(): number {
    return this.#call.head.choices ?? 1;
  }

  /** Without a second target there is no parallel request. */
  get hedged(): boolean {
    const { hedge, targets } = this.#call.route;
    return hedge !== undefined && targets.length > 1;
  }

  /** Upper estimate of the prompt tokens from its text. */
  promptAtMost(): number {
    this.#guess ??= this.#guessed();
    const guess = this.#guess;
    const { estimator } = this.#gateway;
    let most = 0;
    for (const { provider, model } of this.#forms) {
      most = Math.max(most, estimator.promptAtMost(`${provider.id}/${model}`, guess));
    }
    return most;
  }

  get promptGuess(): number | undefined {
    return this.#guess;
  }

  #guessed(): number {
    const { source } = this.#call;
    if (source instanceof LongBody) return source.guess;
    return countPrompt(this.#request.prompt(), this.#gateway.random);
  }

  /** Prompt tokens by the models' own tokenizers; undefined when one of them has none. */
  async promptExactly(): Promise<number | undefined> {
    const { dialect, source } = this.#call;
    let most = 0;
    for (const target of this.#forms) {
      const tokens = await tokenizedPrompt(this.#gateway, {
        target,
        source,
        dialect,
        counting: false,
      });
      if (tokens === undefined) return undefined;
      most = Math.max(most, tokens);
    }
    return most;
  }

  /**
   * Vendors with cache marks write what is marked; others write at will, for the usual time. Marks that the
   * gateway sets are for the usual time, too.
   */
  cacheWrites(): 'none' | 'usual' | 'long' {
    const { source } = this.#call;
    if (source.has('escape') && escapes.some((escape) => source.pieces.includes(escape))) {
      return 'long';
    }
    if (source.has('cacheControl')) return source.has('hour') ? 'long' : 'usual';
    if (this.#call.cache === 'auto') return 'usual';
    const marked = this.#forms.every(({ provider, model }) => provider.traits(model).cacheMarks);
    return marked ? 'none' : 'usual';
  }

  /** By member names; with escapes in the body, a name may be anything. */
  media(): boolean {
    const { source } = this.#call;
    return source.has('escape') || source.has('media');
  }

  others(): NamedModels | undefined {
    return otherModels(this.#request, this.#call);
  }

  images(): number {
    return requestedImages(this.#call.source, this.#call.dialect);
  }

  searches(): SizedSearches | undefined {
    const { dialect } = this.#call;
    let most: SearchRequest | undefined;
    const sure = this.#forms.map((target) => {
      const asked = requestedSearches(this.#request, dialect, target);
      if (asked !== undefined && asked.most > (most?.most ?? 0)) most = asked;
      return asked !== undefined && target.provider.traits(target.model).webSearch !== undefined;
    });
    return most && { ...most, sure };
  }

  raised(): RaisedCost | undefined {
    const { dialect, head } = this.#call;
    const receiving = this.#forms.some(
      ({ provider, model }) =>
        provider.dialect.id === dialect.id || provider.traits(model).serverTools === true,
    );
    if (!receiving) return undefined;
    const { random } = this.#gateway;
    const tokensOf = (text: string): number =>
      Math.ceil(countPrompt({ texts: [text], media: [], frameTokens: 0 }, random));
    return this.#request.raisedCost({ reasoningBudget: head.reasoningBudget, tokensOf });
  }

  serviceTier(target = 0): string | undefined {
    const asked = this.#forms[target];
    return asked && requestedTier(this.#request, this.#call.dialect, asked);
  }

  /** The member that requests a more expensive tier of this target; a cheaper one does not matter. */
  expensiveBy(target: number): string | undefined {
    const member = this.#request.expensiveTierMember();
    const asked = this.#forms[target];
    if (member === undefined || asked === undefined) return undefined;
    const { dialect } = this.#call;
    const mayBeServed =
      asked.provider.dialect.id === dialect.id ||
      requestedTier(this.#request, dialect, asked) !== undefined;
    return mayBeServed ? member : undefined;
  }

  /** A dialect that requires a cap gets one even if the client's does not. */
  #capOf(target: Target): number | undefined {
    const { provider, model } = target;
    const demanded = provider.dialect.id !== this.#call.dialect.id;
    const sent = demanded ? provider.traits(model).defaultMaxOutputTokens : undefined;
    return sent ?? this.#limitOf(target);
  }
}

/** The targets of a call, and what they become where a server lacks the API that was chosen for it. */
function formsOf({
  route,
  head,
}: Pick<SizedCall, 'route'> & Partial<SizedCall>): readonly Target[] {
  const { targets } = route;
  const fixed = head?.compacts === true || targets.every(({ byOwnApi }) => byOwnApi === undefined);
  if (fixed) return targets;
  return targets.flatMap((each) => [each, ...(each.byOwnApi === undefined ? [] : [each.byOwnApi])]);
}

/** No vendor runs more searches. */
const maxSearches = 1_000_000;

/**
 * The web searches that this target may run for the request. They are billed per search and often not reported.
 * Undefined = none.
 */
export function requestedSearches(
  request: Pick<RequestDescription, 'searches'>,
  dialect: Pick<ClientDialect, 'id'>,
  { provider, model }: Target,
): SearchRequest | undefined {
  const { webSearch, serverTools } = provider.traits(model);
  const always = webSearch === 'plugin' || webSearch === 'options';
  // Translation drops services that the other dialect cannot express.
  const receiving = provider.dialect.id === dialect.id || serverTools === true;
  const ofModel = webSearch === 'plugin' && model.includes(':online') ? [oneSearch('model')] : [];
  const found = receiving ? [...ofModel, ...request.searches(always)] : ofModel;
  const [first] = found;
  if (first === undefined) return undefined;
  const sum = (count: (each: SearchRequest) => number): number =>
    found.reduce((total, each) => Math.min(total + count(each), maxSearches), 0);
  return {
    member: first.member,
    most: sum(({ most }) => most),
    unreported: sum(({ unreported }) => unreported),
  };
}

/** The service tier that this target was asked for; undefined = none, or translation dropped it. */
export function requestedTier(
  request: Pick<RequestDescription, 'serviceTier' | 'translatedTier'>,
  dialect: Pick<ClientDialect, 'id'>,
  { provider, model }: Target,
): string | undefined {
  if (provider.dialect.id === dialect.id) return request.serviceTier();
  const tier = request.translatedTier();
  if (tier === undefined) return undefined;
  const traits = provider.traits(model);
  const takes = provider.dialect.takesTier?.(tier, traits) ?? traits.serviceTiers === true;
  return takes ? tier : undefined;
}

/** Number of images in the prompt, which some vendors bill each. A body without media is not searched. */
export function requestedImages(
  source: JsonSource,
  dialect: Pick<ClientDialect, 'describe'>,
): number {
  if (!mayHoldImages(source)) return 0;
  if (source instanceof LongBody) return source.images;
  return imagesIn(dialect.describe(source).prompt());
}

function mayHoldImages(source: JsonSource): boolean {
  // A name with escapes may be any name.
  return source.has('media') || source.has('escape');
}

/** Whether a call needs the prompt of a long body measured before it is admitted. @param limited it may have limits */
export function needsMeasuring(
  source: JsonSource,
  route: Pick<Route, 'targets'>,
  limited: boolean,
): source is LongBody {
  if (!(source instanceof LongBody)) return false;
  // A file is in a member for an address, also where no other name says that it is one.
  const mayHoldFiles = mayHoldImages(source) || source.has('address');
  return limited || route.targets.length > 1 || mayHoldFiles;
}

/** The number of images in a prompt. */
export function imagesIn({ media }: Pick<Prompt, 'media'>): number {
  return media.filter(({ kind }) => kind === 'image').length;
}

/**
 * The other models that a request names, by the names of each target that receives them.
 * @returns undefined if there are none, or no target of the route receives them.
 * @throws GatewayError `invalid_request` if there are too many.
 */
export function otherModels(
  request: Pick<RequestDescription, 'otherModels'>,
  { dialect, route }: { readonly dialect: { readonly id: string }; readonly route: Route },
): NamedModels | undefined {
  const found = request.otherModels();
  if (found === undefined) return undefined;
  const receiving = formsOf({ route }).filter(({ provider }) => provider.dialect.id === dialect.id);
  if (receiving.length === 0) return undefined;
  const names = receiving.flatMap(({ provider }) =>
    found.names.map((name) => `${provider.id}/${name}`),
  );
  return { member: found.member, names };
}

/**
 * Guesses token counts where a number is needed before the upstream reports one (`message_start`, gaps
 * in usage, counts for models without a counter). A guess by the kinds of characters
 * (tokens/prompt.ts) is corrected by what the model has reported before; tokenising on the
 * request path would cost 5–12 ms per 100 KB.
 */

/**
 * Bound of a guess before anything was learned: with this margin it is not more than 10 % below the
 * tokenizers in use (test/unit/tokens/text-estimate.test.ts). Media are outside of it.
 */
const margin = 1.05;
const defaultBytesPerToken = 4;
/** Weight of a new observation. */
const learningRate = 0.2;
/** How fast the high-water mark of a model falls back. */
const forgettingRate = 0.02;
/** The first calls of a model always train the estimator; later only calls whose estimate was used. */
const lessons = 8;
/** Fewer tokens or bytes say nothing about a ratio. */
const tiniestSample = 16;
const maxModels = 1000;

interface Learned {
  /** Reported prompt tokens by guessed ones: usual, and the highest of late. */
  usual: number;
  highest: number;
  lessons: number;
  /** Bytes of generated text by reported tokens. */
  output: number;
}

const unlearned: Readonly<Learned> = {
  usual: margin,
  highest: margin,
  lessons: 0,
  output: defaultBytesPerToken,
};

export class TokenEstimator {
  readonly #models = new Map<string, Learned>();

  /** Tokens of a prompt that was guessed at `guess`; at least 1. */
  prompt(model: string, guess: number): number {
    return Math.max(1, Math.ceil(guess * this.#of(model).usual));
  }

  /** The same where too low is worse than too high: for counts that a client reads before it calls. */
  promptAtMost(model: string, guess: number): number {
    return Math.max(1, Math.ceil(guess * this.#of(model).highest));
  }

  /** Estimated tokens of this many bytes of generated text; 0 for none. */
  output(model: string, bytes: number): number {
    return Math.ceil(bytes / this.#of(model).output);
  }

  /** Whether a call with this many reported tokens should train the estimator even if that costs a count. */
  wantsLesson(model: string, tokens: number): boolean {
    return tokens >= tiniestSample && this.#of(model).lessons < lessons;
  }

  /** Learns from a finished call. Tiny samples are omitted. */
  learnPrompt(model: string, sample: { readonly guess: number; readonly tokens: number }): void {
    if (sample.tokens < tiniestSample || sample.guess < tiniestSample) return;
    const observed = Math.min(4, Math.max(0.25, sample.tokens / sample.guess));
    const learned = this.#toLearn(model);
    learned.usual += (observed - learned.usual) * learningRate;
    const fallen = learned.highest + (observed - learned.highest) * forgettingRate;
    learned.highest = Math.max(observed, fallen);
    learned.lessons += 1;
  }

  /** The same of generated text. */
  learnOutput(model: string, sample: { readonly bytes: number; readonly tokens: number }): void {
    if (sample.tokens < tiniestSample || sample.bytes < tiniestSample) return;
    const observed = Math.min(16, Math.max(0.5, sample.bytes / sample.tokens));
    const learned = this.#toLearn(model);
    learned.output += (observed - learned.output) * learningRate;
  }

  #of(model: string): Readonly<Learned> {
    return this.#models.get(model) ?? unlearned;
  }

  #toLearn(model: string): Learned {
    const learned = this.#models.get(model) ?? { ...unlearned };
    if (this.#models.size < maxModels) this.#models.set(model, learned);
    return learned;
  }
}
