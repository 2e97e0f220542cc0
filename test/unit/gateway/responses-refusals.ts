/** Refusals of Responses servers, in their own words. */
import { openai, type Row } from './chat-refusals.ts';

const input = [{ type: 'message', role: 'user', content: 'Hi' }];

export const responsesRows: readonly Row[] = [
  {
    name: 'R-60 encrypted reasoning of another account',
    body: openai(
      'The encrypted content gAAA...xyz could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
      null,
      'invalid_encrypted_content',
    ),
    sent: { input },
    learned: { historyReasoning: false },
  },
  {
    name: 'R-60 reasoning without what it led to',
    body: openai(
      "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
      'input',
      'invalid_value',
    ),
    sent: { input },
    learned: { historyReasoning: false },
  },
  {
    name: 'R-60 an id of a service that kept nothing',
    body: openai(
      "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
      'input',
      'invalid_value',
    ),
    sent: { input },
    learned: { historyReasoning: false },
  },
  {
    name: 'a summary that an account may not see',
    body: openai(
      'Your organization must be verified to generate reasoning summaries. Please go to the settings of your organization.',
      'reasoning.summary',
      'unsupported_value',
    ),
    sent: { input, reasoning: { effort: 'low', summary: 'auto' } },
    learned: { reasoningSummary: false },
  },
  {
    name: 'a server that does not know what may be included',
    body: openai(
      "Unsupported parameter: 'include' is not supported.",
      'include',
      'unsupported_parameter',
    ),
    sent: { input, include: ['reasoning.encrypted_content'] },
    learned: { refusedIncludes: ['reasoning.encrypted_content'] },
  },
  {
    name: 'one value of what may be included, by its words',
    body: openai('Encrypted content is not supported with this model.', 'include', ''),
    sent: { input, include: ['message.output_text.logprobs', 'reasoning.encrypted_content'] },
    learned: { refusedIncludes: ['reasoning.encrypted_content'] },
  },
  {
    name: 'one value of what may be included, beside those that are known',
    body: openai(
      "Invalid value: 'code_interpreter_call.outputs'. Supported values are: 'reasoning.encrypted_content' and 'message.output_text.logprobs'.",
      'include[0]',
      'invalid_value',
    ),
    sent: { input, include: ['code_interpreter_call.outputs', 'reasoning.encrypted_content'] },
    learned: { refusedIncludes: ['code_interpreter_call.outputs'] },
  },
  {
    name: 'one value of what may be included, beside all that OpenAI lists as known',
    body: openai(
      "Invalid value: 'web_search_call.action.source'. Supported values are: 'file_search_call.results', 'web_search_call.results', 'message.input_image.image_url', 'reasoning.encrypted_content', and 'message.output_text.logprobs'.",
      'include[0]',
      'invalid_value',
    ),
    sent: { input, include: ['web_search_call.action.source', 'reasoning.encrypted_content'] },
    learned: { refusedIncludes: ['web_search_call.action.source'] },
  },
  {
    name: 'one value of what may be included, and not another one that ends in the same word',
    body: openai("'web_search_call.results' is not supported with this model.", 'include', ''),
    sent: { input, include: ['file_search_call.results', 'web_search_call.results'] },
    learned: { refusedIncludes: ['web_search_call.results'] },
  },
  {
    name: 'one value of what may be included, by its index',
    body: openai('This value is not supported with this model.', 'include[1]', 'invalid_value'),
    sent: { input, include: ['file_search_call.results', 'web_search_call.results'] },
    learned: { refusedIncludes: ['web_search_call.results'] },
  },
  {
    name: 'one value of what may be included, by its index in the words of pydantic',
    body: {
      detail: [
        {
          type: 'literal_error',
          loc: ['body', 'include', 1],
          msg: "Input should be 'file_search_call.results' or 'reasoning.encrypted_content'. Unsupported value",
        },
      ],
    },
    sent: { input, include: ['reasoning.encrypted_content', 'web_search_call.results'] },
    learned: { refusedIncludes: ['web_search_call.results'] },
  },
  {
    name: 'sampling that a reasoning model does not take, as it was recorded',
    body: openai(
      "Unsupported parameter: 'temperature' is not supported with this model.",
      'temperature',
      '',
    ),
    sent: { input, temperature: 0 },
    learned: { samplingAllowed: false },
  },
];
