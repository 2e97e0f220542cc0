/** Providers, their models, and the routes that lead to them. */
import type { Pieces } from '../json/pieces.ts';
import type { Json, JsonObject } from '../json/value.ts';
import type { DialectId } from './conversation.ts';
import type { RequestCredential } from './credential.ts';
import type { Ask, FrameSplitter, UpstreamDialect } from './dialect.ts';
import type { GatewayError } from './errors.ts';
import type { Secret } from './secret.ts';
import type { UpstreamTraits } from './traits.ts';

/** Where one kind of request of a provider goes. Built once, shared by all calls. */
export interface Endpoint {
  /** `https://host:port`, without a path. */
  readonly origin: string;
  readonly path: string;
  /** Unix socket to connect to instead of the origin's host. */
  readonly socketPath?: string;
  /** Absent = directly, with the usual authorities. */
  readonly way?: NetworkWay;
  /** Flat name, value, name, value; credentials included. Never logged. */
  readonly headers: readonly string[];
  /** Adds the credential to each request, if it changes over time; absent = the headers contain it, or none is needed. */
  readonly credential?: RequestCredential;
  /** Which requests may share a connection; absent = all. */
  readonly connections?: ConnectionSharing;
}

/** `per-call`: a connection carries one request. */
export type ConnectionSharing = 'per-team' | 'per-key' | 'per-call';

/** How connections are made where not directly. Never logged: a proxy may take a credential. */
export interface NetworkWay {
  readonly proxy?: {
    /** `http://host:port` or `https://host:port`. */
    readonly origin: string;
    /** The value of `proxy-authorization`. */
    readonly authorization?: string;
  };
  /** PEM of authorities that are trusted besides the usual ones. */
  readonly ca?: string;
}

/** How a provider counts prompt tokens exactly. */
export interface TokenCounter {
  /** Sent one after the other. */
  readonly steps: readonly CounterStep[];
  /** Whether images and documents are in the number. */
  readonly countsMedia: boolean;
  /** The number in the answer to the last step. */
  read(answer: JsonObject): Json | undefined;
  /**
   * Whether an answer says that this model has no counter: the counter is not tried again for an hour. Absent = no
   * answer says so.
   */
  lacks?(status: number, body: string): boolean;
}

export interface CounterStep {
  readonly endpoint: Endpoint;
  /** The members of the request to send, in this order; absent = the request goes as it is. */
  readonly members?: readonly string[];
  /** The member of the question that holds all of it; absent = it is on top. */
  readonly inside?: string;
  /**
   * Members to send in addition to `members`, built from the answer to the previous step. Undefined when there
   * is nothing to ask; absent = none.
   */
  more?(before: JsonObject | undefined): JsonObject | undefined;
  /** The request as the counter takes it; undefined = the counter is not used. Absent = unchanged. */
  wrap?(body: Pieces): Pieces | undefined;
}

/** A request header that a same-dialect client may set, e.g. `anthropic-version`. */
export interface ForwardedHeader {
  /** Lower case. */
  readonly name: string;
  /** Sent when the client did not set it or speaks another dialect. */
  readonly otherwise?: string;
  /** The only values of the comma list that go up; absent = all. */
  readonly allowed?: ReadonlySet<string>;
  /**
   * Makes members of the body of it, where the server wants them instead of the header.
   * @param value what would be sent; undefined = the client did not set it
   */
  member?(value: string | undefined): JsonObject;
}

/** How the config wants an address to be used (src/config/sections.ts has the words of each option). */
export interface ProviderOptions {
  /** The only values of `anthropic-beta` that are sent there; absent = all. */
  readonly betas?: readonly string[];
  /** Where its models run, as `inference_geo` spells it. */
  readonly region?: string;
  /** Clients of the other dialect may use what the provider runs itself. */
  readonly serverTools?: boolean;
  /** drain: a stream whose client left is read to its end, where the provider charges for it. */
  readonly onAbort?: 'abort' | 'drain';
  /** It gets the trace context of each call. */
  readonly traceContext?: boolean;
  /** next: a prompt that a filter of the provider blocks is sent to the route's other targets. */
  readonly onContentFilter?: 'stop' | 'next';
  /** Which calls may share a connection; absent = all. */
  readonly connections?: 'shared' | ConnectionSharing;
}

/** Names in lower case, as Node gives them. */
export interface AnswerHeaders {
  readonly [name: string]: string | string[] | undefined;
}

