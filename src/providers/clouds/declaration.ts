/** Checks and values that all clouds share: of a declaration, of the environment and of the makers of models. */
import type { CloudInput, Environment } from '../../core/cloud.ts';
import { Secret } from '../../core/secret.ts';
import { isLoopback } from '../credentials/token-request.ts';
import type { ProviderRow } from '../compatible.ts';
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
