/** Part of the composition root: what guards the data plane from too much at once. */
import type { Server } from 'node:http';
import type { LimitSettings } from '../config/settings.ts';
import type { Clock, Log } from '../core/runtime.ts';
import type { Sweeper } from '../gateway/sweeper.ts';
import { capConnections, connectionsOfProcess } from '../server/overload/connection-cap.ts';
import {
  collectGarbage,
  heapOfProcess,
  memoryOfProcess,
  type LoadSource,
} from '../server/overload/load.ts';
import { Overload } from '../server/overload/overload.ts';

export interface OverloadOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** The current ones: a reload changes them. */
  readonly limits: () => LimitSettings;
  readonly load: LoadSource;
  readonly sweeper: Sweeper;
  /** Told of each change of the pressure, besides the log. */
  readonly changed?: (step: number, facts: { readonly [name: string]: number }) => void;
}

/** It looks at nothing until it is started. */
export function createOverload({ sweeper, ...options }: OverloadOptions): Overload {
  return new Overload({
    ...options,
    slowReaders: sweeper,
    memory: { process: memoryOfProcess(), heap: heapOfProcess() },
    collectGarbage,
  });
}

/** Holds the data plane's listener to its connections. */
export function guardConnections(server: Server, limits: () => LimitSettings): void {
  const usual = connectionsOfProcess();
  capConnections(server, () => limits().connections ?? usual);
}
