/**
 * The Gemini API: each model has an address of its own, and one more for streams. A provider of any name with `like: gemini`
 * is one, too (docs/operator/clouds.md).
 */
import type { CloudProblem, CloudInput } from '../../core/cloud.ts';
import type { ProviderRow } from '../compatible.ts';
import type { Cloud } from './cloud.ts';
import { isSafe, keyOf, notSafe, set } from './declaration.ts';

const host = 'https://generativelanguage.googleapis.com';
const version = '/v1beta';
/** The first that is set. */
const keyVariables = ['GEMINI_API_KEY', 'GOOGLE_API_KEY'] as const;
/** An address without version, as Google's SDK reads it. */
const addressVariable = 'GOOGLE_GEMINI_BASE_URL';

export const geminiRow: ProviderRow = {
  id: 'gemini',
  telemetry: 'gcp.gemini',
  dialect: 'gemini',
  baseUrl: `${host}${version}`,
  keyVariable: keyVariables[0],
  keyPrefix: 'AIza',
  prices: 'google',
  traits: { callIds: true, serviceTiers: true },
  modelTraits: (model) =>
    /gemini-[12](\D|$)|gemma/.test(model) ? {} : { searchBesideTools: true },
  cloud: {
    keys: [],
    auth: [],
    problems: problemsOf,
    appears: (env) => keyOf(env, keyVariables) !== undefined,
    address: addressOf,
    key: (env) => keyOf(env, keyVariables),
    tokens: () => undefined,
    listsModels: () => true,
    mayHave: (model) => isSegment(bareName(model)),
    place: (input, name, model) => {
      const base = addressOf(input);
      const place = { dialect: 'gemini', baseUrl: base } as const;
      if (model === undefined) return place;
      const path = name.startsWith(tuned) ? tuned : 'models/';
      const resource = path + bareName(name);
      const segment = encodeURIComponent(bareName(name));
      return { ...place, baseUrl: `${base}/${path}${segment}`, counted: resource };
    },
    rowOf: () => geminiRow,
  } satisfies Cloud,
};

const tuned = 'tunedModels/';

/** Lists call a model `models/NAME`. */
function bareName(model: string): string {
  return model.replace(/^(models|tunedModels)\//, '');
}

/** One segment of a path, however it is written. */
function isSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\\;:?#]|%2f|%5c/i.test(name);
}

function addressOf({ declared, env }: CloudInput): string {
  const variable = env[addressVariable] ?? '';
  const address = variable === '' ? `${host}${version}` : withVersion(variable);
  return withoutSlash(declared.baseUrl ?? address);
}

function withVersion(address: string): string {
  const base = withoutSlash(address);
  return /\/v\d\w{0,20}$/.test(base) ? base : `${base}${version}`;
}

function withoutSlash(address: string): string {
  return address.replace(/\/$/, '');
}

function problemsOf(input: CloudInput): readonly CloudProblem[] {
  const { declared, env } = input;
  const found: CloudProblem[] = [];
  if (declared.dialect !== undefined) {
    const message =
      'does not apply here: gemini-compatible is the provider that speaks openai-chat';
    found.push({ key: 'dialect', message });
  }
  const address = addressProblem(input);
  if (address !== undefined) found.push(address);
  const may = declared.hasKey || declared.hasHeaders || declared.baseUrl !== undefined;
  if (!may && keyOf(env, keyVariables) === undefined && set(env, addressVariable) === undefined) {
    const message = `has no key: set ${keyVariables.join(' or ')}, or api_key`;
    found.push({ message, unresolved: true });
  }
  return found;
}

function addressProblem(input: CloudInput): CloudProblem | undefined {
  const { baseUrl } = input.declared;
  const address = addressOf(input);
  const of = (message: string): CloudProblem =>
    baseUrl === undefined
      ? { message: `${addressVariable} ${message}` }
      : { key: 'base_url', message };
  if (address.endsWith('/openai')) {
    return of('is the address of chat completions: gemini-compatible is the provider for it');
  }
  const named = baseUrl !== undefined && /^https?:$/.test(URL.parse(address)?.protocol ?? '');
  return named || isSafe(address) ? undefined : of(notSafe);
}
