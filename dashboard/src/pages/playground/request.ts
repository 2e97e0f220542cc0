/** The request of a conversation, in the form of each endpoint. */
import type { CallSettings, Endpoint, Picture, Turn } from './turns.ts';

export interface JsonRecord {
  readonly [member: string]: unknown;
}

/** A setting that is not a value: what is wrong with which one. */
export class SettingError extends Error {
  readonly setting: keyof CallSettings;

  constructor(setting: keyof CallSettings, message: string) {
    super(message);
    this.name = 'SettingError';
    this.setting = setting;
  }
}

/** The messages endpoint refuses requests without one. */
const defaultMaxTokens = 1024;

/** The body to send. @throws SettingError */
export function requestBody(settings: CallSettings, turns: readonly Turn[]): JsonRecord {
  const { endpoint, model, stream } = settings;
  if (model.trim() === '') throw new SettingError('model', 'Choose a model.');
  const tools = readJson(settings, 'tools');
  if (tools !== undefined && !Array.isArray(tools)) {
    throw new SettingError('tools', 'Tools must be a JSON list: [ … ].');
  }
  const added = readJson(settings, 'more');
  if (added !== undefined && !isRecord(added)) {
    throw new SettingError('more', 'Extra fields must be a JSON object: { … }.');
  }
  const temperature = readNumber(settings, 'temperature');
  return {
    model: model.trim(),
    ...members[endpoint](settings, turns),
    ...(temperature === undefined ? {} : { temperature }),
    ...(tools === undefined || tools.length === 0 ? {} : { tools }),
    ...(stream ? { stream: true } : {}),
    ...added,
  };
}

/** Nothing is kept for the playground: it sends the whole conversation each time. */
function responsesMembers(settings: CallSettings, turns: readonly Turn[]): JsonRecord {
  const { system } = settings;
  const maxTokens = readNumber(settings, 'maxTokens');
  return {
    ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
    ...(system.trim() === '' ? {} : { instructions: system }),
    input: turns.flatMap((turn) => responsesItems(turn)),
    store: false,
  };
}

const members = {
  chat: chatMembers,
  messages: messagesMembers,
  responses: responsesMembers,
} as const satisfies {
  readonly [E in Endpoint]: (settings: CallSettings, turns: readonly Turn[]) => JsonRecord;
};

function chatMembers(settings: CallSettings, turns: readonly Turn[]): JsonRecord {
  const maxTokens = readNumber(settings, 'maxTokens');
  return {
    ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
    messages: chatMessages(settings.system, turns),
    ...(settings.stream ? { stream_options: { include_usage: true } } : {}),
  };
}

function messagesMembers(settings: CallSettings, turns: readonly Turn[]): JsonRecord {
  const { system } = settings;
  return {
    max_tokens: readNumber(settings, 'maxTokens') ?? defaultMaxTokens,
    ...(system.trim() === '' ? {} : { system }),
    messages: turns.map((turn) => messagesTurn(turn)),
  };
}

function readNumber(
  settings: CallSettings,
  setting: 'maxTokens' | 'temperature',
): number | undefined {
  const text = settings[setting].trim();
  if (text === '') return undefined;
  const value = Number(text);
  if (Number.isFinite(value)) return value;
  throw new SettingError(setting, 'This is not a number.');
}

function readJson(settings: CallSettings, setting: 'tools' | 'more'): unknown {
  const text = settings[setting].trim();
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read';
    throw new SettingError(setting, `This is not JSON: ${why}`);
  }
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function chatMessages(system: string, turns: readonly Turn[]): readonly JsonRecord[] {
  const first = system.trim() === '' ? [] : [{ role: 'system', content: system }];
  return [...first, ...turns.flatMap((turn) => chatTurn(turn))];
}

function chatTurn(turn: Turn): readonly JsonRecord[] {
  switch (turn.role) {
    case 'user':
      return [{ role: 'user', content: chatContent(turn.text, turn.pictures) }];
    case 'tool':
      return turn.results.map(({ id, text }) => ({
        role: 'tool',
        tool_call_id: id,
        content: text,
      }));
    case 'assistant':
      return [
        {
          role: 'assistant',
          content: turn.text === '' ? null : turn.text,
          ...(turn.calls.length === 0
            ? {}
            : {
                tool_calls: turn.calls.map((call) => ({
                  id: call.id,
                  type: 'function',
                  function: { name: call.name, arguments: call.arguments },
                })),
              }),
        },
      ];
  }
}

