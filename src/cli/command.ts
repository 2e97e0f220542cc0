/** What every command of the program is. */
import type { Json } from '../json/value.ts';
import type { Screen } from './screen.ts';

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What `--help` prints; ends with a line end. */
  readonly help: string;
  /** By name, where the first argument is an action. */
  readonly actions?: ReadonlyMap<string, { readonly help: string }>;
  /** The exit code. Errors go to stderr; a thrown error is printed by the caller, exit 1. */
  run(args: readonly string[], context: CommandContext): Promise<number>;
}

export interface CommandContext {
  stdout(text: string): void;
  stderr(text: string): void;
  /** Width of the terminal that stderr is; absent = it is none. */
  readonly terminalColumns?: number;
  /** What stdout is; absent = no terminal. */
  readonly screen?: Screen;
  /** The same of stderr. */
  readonly errorScreen?: Screen;
  readonly env: { readonly [name: string]: string | undefined };
  /** The admin API of the gateway that runs on the data directory, or of the directory itself. */
  admin(): Promise<AdminClient>;
  /** Where the data plane of the gateway on the data directory listens; undefined when none runs. */
  gatewayUrl(): Promise<string | undefined>;
}

export interface AdminReply {
  readonly status: number;
  /** The parsed answer; undefined when it was not JSON. */
  readonly body: Json | undefined;
}

/** The gateway, or the store, that a command acts on. */
export interface FoundGateway {
  /** Which one, for people: `Gateway http://127.0.0.1:8687, data in /srv/gw`. */
  readonly from: string;
  readonly client: AdminClient;
}

export interface AdminClient {
  /** The path includes the query string. Rejects only when no answer could be had. */
  request(method: string, path: string, body?: Json): Promise<AdminReply>;
}
