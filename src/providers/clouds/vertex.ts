/**
 * Vertex AI: an address for each project and location, and for the models of each maker a path and a dialect of their
 * own (docs/operator/clouds.md).
 */
import type { CloudProblem, CloudInput } from '../../core/cloud.ts';
import { atPercent, type Price } from '../../core/money.ts';
import type { ForwardedHeader } from '../../core/provider.ts';
import type { ProviderRow } from '../compatible.ts';
import {
  googleFile,
  googleFileTokens,
  googleMachineTokens,
  metadataProblem,
} from '../credentials/google.ts';
import { hostedModelTraits } from '../model-traits.ts';
import type { Cloud, ModelPlace } from './cloud.ts';
import { claudePrice, isSafe, keyOf, makerRow, notSafe, set } from './declaration.ts';

const keyVariable = 'GOOGLE_VERTEX_API_KEY';

/** `open`: models of other makers, which speak OpenAI's API. */
type Maker = 'anthropic' | 'mistralai' | 'google' | 'open';
type Rows = { readonly [M in Maker]: ProviderRow };

/** @param vendors the rows of the makers whose dialects and traits hold there */
export function vertexRow(vendors: readonly ProviderRow[]): ProviderRow {
  const as = (id: string, more: Partial<ProviderRow> = {}): ProviderRow => {
    const { messages: _, responses: __, ...row } = makerRow(vendors, id);
    return { ...row, id: 'vertex', telemetry: 'gcp.vertex_ai', prices: 'google', ...more };
  };
  const { traits } = as('anthropic');
  const rows: Rows = {
    // Media only as data. The older spelling of an output format is not supported.
    anthropic: as('anthropic', {
      traits: {
        ...traits,
        cacheScopes: false,
        imageInput: 'base64',
        skippedFields: ['output_format'],
      },
    }),
    mistralai: as('mistral'),
    google: {
      id: 'vertex',
      telemetry: 'gcp.vertex_ai',
      prices: 'google',
      dialect: 'gemini',
      baseUrl: 'https://aiplatform.googleapis.com',
    },
    open: as('gemini-compatible', {
      traits: {},
      modelTraits: (model) => hostedModelTraits(model.slice(model.indexOf('/') + 1)),
    }),
  };
  return { ...rows.google, cloud: cloudOf(rows) };
}

function cloudOf(rows: Rows): Cloud {
  return {
    keys: ['project', 'location', 'credentials', 'auth', 'deployments'],
    auth: ['file', 'metadata', 'api_key'],
    problems: problemsOf,
    // A project in the environment may belong to another use.
    appears: () => false,
    address: hostOf,
    key: (env) => keyOf(env, [keyVariable]),
    tokens: (input, clock) => {
      const { declared, env } = input;
      if (isExpress(input)) return undefined;
      if (declared.cloud.auth === 'metadata') return googleMachineTokens(env, clock);
      return googleFileTokens(googleFile(declared.cloud, env) ?? '', clock);
    },
    listsModels: (input) => !isExpress(input),
    priceOf,
    mayHave: (called) => modelOf(called) !== undefined,
    place: (input, called, model) => (model === undefined ? listOf(input) : placeOf(input, called)),
    rowOf: (_, called) => rows[modelOf(called ?? '')?.maker ?? 'google'],
  };
}

/** The model of a client's name. Undefined for an invalid name, since it becomes a part of a path. */
function modelOf(called: string): { readonly maker: Maker; readonly name: string } | undefined {
  const name = called.replace(
    /^(publishers\/)?(anthropic|mistralai|google)\/(models\/)?|^models\//,
    '',
  );
  if (!/^[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)?(@[\w.-]+)?$/.test(name)) return undefined;
  // A tuned model of Google's.
  if (name.startsWith('endpoints/')) return { maker: 'google', name };
  if (name.includes('/')) return { maker: 'open', name };
  // The first-party names of Claude have their date after a dash.
  if (name.startsWith('claude')) {
    return { maker: 'anthropic', name: name.replace(/-(20\d{6})$/, '@$1') };
  }
  const mistral = /^(mi|ma|code|mini|pix|dev)stral/.test(name);
  return { maker: mistral ? 'mistralai' : 'google', name };
}

/** The API version is always sent, in the body. Vertex has its own version in place of the default of Anthropic's API. */
const version: ForwardedHeader = {
  name: 'anthropic-version',
  otherwise: '2023-06-01',
  member: (value = '2023-06-01') => ({
    anthropic_version: value === '2023-06-01' ? 'vertex-2023-10-16' : value,
  }),
};

/** Express mode: a key instead of project, location and tokens; for Google's own models only. */
function isExpress({ declared: { cloud, hasKey } }: CloudInput): boolean {
  return cloud.auth === undefined ? hasKey : cloud.auth === 'api_key';
}

