/** Rows that need more than one request to be shown, and the test that shows them. */
import type { Dialect } from '../support/reading.ts';

export const shownElsewhere: { readonly [D in Dialect]: { readonly [row: string]: string } } = {
  chat: {},
  messages: {
    'messages[].content[thinking] (written by a model like the one behind)':
      'test/contract/reasoning-and-finish.test.ts',
    'messages[].content[redacted_thinking] (written by a model like the one behind)':
      'test/contract/reasoning-and-finish.test.ts',
  },
};
