/** Tools of a chat request, on the way to a messages upstream (translation.md §1.5, §1.6). */
import type OpenAI from 'openai';
import type { ChatCompletionCreateParamsBase } from 'openai/resources/chat/completions/completions';
import { approx, byCase, exact, ignore, reject, warn, type Variants } from './decision.ts';

export const chatTools = {
  function: {
    ...exact('tool'),
    in: {
      function: {
        ...exact('name, description, input_schema, strict'),
        in: {
          name: exact('name'),
          description: exact('description'),
          parameters: byCase({
            'schema of an object': exact('input_schema', 'every keyword is kept'),
            absent: exact('input_schema', 'an object without properties'),
            'schema of something else': reject(),
          }),
          strict: exact('strict', 'where the model enforces schemas; else dropped and noted'),
        },
      },
    },
  },
  custom: {
    ...exact('tool with one text as its input'),
    in: {
      custom: {
        ...exact('name, description'),
        in: {
          name: exact('name'),
          description: exact('description'),
          format: {
            ...exact('input_schema'),
            one: {
              text: { ...exact('input_schema'), in: {} },
              grammar: reject('the constraint would be lost'),
            },
          },
        },
      },
    },
  },
} as const satisfies Variants<OpenAI.Chat.Completions.ChatCompletionTool>;

export const chatToolChoice = {
  function: {
    ...exact('{type: "tool"}'),
    in: { function: { ...exact('name'), in: { name: exact('name') } } },
  },
  custom: {
    ...exact('{type: "tool"}'),
    in: { custom: { ...exact('name'), in: { name: exact('name') } } },
  },
  allowed_tools: {
    ...approx(
      'tools, tool_choice',
      'only the named tools are sent, which changes the cached prefix',
    ),
    in: {
      allowed_tools: {
        ...exact('tools'),
        in: {
          mode: byCase({ auto: exact('{type: "auto"}'), required: exact('{type: "any"}') }),
          tools: exact('tools'),
        },
      },
    },
  },
} as const satisfies Variants<
  Exclude<OpenAI.Chat.Completions.ChatCompletionToolChoiceOption, string>
>;

export const chatFunctions = {
  name: exact('tools[].name'),
  description: exact('tools[].description'),
  parameters: exact('tools[].input_schema'),
} as const;

export const responseFormats = {
  text: ignore('the default'),
  json_schema: {
    ...exact('output_config.format'),
    in: {
      json_schema: {
        ...exact('output_config.format'),
        in: {
          name: ignore('has no meaning there'),
          description: ignore('has no meaning there'),
          schema: byCase({
            'keywords that the model enforces': exact('output_config.format.schema'),
            'other keywords': approx(
              'output_config.format.schema',
              'moved into the description, where the model reads them',
            ),
            'model that enforces none': approx(
              'tools, tool_choice',
              'the input of a tool that must be called',
            ),
            absent: reject('it would constrain nothing'),
          }),
          strict: byCase({
            true: exact('output_config.format', 'enforced'),
            false: approx('output_config.format', 'enforced nevertheless'),
          }),
        },
      },
    },
  },
  json_object: {
    ...approx('system', 'asked for, not enforced'),
    in: {},
  },
} as const satisfies Variants<NonNullable<ChatCompletionCreateParamsBase['response_format']>>;

export const noSuchField = warn('no such field there');
