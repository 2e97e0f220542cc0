/** A responses request on the way to a chat upstream. */
import type { ResponseCreateParamsBase } from 'openai/resources/responses/responses';
import {
  approx,
  byCase,
  exact,
  holder,
  ignore,
  near,
  reject,
  warn,
  type AnyFields,
  type Fields,
} from './decision.ts';
import { responsesItems } from './responses-items.ts';
import { responsesToolChoice, responsesTools } from './responses-tools.ts';

const notThere = warn('no such field there');
const untunable = warn('the model refuses sampling parameters');
const byDefault = ignore('the default');
const endUser = byCase({
  'up to 64 characters': exact('safety_identifier or user'),
  longer: near('safety_identifier or user', 'its SHA-256'),
});
const cached = byCase({
  OpenAI: exact('the same name'),
  'other upstreams': ignore('a hint about caching'),
});

export const responsesRequest = {
  model: exact('model', "the route's model; the answer shows the name that the client used"),
  input: {
    ...byCase({ 'a text': exact('messages[user].content') }),
    one: responsesItems,
  },
  instructions: exact('messages[system].content'),
  max_output_tokens: exact('max_completion_tokens or max_tokens'),
  temperature: byCase({ 'tunable model': exact('temperature'), 'untunable model': untunable }),
  top_p: byCase({ 'tunable model': exact('top_p'), 'untunable model': untunable }),
  top_logprobs: byCase({ '0': byDefault, 'above 0': reject('not reported by the gateway') }),
  stream: exact('stream'),
  stream_options: {
    ...holder,
    in: { include_obfuscation: ignore('the gateway pads nothing') },
  },
  tools: { ...exact('tools'), one: responsesTools },
  tool_choice: {
    ...byCase({
      auto: exact('tool_choice'),
      none: exact('tool_choice'),
      required: exact('tool_choice'),
    }),
    one: responsesToolChoice,
  },
  parallel_tool_calls: byCase({ true: byDefault, false: exact('parallel_tool_calls') }),
  max_tool_calls: byCase({
    'no hosted tool': ignore('there are no calls to count'),
    'with a hosted tool': warn('calls of hosted tools are not counted'),
  }),
  reasoning: {
    ...holder,
    in: {
      effort: exact('reasoning_effort', 'or the nearest that the model knows'),
      summary: exact(
        '',
        'the reasoning is shown; without it, it travels sealed, except on routes with `reasoning: shown`',
      ),
      generate_summary: exact('', 'as summary'),
      context: ignore('all reasoning that fits the model is sent'),
      mode: byCase({ standard: byDefault, pro: notThere }),
    },
  },
  text: {
    ...holder,
    in: {
      format: {
        ...exact('response_format'),
        one: {
          text: byDefault,
          json_object: { ...exact('response_format.type'), whole: true },
          json_schema: {
            ...exact('response_format'),
            in: {
              name: exact('response_format.json_schema.name'),
              description: exact('response_format.json_schema.description'),
              schema: byCase({
                'keywords that the model enforces': exact('response_format.json_schema.schema'),
                'model that enforces none': approx(
                  'response_format, messages[system]',
                  'json_object, and the schema in the instructions',
                ),
              }),
              strict: exact('response_format.json_schema.strict'),
            },
          },
        },
      },
      verbosity: byCase({
        medium: byDefault,
        'low, high; OpenAI': exact('verbosity'),
        'low, high; other upstreams': warn('the model does not know it'),
      }),
    },
  },
  store: exact('', 'the gateway keeps the response; upstreams keep nothing'),
  previous_response_id: exact('', 'the gateway adds what it kept'),
  conversation: reject('conversations are not kept'),
  background: byCase({ false: byDefault, true: reject('stream the answer instead') }),
  prompt: reject('a template belongs to one account'),
  include: byCase({
    'reasoning.encrypted_content': exact('', 'always answered'),
    'message.output_text.logprobs': reject('not reported by the gateway'),
    'of hosted tools': ignore('there are no such items'),
  }),
  truncation: byCase({
    disabled: byDefault,
    auto: warn('a prompt that does not fit is refused'),
  }),
  context_management: warn('the model does not shorten its context'),
  metadata: ignore('the answer repeats it'),
  safety_identifier: endUser,
  user: endUser,
  prompt_cache_key: cached,
  prompt_cache_options: { ...cached, whole: true },
  prompt_cache_retention: cached,
  service_tier: byCase({
    auto: byDefault,
    'default; other upstreams': ignore('there are no tiers'),
    'others, OpenAI': exact('service_tier'),
    'ultrafast, OpenAI': approx('service_tier', 'fast'),
    'others, other upstreams': warn('the provider has no such tier'),
  }),
  moderation: byCase({
    'with the mode block': reject('the upstream could not keep this promise'),
    'without it': notThere,
  }),
  access_programs: notThere,
  image: notThere,
} as const satisfies Fields<ResponseCreateParamsBase>;

/** What clients send beside the fields of the official SDK. */
export const responsesRequestExtensions: AnyFields = {
  client_metadata: ignore('what Codex tells its maker of the session goes to its maker only'),
  generate: reject('only a WebSocket can be warmed up'),
  'any other field': warn('passed on to responses upstreams only'),
};
