/** The request of a conversation, in the form of each endpoint. */
import {
  efforts,
  formats,
  type CallSettings,
  type Endpoint,
  type Picture,
  type Turn,
} from './turns.ts';

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
  const { model, stream } = settings;
  if (model.trim() === '') throw new SettingError('model', 'Choose a model.');
  return {
    model: model.trim(),
    ...writers[settings.endpoint](settings, turns),
    ...numberMember(settings, 'temperature', 'temperature'),
    ...numberMember(settings, 'topP', 'top_p'),
    ...toolMembers(settings),
    ...(stream ? { stream: true } : {}),
    ...extraMembers(settings),
  };
}

/** The members of the field for extra ones. @throws SettingError */
export function extraMembers(settings: CallSettings): JsonRecord {
  const added = readJson(settings, 'more');
  if (added === undefined || isRecord(added)) return added ?? {};
  throw new SettingError('more', 'Extra fields must be a JSON object: { … }.');
}

/** Nothing is stored for the playground: it sends the whole conversation each time. */
function responsesMembers(settings: CallSettings, turns: readonly Turn[]): JsonRecord {
  const { system } = settings;
  const effort = effortOf(settings);
  const format = formatOf(settings);
  return {
    ...numberMember(settings, 'maxTokens', 'max_output_tokens'),
    ...(system.trim() === '' ? {} : { instructions: system }),
    input: turns.flatMap((turn) => responsesItems(turn)),
    store: false,
    ...(effort === '' ? {} : { reasoning: reasoningOf(effort) }),
    ...(format === undefined ? {} : { text: { format } }),
  };
}

/** Reasoning is shown in summaries only, and these only on demand. */
function reasoningOf(effort: string): JsonRecord {
  return effort === 'none' ? { effort } : { effort, summary: 'auto' };
}

const writers = {
  chat: chatMembers,
  messages: messagesMembers,
  responses: responsesMembers,
} as const satisfies {
  readonly [E in Endpoint]: (settings: CallSettings, turns: readonly Turn[]) => JsonRecord;
};

function chatMembers(settings: CallSettings, turns: readonly Turn[]): JsonRecord {
  const effort = effortOf(settings);
  const format = formatOf(settings);
  const stop = stopSequences(settings);
  return {
    ...numberMember(settings, 'maxTokens', 'max_completion_tokens'),
    messages: chatMessages(settings.system, turns),
    ...(stop === undefined ? {} : { stop }),
    ...numberMember(settings, 'seed', 'seed'),
    ...numberMember(settings, 'frequencyPenalty', 'frequency_penalty'),
    ...numberMember(settings, 'presencePenalty', 'presence_penalty'),
    ...(effort === '' ? {} : { reasoning_effort: effort }),
    ...(format === undefined ? {} : { response_format: chatFormat(format) }),
    ...(settings.stream ? { stream_options: { include_usage: true } } : {}),
  };
}

/** Chat has the schema one level deeper than responses do. */
function chatFormat({ type, ...schema }: JsonRecord): JsonRecord {
  return type === 'json_schema' ? { type, json_schema: schema } : { type };
}

function messagesMembers(settings: CallSettings, turns: readonly Turn[]): JsonRecord {
  const { system } = settings;
  const stop = stopSequences(settings);
  return {
    max_tokens: readNumber(settings, 'maxTokens') ?? defaultMaxTokens,
    ...(system.trim() === '' ? {} : { system }),
    messages: turns.map((turn) => messagesTurn(turn)),
    ...numberMember(settings, 'topK', 'top_k'),
    ...(stop === undefined ? {} : { stop_sequences: stop }),
    ...thinkingMembers(settings),
  };
}

/** Thinking with a budget, by effort, or none; effort and format share a member. */
function thinkingMembers(settings: CallSettings): JsonRecord {
  const effort = effortOf(settings);
  const budget = readNumber(settings, 'thinkingBudget');
  const format = formatOf(settings);
  const isOff = effort === 'none' && budget === undefined;
  const hasEffort = effort !== '' && effort !== 'none';
  const thinking =
    budget === undefined
      ? { type: isOff ? 'disabled' : 'adaptive' }
      : { type: 'enabled', budget_tokens: budget };
  const config = {
    ...(hasEffort ? { effort } : {}),
    ...(format === undefined ? {} : { format: { type: format['type'], schema: format['schema'] } }),
  };
  return {
    ...(budget === undefined && effort === '' ? {} : { thinking }),
    ...(Object.keys(config).length === 0 ? {} : { output_config: config }),
  };
}

/** One that was chosen for another endpoint may be none of this one. */
function effortOf({ endpoint, effort }: CallSettings): string {
  return efforts[endpoint].includes(effort) ? effort : '';
}

/** As `text.format` of responses has it; undefined: plain text. @throws SettingError */
function formatOf(settings: CallSettings): JsonRecord | undefined {
  const { endpoint, format } = settings;
  if (format === '' || !formats[endpoint].includes(format)) return undefined;
  if (format === 'json') return { type: 'json_object' };
  const schema = readJson(settings, 'schema');
  if (!isRecord(schema)) throw new SettingError('schema', 'Write a JSON Schema: { … }.');
  return { type: 'json_schema', name: 'answer', schema, strict: true };
}

function toolMembers(settings: CallSettings): JsonRecord {
  const { endpoint, toolChoice } = settings;
  const tools = readJson(settings, 'tools');
  if (tools !== undefined && !Array.isArray(tools)) {
    throw new SettingError('tools', 'Tools must be a JSON list: [ … ].');
  }
  if (tools === undefined || tools.length === 0) return {};
  if (toolChoice === '') return { tools };
  const type = toolChoice === 'required' ? 'any' : toolChoice;
  return { tools, tool_choice: endpoint === 'messages' ? { type } : toolChoice };
}

/** Empty lines are none. */
function stopSequences({ stop }: CallSettings): readonly string[] | undefined {
  const lines = stop.split('\n').filter((line) => line !== '');
  return lines.length === 0 ? undefined : lines;
}

export type NumberSetting =
  | 'maxTokens'
  | 'temperature'
  | 'topP'
  | 'topK'
  | 'seed'
  | 'frequencyPenalty'
  | 'presencePenalty'
  | 'thinkingBudget';

function numberMember(settings: CallSettings, setting: NumberSetting, name: string): JsonRecord {
  const value = readNumber(settings, setting);
  return value === undefined ? {} : { [name]: value };
}

function readNumber(settings: CallSettings, setting: NumberSetting): number | undefined {
  const text = settings[setting].trim();
  if (text === '') return undefined;
  const value = Number(text);
  if (Number.isFinite(value)) return value;
  throw new SettingError(setting, 'This is not a number.');
}

function readJson(settings: CallSettings, setting: 'tools' | 'more' | 'schema'): unknown {
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

/** A text; '' for any other value. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A list; none for any other value. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}
