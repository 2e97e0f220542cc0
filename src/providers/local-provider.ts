/** The embedded engine as a provider: how its models are called, whichever process runs them. */
import type { UpstreamDialect } from '../core/dialect.ts';
import type { Endpoint, Provider } from '../core/provider.ts';
import { chatTraits, type UpstreamTraits } from '../core/traits.ts';
import type { LocalModelFile } from '../local-models/model-file.ts';
import { plainCounter } from './http-provider.ts';

interface LocalProviderParts {
  readonly dialect: UpstreamDialect;
  /** Where its engine listens when it is asked. */
  readonly socketPath: () => string;
  /** Undefined for a model that is not there. */
  readonly traits: (model: string) => UpstreamTraits | undefined;
  /** Resolves when it can be called. @throws GatewayError */
  readonly wake: () => Promise<void>;
}

export function localProvider({ dialect, socketPath, traits, wake }: LocalProviderParts): Provider {
  const endpoint = (path: string): Endpoint => ({
    origin: 'http://engine',
    path,
    // Where a call goes is settled when it is sent: the engine may be another one by then.
    get socketPath() {
      return socketPath();
    },
    headers: ['content-type', 'application/json'],
  });
  return {
    id: 'local',
    dialect,
    generate: endpoint('/v1/chat/completions'),
    models: endpoint('/v1/models'),
    counter: plainCounter(endpoint('/v1/count_tokens'), 'prompt_tokens'),
    forwardedHeaders: [],
    traits: (model) => traits(model) ?? localTraits,
    wake,
  };
}

const localTraits: UpstreamTraits = {
  ...chatTraits,
  topK: true,
  stopMax: undefined,
  imageInput: 'none',
  fileInput: false,
  responseFormat: 'schema',
  reasoningControl: 'none',
  efforts: [],
  endUserField: undefined,
  prefill: true,
};

/** What a template does not know the engine refuses, so it is not said there, and noted here. */
export function localTraitsOf({ reasoning, reasoningLevels }: LocalModelFile): UpstreamTraits {
  if (reasoning === undefined) return localTraits;
  const efforts = reasoningLevels === true ? levels : [];
  const replayed = { ...localTraits, reasoningReplay: true, efforts };
  if (reasoning === 'switchable') return { ...replayed, reasoningControl: 'template' };
  return {
    ...replayed,
    thinkingOff: 'never',
    reasoningControl: reasoningLevels === true ? 'effort' : 'none',
  };
}

const levels: UpstreamTraits['efforts'] = ['low', 'medium', 'high'];
