/** Refusals of Gemini, in its own words. */
import type { Row } from './chat-refusals.ts';

const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
const google = (message: string): unknown => ({
  error: { code: 400, message, status: 'INVALID_ARGUMENT' },
});
const unknownName = (name: string, at: string): unknown =>
  google(`Invalid JSON payload received. Unknown name "${name}" at '${at}': Cannot find field.`);

export const geminiRows: readonly Row[] = [
  {
    name: 'a signature of another account or model',
    body: google('Corrupted thought signature.'),
    sent: { contents },
    learned: { historyReasoning: false },
  },
  {
    name: 'a model that does not know JSON Schema in tools',
    body: unknownName('parametersJsonSchema', 'tools[0].function_declarations[0]'),
    sent: { contents, tools: [{ functionDeclarations: [] }] },
    traits: { jsonSchemas: true },
    learned: { jsonSchemas: false },
  },
  {
    name: 'sampling that a model does not take',
    body: unknownName('temperature', 'generation_config'),
    sent: { contents, generationConfig: { temperature: 0.5 } },
    learned: { samplingAllowed: false },
  },
  {
    name: 'a history without signatures says nothing about the model',
    body: google('Function call is missing a thought_signature in functionCall parts.'),
    sent: { contents },
    learned: undefined,
  },
];
