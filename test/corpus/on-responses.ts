/** What samples of chat and messages requests show at responses upstreams, beside what the rows say themselves. */
import type { Shown } from './sample.ts';

/** A model that takes sampling parameters, and does not think. */
const tunable: Shown = { behind: 'openai-responses/gpt-4.1' };
/** A server that nothing is known of. */
const unknown: Shown = { behind: 'up-responses/corpus' };
const searching: Shown = { behind: 'generous-responses/gpt-5.6' };

export const onResponses: {
  readonly [D in 'chat' | 'messages']: { readonly [row: string]: Shown };
} = {
  chat: {
    'temperature (0 to 1)': tunable,
    'temperature (above 1)': tunable,
    'top_p (tunable model)': tunable,
    'reasoning_effort (model that does not think)': tunable,
    'reasoning_effort (minimal)': { behind: 'openai-responses/gpt-5' },
    'web_search_options (provider or route with server_tools)': searching,
    'web_search_options.search_context_size (low, high)': searching,
  },
  messages: {
    'temperature (tunable model)': tunable,
    'top_p (tunable model)': tunable,
    'thinking[enabled].budget_tokens (below)': { behind: 'openai-responses/gpt-5' },
    'service_tier (other upstreams)': unknown,
    'speed (fast, other upstreams)': unknown,
    "inference_geo (global, or the provider's region)": searching,
    'messages[system] (upstream that does not)': unknown,
    'messages[].content[document].source[content].content': {
      named: 'messages[].content[document]',
    },
    ...Object.fromEntries(
      ['20250305', '20260209', '20260318'].map((version) => [
        `tools[web_search_${version}] (provider or route with server_tools)`,
        { ...searching, noted: [`tools[web_search_${version}]`] },
      ]),
    ),
  },
};