function chatContent(text: string, pictures: readonly Picture[]): string | readonly JsonRecord[] {
  if (pictures.length === 0) return text;
  return [
    ...pictures.map((picture) => ({
      type: 'image_url',
      image_url: { url: pictureUrl(picture) },
    })),
    ...(text === '' ? [] : [{ type: 'text', text }]),
  ];
}

export function pictureUrl({ type, base64 }: Picture): string {
  return `data:${type};base64,${base64}`;
}

function messagesTurn(turn: Turn): JsonRecord {
  switch (turn.role) {
    case 'user':
      return { role: 'user', content: messagesContent(turn.text, turn.pictures) };
    case 'tool':
      return {
        role: 'user',
        content: turn.results.map(({ id, text }) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: text,
        })),
      };
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...(turn.text === '' ? [] : [{ type: 'text', text: turn.text }]),
          ...turn.calls.map((call) => ({
            type: 'tool_use',
            id: call.id,
            name: call.name,
            input: parsedArguments(call.arguments),
          })),
        ],
      };
  }
}

function messagesContent(
  text: string,
  pictures: readonly Picture[],
): string | readonly JsonRecord[] {
  if (pictures.length === 0) return text;
  return [
    ...pictures.map(({ type, base64 }) => ({
      type: 'image',
      source: { type: 'base64', media_type: type, data: base64 },
    })),
    ...(text === '' ? [] : [{ type: 'text', text }]),
  ];
}

function responsesItems(turn: Turn): readonly JsonRecord[] {
  switch (turn.role) {
    case 'user':
      return [{ role: 'user', content: responsesContent(turn.text, turn.pictures) }];
    case 'tool':
      return turn.results.map(({ id, text }) => ({
        type: 'function_call_output',
        call_id: id,
        output: text,
      }));
    case 'assistant':
      return [
        ...(turn.text === '' ? [] : [{ role: 'assistant', content: turn.text }]),
        ...turn.calls.map((call) => ({
          type: 'function_call',
          call_id: call.id,
          name: call.name,
          arguments: call.arguments,
        })),
      ];
  }
}

function responsesContent(
  text: string,
  pictures: readonly Picture[],
): string | readonly JsonRecord[] {
  if (pictures.length === 0) return text;
  return [
    ...pictures.map((picture) => ({
      type: 'input_image',
      image_url: pictureUrl(picture),
      detail: 'auto',
    })),
    ...(text === '' ? [] : [{ type: 'input_text', text }]),
  ];
}

/** A model may write arguments that are not JSON; the format has no place for them. */
function parsedArguments(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

const weather = {
  name: 'get_weather',
  description: 'The weather of a city.',
  schema: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
};

/** A tool to begin with. */
export function exampleTools(endpoint: Endpoint): string {
  return JSON.stringify([toolOf(endpoint, weather)], null, 2);
}

/** The tools in the form of another endpoint; what is not a function tool of the first stays as it is. */
export function translatedTools(text: string, to: Endpoint): string {
  try {
    const tools: unknown = JSON.parse(text);
    if (!Array.isArray(tools)) return text;
    return JSON.stringify(
      tools.map((tool: unknown) => translatedTool(tool, to)),
      null,
      2,
    );
  } catch {
    return text;
  }
}

function translatedTool(tool: unknown, to: Endpoint): unknown {
  const read = isRecord(tool) ? readTool(tool) : undefined;
  return read === undefined ? tool : toolOf(to, read);
}

/** A function tool of any endpoint; undefined for others. */
function readTool(tool: JsonRecord): JsonRecord | undefined {
  const { type, function: chat } = tool;
  if (isRecord(chat)) return { ...chat, schema: chat['parameters'] };
  if ('input_schema' in tool) return { ...tool, schema: tool['input_schema'] };
  return type === 'function' ? { ...tool, schema: tool['parameters'] } : undefined;
}

function toolOf(endpoint: Endpoint, tool: JsonRecord): JsonRecord {
  const { name, description, schema } = tool;
  const named = { name, ...(description === undefined ? {} : { description }) };
  if (endpoint === 'messages') return { ...named, input_schema: schema ?? { type: 'object' } };
  const definition = { ...named, ...(schema === undefined ? {} : { parameters: schema }) };
  return endpoint === 'chat'
    ? { type: 'function', function: definition }
    : { type: 'function', ...definition, strict: false };
}
