/** What parsing in steps works with. */
import type { Json } from './conversation.ts';
import type { Lanes } from './lanes.ts';

/** `JSON.parse`, with an eye on long numbers where there are any. @throws SyntaxError */
export type ParseText = (text: string, longNumbers: boolean) => Json;

/** How much is done at once. */
export interface StepSizes {
  readonly bytes: number;
  readonly tokens: number;
  /** A group of siblings is parsed when it has either. */
  readonly groupBytes: number;
  readonly groupTokens: number;
  /** A string that is longer is parsed in pieces of it; no fewer than some escapes. */
  readonly stringBytes: number;
}

/** Some milliseconds each; keys cost the most, five microseconds. */
export const usualSizes: StepSizes = {
  bytes: 1024 * 1024,
  tokens: 4000,
  groupBytes: 256 * 1024,
  groupTokens: 2000,
  stringBytes: 1024 * 1024,
};

export interface StepParts {
  readonly parse: ParseText;
  readonly sizes?: StepSizes;
  /** Told before each step how many tokens there are by then; what it throws is thrown. */
  readonly room?: ((tokens: number) => void) | undefined;
  /** Entered once there are many values, for the rest of them. */
  readonly crowded?: Lanes;
}
