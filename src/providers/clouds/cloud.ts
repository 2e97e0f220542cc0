/**
 * Providers whose address and credential are made of an operator's own names: one provider for each model, since model
 * and cloud decide together where a request goes and which dialect is spoken there.
 */
import type { CloudRules, CloudInput } from '../../core/cloud.ts';
import type { RequestCredential } from '../../core/credential.ts';
import type { Price } from '../../core/money.ts';
import type { NetworkWay, Provider, ProviderOptions } from '../../core/provider.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Secret } from '../../core/secret.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import type { ProviderRow } from '../compatible.ts';
import { Credentials } from '../credentials/credentials.ts';
import type { TokenSource } from '../credentials/token-cache.ts';
import {
  createHttpProvider,
  type HttpDialect,
  type HttpProviderOptions,
} from '../http-provider.ts';

/** Where requests for a model go. */
export interface ModelPlace extends Pick<
  HttpProviderOptions,
  | 'dialect'
  | 'baseUrl'
  | 'query'
  | 'paths'
  | 'keyHeader'
  | 'counted'
  | 'forwarded'
  | 'body'
  | 'answers'
> {
  /** Traits of this address. Traits of the model override them. */
  readonly traits?: Partial<UpstreamTraits>;
  /** Besides those of the config. */
  readonly headers?: ReadonlyMap<string, string>;
}

/** A cloud, as its row in the list of vendors has it. */
export interface Cloud extends CloudRules {
  /** Whether the environment alone makes a provider. */
  appears(env: CloudInput['env']): boolean;
  /** The address without paths; undefined where the names for it are missing. */
  address(input: CloudInput): string | undefined;
  /** The key of the environment and its variable. */
  key(env: CloudInput['env']): { readonly key: Secret; readonly variable: string } | undefined;
  /** The source of tokens; undefined if a key is used. */
  tokens(input: CloudInput, clock: Pick<Clock, 'wall'>): TokenSource | undefined;
  /** The signer of requests, instead of tokens and keys; absent = requests are not signed. */
  signer?(input: CloudInput, credentials: Credentials): RequestCredential | undefined;
  /** Ids of its price list that a name may mean under which the list has no model; absent = none. */
  listedAs?(model: string, ids: readonly string[]): readonly string[];
  /** The price of a model, by what its list says and leaves out; absent = that of the list. */
  priceOf?(input: CloudInput, model: string, price: Price): Price;
  /** Whether it can list its models; absent = the config names them. */
  listsModels?(input: CloudInput): boolean;
  /** Whether it can have a model of that name. */
  mayHave(model: string): boolean;
  /** @param model what runs under the name; absent = the list of models is requested */
  place(input: CloudInput, name: string, model: string | undefined): ModelPlace;
  /** The row whose traits hold for a model in its dialect. */
  rowOf(dialect: HttpDialect, model?: string): ProviderRow;
}

export interface CloudProviderOptions {
  readonly id: string;
  readonly cloud: Cloud;
  readonly input: CloudInput;
  /** Absent = that of the environment. */
  readonly apiKey?: Secret;
  readonly headers: ReadonlyMap<string, string>;
  readonly options?: ProviderOptions;
  readonly way?: NetworkWay;
  readonly credentials: Credentials;
}

const maxModels = 1000;

export function createCloudProvider(parts: CloudProviderOptions): Provider {
  const { id, cloud, input, headers, options, way, credentials } = parts;
  const deployments = input.declared.cloud.deployments ?? {};
  const tokens = cloud.tokens(input, credentials.clock);
  const credential: RequestCredential | undefined =
    cloud.signer?.(input, credentials) ?? (tokens && credentials.bearer(tokens));
  const apiKey = parts.apiKey ?? cloud.key(input.env)?.key;
  const modelOf = (name: string): string => {
    const named = deployments[name] ?? name;
    return cloud.modelOf?.(named) ?? named;
  };
  const at = (name: string, model: string | undefined): Provider => {
    const { traits, headers: own = [], ...place } = cloud.place(input, name, model);
    const row = cloud.rowOf(place.dialect, model);
    return createHttpProvider({
      id,
      ...place,
      headers: new Map([...headers, ...own]),
      modelOf,
      row: { ...row, traits: { ...row.traits, ...traits } },
      ...(credential === undefined && apiKey !== undefined ? { apiKey } : {}),
      ...(credential === undefined ? {} : { credential }),
      ...(options === undefined ? {} : { options }),
      ...(way === undefined ? {} : { way }),
    });
  };
  const whole = at('', undefined);
  const named = Object.keys(deployments);
  // If the operator names deployments, only those are listed.
  const lists = cloud.listsModels?.(input) === true && named.length === 0;
  // Names come from clients.
  const known = new Map<string, Provider>();
  return {
    ...whole,
    ...(lists ? {} : { ownModels: named }),
    mayHave: (name) => cloud.mayHave(name),
    forModel: (name) => {
      let provider = known.get(name);
      if (provider === undefined) {
        // The list of models belongs to the whole provider.
        const { models, moreModels = [] } = whole;
        provider = { ...at(name, modelOf(name)), models, moreModels };
        if (known.size >= maxModels) known.clear();
        known.set(name, provider);
      }
      return provider;
    },
  };
}

/** A description of the credential for people: `AZURE_OPENAI_API_KEY`, `managed identity`; never a value. */
export function credentialDescription(
  { cloud, input }: Pick<CloudProviderOptions, 'cloud' | 'input'>,
  clock: Clock,
): string {
  const signer = cloud.signer?.(input, new Credentials(clock));
  if (signer !== undefined) return signer.source;
  const tokens = cloud.tokens(input, clock);
  if (tokens !== undefined) return tokens.description;
  if (input.declared.hasKey) return 'key of the config';
  const found = cloud.key(input.env);
  return found === undefined ? 'none' : `env ${found.variable}`;
}
