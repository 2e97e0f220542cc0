/** The options with which a gateway is started, and the handle that its owner gets. */
import { readFileSync } from 'node:fs';
import type { ReloadOutcome } from '../admin/handler.ts';
import type { Flags } from '../config/base.ts';
import type { Settings } from '../config/settings.ts';
import type { LoadSource } from '../http/overload/load.ts';
import { tryParseObject } from '../json/parse.ts';

export interface StartOptions {
  readonly flags?: Flags;
  /** Replaces the process environment. */
  readonly env?: Environment;
  readonly cwd?: string;
  /** Replaces `Math.random` in waits and weights. */
  readonly random?: () => number;
  /** Replaces what the process says of its memory and its event loop. */
  readonly load?: LoadSource;
  /** False = credentials of clouds are fetched by the first call. Default: at the start. */
  readonly fetchesCredentials?: boolean;
  /** Runs when all is loaded, before the ports are open. */
  readonly beforeListening?: () => void;
  /**
   * Shows a person what has started, new secrets included. Log lines of the start come after it. Default: the caller
   * reads them from the gateway.
   */
  readonly announce?: (gateway: RunningGateway) => void;
}

export type Environment = { readonly [name: string]: string | undefined };

export interface StopWay {
  readonly announced: boolean;
  /** Why, for the log: `SIGTERM`. */
  readonly reason?: string;
}

export interface RunningGateway {
  /** Of the data plane, without `/v1`. */
  readonly url: string;
  readonly adminUrl: string;
  readonly settings: Settings;
  /** Ids of the providers that are there, the embedded engine included. */
  readonly providers: readonly string[];
  /** The key and the admin token, when this start made them; never shown again. */
  readonly newKey?: string;
  readonly newAdminToken?: string;
  /** Reads the settings again and applies them as a whole, or says why not and keeps the old. */
  reload(): Promise<ReloadOutcome>;
  /**
   * Refuses new work, waits for running calls (G14), settles, flushes, closes. `announced`: before that
   * it continues serving while /readyz says no, as `drain.wait` says, so that balancers can turn away.
   */
  stop(how?: StopWay): Promise<void>;
  /** Calls that run now. */
  runningCalls(): Promise<number>;
  /** Replaces the workers one after another while calls continue; resolves when those that ran are gone. Never rejects. */
  renew(): Promise<void>;
  /** Ends running calls at once; `stop` then has nothing to wait for. */
  cut(): void;
}

// The version of this program, from its package file.

function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const found = tryParseObject(text)?.['version'];
  return typeof found === 'string' ? found : 'unknown';
}

export const version = readVersion();
