/** The flags by which every command finds its gateway: those of `start` that say where things lie. */
import { UsageError } from './arguments.ts';

/** Each with the variable that says the same. */
const variables: ReadonlyMap<string, string> = new Map([
  ['--data-dir', 'MODEL_GATEWAY_DATA_DIR'],
  ['--config', 'MODEL_GATEWAY_CONFIG'],
  ['--storage', 'MODEL_GATEWAY_STORAGE'],
  ['--admin-listen', 'MODEL_GATEWAY_ADMIN_LISTEN'],
]);

export const gatewayFlags: readonly string[] = [...variables.keys()];

export interface GatewayFlags {
  /** What is left for the command. */
  readonly args: readonly string[];
  /** What was said, as variables of the environment. */
  readonly env: { readonly [name: string]: string };
}

/** @throws UsageError for one of them without a value. */
export function readGatewayFlags(args: readonly string[]): GatewayFlags {
  const rest: string[] = [];
  const env: { [name: string]: string } = {};
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    const equalsAt = arg.indexOf('=');
    const name = equalsAt === -1 ? arg : arg.slice(0, equalsAt);
    const variable = variables.get(name);
    if (variable === undefined) {
      rest.push(arg);
      continue;
    }
    const value = equalsAt === -1 ? args[++i] : arg.slice(equalsAt + 1);
    if (value === undefined || value === '' || value.startsWith('--')) {
      throw new UsageError(`${name} needs a value.`);
    }
    env[variable] = value;
  }
  return { args: rest, env };
}
