/** `version`: what runs here. */
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
    run: (args, context) => {
      const unknown = args.find((arg) => arg !== '--json' && arg !== '--help' && arg !== '-h');
      if (unknown !== undefined) {
        context.stderr(`${unknown}: unexpected argument\n`);
        return Promise.resolve(1);
      }
      if (args.includes('--help') || args.includes('-h')) context.stdout(help);
      else if (args.includes('--json')) context.stdout(`${JSON.stringify({ version, node })}\n`);
      else context.stdout(`model-gateway ${version}\nnode ${node}\n`);
      return Promise.resolve(0);
    },
  };
}
