/** Checks and values that all clouds share: of a declaration, of the environment and of the makers of models. */
import type { CloudInput, Environment } from '../../core/cloud.ts';
import { type Price, withRates } from '../../core/money.ts';
import { Secret } from '../../core/secret.ts';
import { isLoopback } from '../credentials/token-request.ts';
import type { ProviderRow } from '../compatible.ts';
import type { DeclaredProvider } from '../registry.ts';
import type { Cloud } from './cloud.ts';

/**
 * The row of a maker whose dialect and traits hold at a cloud, without the variables of the maker's own address and
 * key.
 */
export function makerRow(vendors: readonly ProviderRow[], maker: string): ProviderRow {
  const found = vendors.find(({ id }) => id === maker);
  if (found === undefined) throw new Error(`No provider row has the id ${maker}.`);
  const { baseUrlVariable: _, keyVariable: __, ...row } = found;
  return row;
}

/** A declaration as its cloud looks at it. */
export function cloudInput(declared: Omit<DeclaredProvider, 'id'>, env: Environment): CloudInput {
  const { dialect, baseUrl, apiKey, credentials, headers, cloud = {}, options = {} } = declared;
  const { region } = options;
  return {
    env,
    declared: {
      cloud,
      hasKey: apiKey !== undefined || credentials !== undefined,
      hasHeaders: headers.size > 0,
      ...(dialect === undefined ? {} : { dialect }),
      ...(baseUrl === undefined ? {} : { baseUrl }),
      ...(region === undefined ? {} : { region }),
    },
  };
}

/**
 * The price of Claude at a cloud. Lists of the clouds have one rate for what is written to a cache; what is kept for an
 * hour costs twice the input, as at Anthropic.
 */
export function claudePrice(price: Price): Price {
  return withRates(price, (rates) =>
    rates.cacheWrite === undefined ? rates : { cacheWriteLong: rates.input * 2, ...rates },
  );
}

/** The value of a variable; an empty one counts as not set. */
export function set(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}

/** The input of a provider that no config declares. */
export function alone(env: Environment): CloudInput {
  return { declared: { hasKey: false, hasHeaders: false, cloud: {} }, env };
}

/** The key of the first variable that is set. */
export function keyOf(env: Environment, variables: readonly string[]): ReturnType<Cloud['key']> {
  const variable = variables.find((name) => set(env, name) !== undefined);
  return variable === undefined ? undefined : { key: new Secret(env[variable] ?? ''), variable };
}

/** The error for an unsafe address. The address is not quoted, since it may contain a secret. */
export const notSafe = 'is neither an https:// address nor one of this machine';

/** Whether a credential may go there. */
export function isSafe(address: string): boolean {
  const url = URL.parse(address);
  return url !== null && (url.protocol === 'https:' || isLoopback(url));
}
