/** What a worker asks of the store, the answers and the counters of its parent; all of it is plain data. */
import type { AnswerStore } from '../store/answers.ts';
import type { ContentStore } from '../store/contents.ts';
import type { Balance, Draw, DrawResult, Drift, Spent, Used } from '../store/counters.ts';
import type { StoreOperations } from './store-calls.ts';

export type BookOperations = {
  readonly [K in keyof StoreOperations]: StoreOperations[K];
} & {
  readonly [K in keyof AnswerStore]: AnswerStore[K];
} & {
  readonly keepContents: ContentStore['keep'];
  readonly findContent: ContentStore['find'];
  readonly contentBytes: ContentStore['bytes'];
  readonly removeContents: ContentStore['remove'];
  readonly forgetContents: ContentStore['forget'];
  draw(draw: Draw): DrawResult | Promise<DrawResult>;
  settle(callId: string, used: Used): void;
  vacate(callId: string): void;
  balance(counter: string, window: string): Balance | Promise<Balance>;
  settledIn(
    windows: readonly Pick<Spent, 'counter' | 'window'>[],
  ): Promise<readonly number[] | undefined>;
  repair(drift: Drift): void | Promise<void>;
};
