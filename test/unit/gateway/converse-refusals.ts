/** Refusals of models behind Converse, in the words of AWS. */
import type { Row } from './chat-refusals.ts';

const messages = [{ role: 'user', content: [{ text: 'Hi' }] }];
const toolConfig = { tools: [], toolChoice: { any: {} } };
const extraneous = (at: string, key: string): unknown => ({
  message: `Malformed input request: ${at}: extraneous key [${key}] is not permitted, please reformat your input and try again.`,
});

export const converseRows: readonly Row[] = [
  {
    name: 'cache points among tools',
    body: extraneous('#/toolConfig/tools/18', 'cachePoint'),
    sent: { messages, toolConfig },
    traits: { cacheMarks: true },
    learned: { toolCacheMarks: false },
  },
  {
    name: 'cache points in messages',
    body: extraneous('#/messages/0/content/1', 'cachePoint'),
    sent: { messages },
    traits: { cacheMarks: true },
    learned: { cacheMarks: false },
  },
  {
    name: 'a demanded call',
    body: {
      message:
        "This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again.",
    },
    sent: { messages, toolConfig },
    learned: { refusesForcedTools: true },
  },
  {
    name: 'tools in a stream',
    body: { message: "This model doesn't support tool use in streaming mode." },
    sent: { messages, toolConfig },
    learned: { streams: 'never' },
  },
  {
    name: 'instructions',
    body: {
      message:
        "This model doesn't support system messages. Try again without including system messages in your request.",
    },
    sent: { messages, system: [{ text: 'Be short.' }] },
    learned: { instructions: false },
  },
  {
    name: "the gateway's own cap is lowered",
    body: {
      message:
        'The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.',
    },
    sent: { messages, inferenceConfig: { maxTokens: 8192 } },
    learned: { defaultMaxOutputTokens: 4096 },
  },
  {
    name: "a client's cap is not",
    body: {
      message:
        'The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.',
    },
    sent: { messages, inferenceConfig: { maxTokens: 9000 } },
    learned: undefined,
  },
  {
    name: 'a temperature',
    body: {
      message:
        'The model returned the following errors: `temperature` is deprecated for this model.',
    },
    sent: { messages, inferenceConfig: { maxTokens: 10, temperature: 0.3 } },
    learned: { samplingAllowed: false },
  },
  {
    name: 'both samplers',
    body: {
      message:
        'The model returned the following errors: `temperature` and `top_p` cannot both be specified for this model. Please use only one.',
    },
    sent: { messages, inferenceConfig: { maxTokens: 10, temperature: 0.3, topP: 0.5 } },
    learned: { temperatureExcludesTopP: true },
  },
  {
    name: 'a format',
    body: {
      message:
        'The model returned the following errors: output_config.format: Extra inputs are not permitted',
    },
    sent: { messages, outputConfig: { textFormat: { type: 'json_schema' } } },
    traits: { responseFormat: 'schema' },
    learned: { responseFormat: 'none' },
  },
];
