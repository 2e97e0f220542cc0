/** `version`: what runs here. */
import { readArguments, withUsage } from './arguments.ts';
import type { Command } from './command.ts';

export interface Versions {
  /** Of the package. */
  readonly version: string;
  /** `process.version` of the Node that runs it. */
  readonly node: string;
}

const help = `Usage: model-gateway version [--json]

Prints the version of the gateway and of Node.
`;

export function versionCommand({ version, node }: Versions): Command {
  return {
    name: 'version',
    summary: 'print the version',
    help,
    run: (args, context) =>
      withUsage(context, 'version', () => {
        const given = readArguments(args, { switches: ['json'] });
        if (given.has('help')) context.stdout(help);
        else if (given.has('json')) context.stdout(`${JSON.stringify({ version, node })}\n`);
        else context.stdout(`model-gateway ${version}\nnode ${node}\n`);
        return Promise.resolve(0);
      }),
  };
}