function placeOf(input: CloudInput, called: string): ModelPlace {
  const place = `/projects/${projectOf(input) ?? ''}/locations/${locationOf(input)}`;
  const base = `${hostOf(input)}/v1${isExpress(input) ? '' : place}`;
  const { maker, name } = modelOf(called) ?? { maker: 'google', name: called };
  const [undated = name] = name.split('@');
  const raw = { generate: `/${name}:rawPredict`, stream: `/${name}:streamRawPredict` };
  if (maker === 'anthropic') {
    return {
      dialect: 'anthropic-messages',
      baseUrl: `${base}/publishers/anthropic/models`,
      paths: { ...raw, count: '/count-tokens:rawPredict' },
      // Counts have the model in the body.
      body: { inAddress: ['model'], model: name.replace(/@(default|latest)$/, '') },
      forwarded: [version, { name: 'anthropic-beta' }],
    };
  }
  if (maker === 'mistralai') {
    const baseUrl = `${base}/publishers/mistralai/models`;
    return { dialect: 'openai-chat', baseUrl, paths: raw, body: { model: undated } };
  }
  if (maker === 'google') {
    const path = name.startsWith('endpoints/') ? name : `publishers/google/models/${name}`;
    return { dialect: 'gemini', baseUrl: `${base}/${path}` };
  }
  const baseUrl = `${base}/endpoints/openapi`;
  return { dialect: 'openai-chat', baseUrl, body: { model: name } };
}

/** The list of Google's own models. Other models have no list. */
function listOf(input: CloudInput): ModelPlace {
  const models = '/v1beta1/publishers/google/models?pageSize=1000';
  return { dialect: 'gemini', baseUrl: hostOf(input), paths: { generate: '', models } };
}

/** From Claude Sonnet 4.5 on, only the location `global` has the list price: others cost a tenth more. */
function priceOf(input: CloudInput, called: string, listed: Price): Price {
  const { maker, name } = modelOf(called) ?? {};
  if (maker !== 'anthropic' || name === undefined) return listed;
  const price = claudePrice(listed);
  const isOld = /^claude-(?:3|(?:opus|sonnet)-4(?:-1)?(?:$|@|-20))/.test(name);
  return isOld || locationOf(input) === 'global' ? price : atPercent(price, 110);
}

function projectOf({ declared, env }: CloudInput): string | undefined {
  return declared.cloud.project ?? env['GOOGLE_CLOUD_PROJECT'];
}

function locationOf({ declared, env }: CloudInput): string {
  return declared.cloud.location ?? set(env, 'GOOGLE_CLOUD_LOCATION') ?? 'global';
}

/** The address without paths. */
function hostOf(input: CloudInput): string {
  const { declared, env } = input;
  const named = declared.baseUrl ?? env['GOOGLE_VERTEX_BASE_URL'] ?? '';
  if (named !== '') return named.replace(/\/+$/, '');
  const location = isExpress(input) ? 'global' : locationOf(input);
  if (location === 'global') return 'https://aiplatform.googleapis.com';
  // Multi-region locations have hosts of another form.
  const several = location === 'us' || location === 'eu';
  return several
    ? `https://aiplatform.${location}.rep.googleapis.com`
    : `https://${location}-aiplatform.googleapis.com`;
}

function problemsOf(input: CloudInput): readonly CloudProblem[] {
  const { baseUrl, dialect } = input.declared;
  const found: CloudProblem[] = [];
  if (dialect !== undefined) {
    found.push({ key: 'dialect', message: 'does not apply here: the model decides' });
  }
  if (!isExpress(input) && (projectOf(input) ?? '') === '') {
    found.push({ message: 'needs project (or GOOGLE_CLOUD_PROJECT)' });
  }
  if (!isSafe(hostOf(input))) {
    if (baseUrl === undefined) found.push({ message: `GOOGLE_VERTEX_BASE_URL ${notSafe}` });
    else found.push({ key: 'base_url', message: notSafe });
  }
  for (const [name, model] of Object.entries(input.declared.cloud.deployments ?? {})) {
    const maker = modelOf(name)?.maker;
    if (maker !== undefined && maker === modelOf(model)?.maker) continue;
    found.push({ key: 'deployments', message: `"${name}" cannot be a model such as "${model}"` });
  }
  const credential = credentialProblem(input);
  return credential === undefined ? found : [...found, { key: 'auth', message: credential }];
}

function credentialProblem({ declared: { cloud, hasKey }, env }: CloudInput): string | undefined {
  const { auth = hasKey ? 'api_key' : 'file', credentialsFile } = cloud;
  if (hasKey && (auth !== 'api_key' || credentialsFile !== undefined)) {
    return 'cannot be combined with api_key: use one of them';
  }
  if (auth === 'api_key') {
    return hasKey || set(env, keyVariable) !== undefined
      ? undefined
      : `has no key: set ${keyVariable} or api_key`;
  }
  if (auth === 'metadata') {
    if (credentialsFile === undefined) return metadataProblem(env);
    return 'metadata cannot be combined with credentials: use one of them';
  }
  if (googleFile(cloud, env) !== undefined) return undefined;
  return 'has no credentials: set credentials or GOOGLE_APPLICATION_CREDENTIALS, log in with "gcloud auth application-default login", or set auth: metadata';
}
