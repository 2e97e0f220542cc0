/** How messages servers refuse members of a request, in their own words. */
import type { Row } from './chat-refusals.ts';

const anthropic = (message: string): unknown => ({
  type: 'error',
  error: { type: 'invalid_request_error', message },
  request_id: 'req_1',
});

export const messagesRows: readonly Row[] = [
  {
    name: 'Bedrock: a beta that the model does not know',
    body: { message: 'The model returned the following errors: invalid beta flag' },
    sent: { anthropic_beta: ['context-1m-2025-08-07'], max_tokens: 10 },
    learned: { refuses: ['anthropic_beta'] },
  },
  {
    name: 'enabled thinking',
    body: anthropic(
      '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    ),
    sent: { max_tokens: 9000, thinking: { type: 'enabled', budget_tokens: 2000 } },
    traits: { thinking: 'budget' },
    learned: { thinking: 'adaptive', refusesBudgets: true },
  },
  {
    name: 'adaptive thinking',
    body: anthropic('adaptive thinking is not supported on this model'),
    sent: { max_tokens: 9000, thinking: { type: 'adaptive' } },
    learned: { thinking: 'budget' },
  },
  {
    name: 'temperature and top_p',
    body: anthropic(
      '`temperature` and `top_p` cannot both be specified for this model. Please use only one.',
    ),
    sent: { max_tokens: 9, temperature: 0.5, top_p: 0.5 },
    learned: { temperatureExcludesTopP: true },
  },
  {
    name: 'temperature at all',
    body: anthropic('`temperature` is deprecated for this model.'),
    sent: { max_tokens: 9, temperature: 0.5 },
    learned: { samplingAllowed: false },
  },
  {
    name: 'the default cap',
    body: anthropic(
      'max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-opus-20240229',
    ),
    sent: { max_tokens: 8192 },
    learned: { defaultMaxOutputTokens: 4096 },
  },
  {
    name: 'a cap that the client chose',
    body: anthropic(
      'max_tokens: 100000 > 4096, which is the maximum allowed number of output tokens for claude-3-opus-20240229',
    ),
    sent: { max_tokens: 100_000 },
    learned: undefined,
  },
  {
    name: 'effort',
    body: anthropic('This model does not support the effort parameter.'),
    sent: { max_tokens: 9, output_config: { effort: 'low' } },
    learned: { efforts: [] },
  },
  {
    name: 'white space stops',
    body: anthropic('stop_sequences: each stop sequence must contain non-whitespace'),
    sent: { max_tokens: 9, stop_sequences: ['\n'] },
    traits: { refusesBlankStops: false },
    learned: { refusesBlankStops: true },
  },
  {
    name: 'output_config.format',
    body: anthropic('output_config.format: Extra inputs are not permitted'),
    sent: { max_tokens: 9, output_config: { format: { type: 'json_schema', schema: {} } } },
    learned: { responseFormat: 'none' },
  },
  {
    name: 'strict',
    body: anthropic('tools.0.custom.strict: Extra inputs are not permitted'),
    sent: { max_tokens: 9, tools: [{}] },
    learned: { responseFormat: 'none' },
  },
  {
    name: 'forced tools beside thinking',
    body: anthropic('Thinking may not be enabled when tool_choice forces tool use.'),
    sent: { max_tokens: 9, tool_choice: { type: 'any' }, tools: [{}] },
    learned: undefined,
  },
  {
    name: 'an id of a tool result',
    body: anthropic(
      'messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
    ),
    sent: { max_tokens: 9, temperature: 0.5, stop_sequences: ['a'] },
    learned: undefined,
  },
  {
    name: 'a cache mark',
    body: anthropic('system.0.cache_control: Extra inputs are not permitted'),
    sent: { max_tokens: 9, system: [{}] },
    learned: { cacheMarks: false },
  },
  {
    name: 'a signature of another provider',
    body: anthropic('messages.1.content.0: Invalid `signature` in `thinking` block'),
    sent: { max_tokens: 9, messages: [{}] },
    learned: { historyReasoning: false },
  },
  {
    name: 'thinking at a server without it',
    body: anthropic('thinking: Extra inputs are not permitted'),
    sent: { max_tokens: 9, thinking: { type: 'enabled', budget_tokens: 2000 } },
    traits: { thinking: 'budget' },
    learned: { thinking: 'none' },
  },
  {
    name: 'adaptive thinking at a model that never thinks',
    body: anthropic('thinking is not supported by this model'),
    sent: { max_tokens: 9, thinking: { type: 'adaptive' } },
    learned: { thinking: 'none' },
  },
  {
    name: 'thinking that cannot be switched off',
    body: anthropic("thinking.type: 'disabled' is not supported for this model"),
    sent: { max_tokens: 9, thinking: { type: 'disabled' } },
    learned: { thinkingOff: 'never' },
  },
];
