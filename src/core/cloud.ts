/** The operator's settings of a cloud: names instead of an address and a key (docs/operator/clouds.md). */
import type { Secret } from './secret.ts';

/** The keys of a provider of the config that only clouds have. */
export interface CloudSettings {
  /** Azure: the name of the resource, which is a part of its address. */
  readonly resource?: string;
  /** Azure: a date = the addresses before v1. */
  readonly apiVersion?: string;
  /** Azure: which model runs under the name of a deployment. */
  readonly deployments?: { readonly [name: string]: string };
  /** The kind of credential. */
  readonly auth?: CloudAuth;
  readonly tenantId?: string;
  readonly clientId?: string;
  readonly clientSecret?: Secret;
  readonly scope?: string;
  /** Google. */
  readonly project?: string;
  readonly location?: string;
  /** Google: path of a file of credentials. */
  readonly credentialsFile?: string;
  /** AWS: section of the shared files. */
  readonly profile?: string;
  readonly accessKeyId?: string;
  readonly secretAccessKey?: Secret;
  /** The session token of temporary keys. */
  readonly sessionToken?: Secret;
  /** Bedrock: an address for calls, instead of that of the region. */
  readonly endpoint?: string;
  /** The same for lists of models. */
  readonly controlEndpoint?: string;
  /** Bedrock: the API for Claude; absent = `invoke`. */
  readonly door?: 'invoke' | 'converse';
  /** Bedrock: `ID:VERSION`. */
  readonly guardrail?: string;
  readonly latency?: 'standard' | 'optimized';
  /** Bedrock: names and values that AWS logs with each call. */
  readonly requestMetadata?: { readonly [name: string]: string };
}

/** Ways of all clouds; `CloudRules.auth` has those of one. */
export const cloudAuths = [
  'api_key',
  'entra',
  'managed_identity',
  'file',
  'metadata',
  'bearer',
  'keys',
  'profile',
  'web_identity',
  'container',
  'instance',
] as const;
export type CloudAuth = (typeof cloudAuths)[number];

/** A provider of the config as far as a cloud examines it. */
export interface CloudDeclaration {
  readonly dialect?: string;
  readonly baseUrl?: string;
  /** It names a key, or several. */
  readonly hasKey: boolean;
  /** It names headers, which may be a credential. */
  readonly hasHeaders: boolean;
  /** `region` of the provider. */
  readonly region?: string;
  readonly cloud: CloudSettings;
}

export type Environment = { readonly [name: string]: string | undefined };

/** A declaration together with the variables that complete it. */
export interface CloudInput {
  readonly declared: CloudDeclaration;
  readonly env: Environment;
}

/** A problem of a declaration, as a text that follows the name of the key. */
export interface CloudProblem {
  /** As the file spells it; absent = the provider as a whole. */
  readonly key?: string;
  readonly message: string;
  /** Another environment may have what is missing. */
  readonly unresolved?: true;
}

/** The rules of a cloud that the configuration needs. */
export interface CloudRules {
  /** Its keys, as the file spells them. */
  readonly keys: readonly string[];
  /** Values of `auth`. */
  readonly auth: readonly string[];
  /** Empty where the provider can be made. */
  problems(input: CloudInput): readonly CloudProblem[];
  /** The model that a name contains; absent = the name itself. */
  modelOf?(name: string): string;
  /** The dialect of a model. @param name the cloud's name of the model */
  place(input: CloudInput, name: string, model: string): { readonly dialect: string };
  /** Models that speak chat completions also speak the Responses API. */
  readonly responses?: true;
}
