/** A messages request on the way to a chat upstream (translation.md §2, §4.2, §8). */
import type * as Sdk0 from '@anthropic-ai/sdk-0/resources/messages/messages';
import type * as Beta from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type * as Stable from '@anthropic-ai/sdk/resources/messages/messages';
import {
  approx,
  byCase,
  exact,
  holder,
  ignore,
  near,
  reject,
  warn,
  type AnyEntry,
  type Fields,
} from './decision.ts';
import { messagesBlocks } from './messages-blocks.ts';
import { messagesToolChoice, messagesTools } from './messages-tools.ts';

type Params =
  | Beta.MessageCreateParamsBase
  | Beta.MessageCountTokensParams
  | Stable.MessageCreateParamsBase
  | Stable.MessageCountTokensParams;

const { text, tool_addition, tool_removal } = messagesBlocks;

const display = byCase({
  'summarized, updates': ignore('the model decides'),
  omitted: exact('', 'the gateway omits the text'),
});
const binding = warn('a check of signatures, which only messages models make');

const jsonSchema = {
  ...exact('response_format'),
  in: {
    type: exact('response_format.type'),
    schema: byCase({
      'every property is required': exact('response_format.json_schema.schema'),
      'some are optional': approx('response_format.json_schema.schema', 'with strict: false'),
      'upstream that enforces none': approx(
        'response_format, system',
        'json_object, and the schema in the instructions',
      ),
    }),
  },
} as const;

const untunable = warn('the model refuses sampling parameters');
const notKnown = warn('no such field there');

export const messagesRequest = {
  model: exact('model', "the route's model; the answer shows the name that the client used"),
  messages: {
    ...exact('messages'),
    one: {
      user: {
        ...exact('user message, tool messages'),
        in: { content: { ...exact('content'), one: messagesBlocks } },
      },
      assistant: {
        ...exact('assistant message'),
        in: { content: { ...exact('content'), one: messagesBlocks } },
      },
      system: {
        ...byCase({
          'upstream that takes instructions anywhere': exact(
            'system message',
            'keeps its position',
          ),
          'upstream that does not': approx(
            'user message',
            'before the first answer: first; later: in a user message, marked as <system>',
          ),
        }),
        in: {
          content: { ...exact('content'), one: { text, tool_addition, tool_removal } },
          clear_at: byCase({
            never: ignore('the default'),
            next_user_message: warn('it is never cleared'),
          }),
          output_config: {
            ...holder,
            in: { effort: exact('reasoning_effort', 'the last one set applies') },
          },
        },
      },
    },
  },
  max_tokens: byCase({
    'above 0': exact('max_completion_tokens or max_tokens'),
    '0': warn('no cache to warm: an empty answer without a model call'),
  }),
  system: {
    ...exact('system or developer message'),
    in: {
      type: exact('type'),
      text: exact('content'),
      cache_control: messagesBlocks.text.in.cache_control,
      citations: ignore('nothing is cited'),
    },
  },
  temperature: byCase({ 'tunable model': exact('temperature'), 'untunable model': untunable }),
  top_p: byCase({ 'tunable model': exact('top_p'), 'untunable model': untunable }),
  top_k: byCase({
    'upstream that knows it': exact('top_k'),
    'upstream that does not': warn('the upstream does not know it'),
  }),
  stop_sequences: byCase({
    'up to 4': exact('stop'),
    'above 4': exact('', 'enforced by the gateway'),
  }),
  stream: exact('stream', 'with stream_options.include_usage'),
  tools: { ...exact('tools'), one: messagesTools },
  tool_choice: { ...exact('tool_choice'), one: messagesToolChoice },
  thinking: {
    ...exact('reasoning_effort'),
    one: {
      enabled: {
        ...near('reasoning_effort', 'by the budget'),
        in: {
          budget_tokens: byCase({
            'from 10000': near('reasoning_effort', 'high'),
            'from 5000': near('reasoning_effort', 'medium'),
            'from 2000': near('reasoning_effort', 'low'),
            below: near('reasoning_effort', 'minimal'),
          }),
          display,
          block_binding: binding,
        },
      },
      adaptive: {
        ...near('reasoning_effort', 'high, the default, unless an effort is set'),
        in: { display, block_binding: binding },
      },
      disabled: { ...exact('reasoning_effort', 'none'), in: {} },
      between_tools: { ...approx('reasoning_effort', 'off, also between calls'), in: {} },
    },
  },
  output_config: {
    ...exact('reasoning_effort, response_format'),
    in: {
      effort: exact('reasoning_effort', 'lowered to the nearest that the upstream knows'),
      format: jsonSchema,
      task_budget: notKnown,
    },
  },
  output_format: jsonSchema,
  metadata: {
    ...exact('safety_identifier or user'),
    in: {
      user_id: byCase({
        'up to 64 characters': exact('safety_identifier or user'),
        longer: near('safety_identifier or user', 'its SHA-256'),
      }),
    },
  },
  service_tier: byCase({
    auto: exact('', 'the default there as well'),
    'standard_only, OpenAI': exact('service_tier', 'default'),
    'other upstreams': ignore('no tiers there'),
  }),
  speed: byCase({
    standard: ignore('the default'),
    'fast, OpenAI': exact('service_tier', 'fast'),
    'fast, other upstreams': warn('no faster tier there'),
  }),
  cache_control: {
    ...near('cache_control or prompt_cache_breakpoint', 'where the upstream knows marks'),
    in: {
      type: near('cache_control or prompt_cache_breakpoint', 'where the upstream knows marks'),
      ttl: near('cache_control.ttl', 'where the upstream knows it'),
    },
  },
  inference_geo: byCase({
    "global, or the provider's region": exact('', 'the provider is in that region, by the config'),
    'another region': reject('the upstream could not keep this promise'),
  }),
  container: reject('the upstream runs no containers'),
  mcp_servers: reject('the upstream calls no MCP servers'),
  fallbacks: byCase({
    'a list': reject('the route decides on fallbacks'),
    default: warn('the route decides on fallbacks'),
  }),
  fallback_credit_token: warn('only its own provider can use it'),
  context_management: warn('nothing is cleared; the whole history is sent'),
  compaction: warn('nothing is compacted; the whole history is sent'),
  diagnostics: notKnown,
  billing_policy: notKnown,
  thread: reject('the whole history is needed'),
  betas: ignore('a header; foreign upstreams know no betas'),
  user_profile_id: ignore('a header'),
  workspace_id: ignore('a header'),
} as const satisfies Fields<Params> & {
  readonly [K in keyof Sdk0.MessageCreateParamsBase]-?: AnyEntry;
};

/** Fields that no SDK knows. */
export const messagesRequestExtensions = {
  'any other field': warn('passed on to messages upstreams only'),
} as const;
