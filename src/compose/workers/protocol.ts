/** What a worker asks of the store and the counters of its parent; all of it is plain data. */
import type { Balance, Draw, DrawResult, Used } from '../../store/counters/counters.ts';
import type { PartName } from '../../store/remote.ts';

export type SessionOperations = {
  /** Calls a method of a part of the store. */
  store(part: PartName, method: string, args: readonly unknown[]): unknown;
  backup(path: string): Promise<void>;
  draw(draw: Draw): DrawResult | Promise<DrawResult>;
  settle(callId: string, used: Used): void;
  vacate(callId: string): void;
  balance(counter: string, window: string): Balance | Promise<Balance>;
};