export interface Provider {
  readonly id: string;
  readonly dialect: UpstreamDialect;
  readonly generate: Endpoint;
  /** The endpoint for streams; absent = `generate`. */
  readonly stream?: Endpoint;
  /** How bodies differ from the dialect; absent = they do not. */
  readonly body?: {
    /** Members that are in its addresses. Bodies of calls must not have them. */
    readonly inAddress?: Ask['inAddress'];
    /** The model's name in bodies; absent = its usual name. */
    readonly model?: string;
  };
  readonly models: Endpoint;
  /** Where the rest of its models is listed; absent = the list is whole. */
  readonly moreModels?: readonly Endpoint[];
  /** Where conversations are compacted; whether a model's server has it is a trait. */
  readonly compact?: Endpoint;
  readonly counter?: TokenCounter;
  /** The public tokenizer of a model, where there is one. */
  tokenizer?(model: string): ModelTokenizer | undefined;
  readonly credential?: Secret;
  /** The only client headers that go up, and only from a client of the same dialect (S17). */
  readonly forwardedHeaders: readonly ForwardedHeader[];
  /** As the config says; absent of engines that are part of the gateway. */
  readonly options?: ProviderOptions;
  /** The vendor's name in telemetry (`gen_ai.provider.name`); absent = its id. */
  readonly telemetryName?: string;
  /** For a stream that is no server-sent events; undefined for a content type that is none. Absent = there are none. */
  splitter?(contentType: string): FrameSplitter | undefined;
  /** Reads an error over HTTP. Absent = the dialect does. */
  readError?(status: number, headers: AnswerHeaders, body: string): GatewayError;
  traits(model: string): UpstreamTraits;
  /** Called when a call needs this provider; local engines start here. */
  wake?(): Promise<void>;
  /** The same provider as it serves one model, where each has an address of its own. */
  forModel?(model: string): Provider;
  /** Its models, where the config names them and the provider has no list; absent = the provider's list is read. */
  readonly ownModels?: readonly string[];
  /** False for a name that it cannot have; absent = any name may be a model of it. */
  mayHave?(model: string): boolean;
}

export interface Timeouts {
  readonly connectMs: number;
  /** Until the first event of a stream. */
  readonly firstEventMs: number;
  /** The same where the model reasons first (R7); absent = no other. */
  readonly reasoningMs?: number;
  /**
   * Until a document is complete: its first byte often is its last.
   * An answer that is streamed upstream has the limits of streams, whatever the client wants.
   */
  readonly documentMs: number;
  /** Between events. */
  readonly idleMs: number;
  readonly totalMs: number;
  /** Bytes a second that a stream must bring on average of `rateWindowMs`; absent = any. */
  readonly minBytesPerS?: number;
  readonly rateWindowMs?: number;
}

/** A model of a provider, reached with one of the provider's credentials. */
export interface Target {
  /** Its endpoints carry the credential. */
  readonly provider: Provider;
  /** The provider's own name of the model. */
  readonly model: string;
  readonly weight: number;
  readonly timeouts: Timeouts;
  /** Name of the credential; absent where the provider has no more than one. */
  readonly credential?: string;
  /** Why the provider is called by another API than its own, for the notes of a call; absent = it is not. */
  readonly otherApi?: string;
  /**
   * The same by the provider's own API, where the gateway chose another one that the server may not have. Absent =
   * the config chose, or the server is the vendor's own.
   */
  readonly byOwnApi?: Target;
}

/** Which target is tried first; the others follow when it fails (docs/user/routing.md). */
export const orders = ['listed', 'weighted', 'least-busy', 'fastest', 'cheapest'] as const;
export type RouteOrder = (typeof orders)[number];

export interface Route {
  /** The name that clients use. */
  readonly name: string;
  /** In the order of the config; of one with several credentials one for each, next to each other. */
  readonly targets: readonly Target[];
  readonly order: RouteOrder;
  /** A request that translation would change or drop parts of is refused. */
  readonly strict?: boolean;
  /** Prompts are marked for the upstream's cache where the client marks nothing; absent = they are not. */
  readonly cache?: 'auto';
  /** False: calls of one conversation need not go to the same target; absent = they do. */
  readonly affinity?: boolean;
  readonly retry?: RetryRules;
  /** When to send a second request in parallel to a slow first one; absent = never. */
  readonly hedge?: HedgeRule;
  /** The same route with targets by other APIs of their providers, for the calls that need those. */
  readonly byApi?: OtherApis;
}

/** Absent members: no target differs. */
export interface OtherApis {
  /** For calls with reasoning and tools, of any client. */
  readonly reasoningWithTools?: Route;
  /** For all calls of clients of a dialect: it is that of the other API. */
  readonly ofClient?: { readonly [D in DialectId]?: Route };
}

/** It pays for two requests to have the sooner answer (docs/user/routing.md). */
export interface HedgeRule {
  /** The time for the first event of the first request. Then a second request is sent. */
  readonly afterMs: number;
}

/** Where an operator departs from what is usual; absent members are as usual. */
export interface RetryRules {
  /** False: a request that was sent and not answered is not repeated, since it may be billed twice (R5). */
  readonly afterSent?: boolean;
  /** True: a prompt that is too long for one target is sent to the others (R3). */
  readonly contextOverflow?: boolean;
}

// Which public tokenizer counts a model's prompts, as data (providers/http-provider.ts has the rows).

export type Encoding = 'o200k_base' | 'cl100k_base';

/** How a vendor counts an image, by its published rule. */
export type ImageRule =
  /** Scaled to 2048 px, then to 768 px on the short side, then cut into tiles of 512 px. */
  | { readonly kind: 'tiles'; readonly base: number; readonly tile: number }
  /** Patches of 32 px, 1,536 at most, each worth `factor` tokens. */
  | { readonly kind: 'patches'; readonly factor: number };

export interface ModelTokenizer {
  readonly encoding: Encoding;
  readonly image: ImageRule;
  /** Tokens of a function's frame in the prompt: 7 with o200k, 10 before it. */
  readonly functionTokens: number;
}
