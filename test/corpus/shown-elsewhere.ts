/** Rows that need more than one request to be shown, and the test that shows them. */
import type { AnyDialect } from '../support/reading.ts';

const kept = 'test/contract/stored-responses.test.ts';

export const shownElsewhere: { readonly [D in AnyDialect]: { readonly [row: string]: string } } = {
  chat: {},
  messages: {
    'messages[].content[thinking] (written by a model like the one behind)':
      'test/two-turn/two-turn.test.ts',
    'messages[].content[redacted_thinking] (written by a model like the one behind)':
      'test/two-turn/two-turn.test.ts',
  },
  responses: {
    previous_response_id: kept,
    'input[item_reference]': kept,
    'input[reasoning] (sealed by the gateway for the provider asked)':
      'test/two-turn/two-turn.test.ts',
  },
};

const rounds = 'test/corpus/pause-turn.test.ts';
const neverSent = 'the types allow it; no server sends it';

/** The same for rows of answers. */
export const answersShownElsewhere: {
  readonly [D in AnyDialect]: { readonly [row: string]: string };
} = {
  chat: {
    'choices.delta.tool_calls[function].custom.name': neverSent,
    'choices.delta.tool_calls[function].custom.input': neverSent,
    'choices.delta.tool_calls[custom].function.name': neverSent,
    'choices.delta.tool_calls[custom].function.arguments': neverSent,
  },
  messages: {
    'stop_reason (pause_turn)': rounds,
    'message_delta.delta.stop_reason (pause_turn)': rounds,
    ...Object.fromEntries(
      ['web_search_result', 'search_result', 'char', 'page', 'content_block'].map((kind) => [
        `content_block_start.content_block[text].citations[${kind}_location]`,
        neverSent,
      ]),
    ),
  },
  responses: Object.fromEntries(
    [
      ...['failed', 'cancelled', 'queued', 'in_progress'].map((status) => `status (${status})`),
      'error',
      'response_failed',
    ].map((row) => [row, 'test/unit/openai-responses/stream-read.test.ts']),
  ),
};
