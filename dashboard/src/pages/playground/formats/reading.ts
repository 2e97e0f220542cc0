/** A request of any endpoint as settings and a conversation: the way back from `request.ts`. */
import { isRecord, listOf, textOf, type JsonRecord } from './request.ts';
import type { ModelSettings } from './snapshot.ts';
import {
  efforts,
  noSettings,
  type AssistantTurn,
  type Endpoint,
  type Picture,
  type ToolCall,
  type Turn,
} from './turns.ts';

export interface ReadRequest {
  readonly settings: ModelSettings;
  readonly model: string;
  readonly turns: readonly Turn[];
  /** What has no place in the playground, each once. */
  readonly leftOut: readonly string[];
}

export function readRequest(endpoint: Endpoint, body: JsonRecord): ReadRequest {
  const leftOut = new Set<string>();
  const { model: _model, ...standard } = noSettings;
  const rest: Record<string, unknown> = { ...body };
  const take = (name: string): unknown => {
    const value = rest[name];
    delete rest[name];
    return value;
  };
  const model = textOf(take('model'));
  const stream = take('stream') === true;
  const temperature = numberText(take('temperature'));
  const topP = numberText(take('top_p'));
  const tools = take('tools');
  const { turns, ...read } = readers[endpoint](take, leftOut);
  const choice = toolChoiceOf(take('tool_choice'), leftOut);
  const settings: ModelSettings = {
    ...standard,
    ...read,
    endpoint,
    stream,
    temperature,
    topP,
    toolChoice: choice,
    tools: Array.isArray(tools) && tools.length > 0 ? jsonText(tools) : '',
    more: Object.keys(rest).length === 0 ? '' : jsonText(rest),
  };
  return { settings, model, turns, leftOut: [...leftOut] };
}

/** Takes a member out of the body. The members that are left at the end become extra fields. */
type Take = (name: string) => unknown;

type Part = Partial<ModelSettings> & { readonly turns: readonly Turn[] };

const readers: { readonly [E in Endpoint]: (take: Take, leftOut: Set<string>) => Part } = {
  chat: readChat,
  messages: readMessages,
  responses: readResponses,
};

function readChat(take: Take, leftOut: Set<string>): Part {
  take('stream_options');
  const cap = take('max_completion_tokens') ?? take('max_tokens');
  const builder = new TurnBuilder(leftOut);
  const system: string[] = [];
  for (const message of listOf(take('messages'))) {
    if (!isRecord(message)) continue;
    const { role, content } = message;
    if (role === 'system' || role === 'developer') {
      if (builder.turns.length === 0) system.push(builder.textOf(content));
      else leftOut.add('instructions within the conversation');
    } else if (role === 'tool') {
      builder.result(textOf(message['tool_call_id']), builder.textOf(content));
    } else if (role === 'assistant') {
      builder.answer({
        text: builder.textOf(content),
        reasoning: textOf(message['reasoning_content'] ?? message['reasoning']),
        calls: listOf(message['tool_calls']).map(chatCall),
      });
    } else builder.question(content);
  }
  return {
    turns: builder.turns,
    system: system.join('\n\n'),
    maxTokens: numberText(cap),
    stop: stopText(take('stop')),
    seed: numberText(take('seed')),
    frequencyPenalty: numberText(take('frequency_penalty')),
    presencePenalty: numberText(take('presence_penalty')),
    effort: effortOf('chat', take('reasoning_effort'), leftOut),
    ...formatOf(take('response_format'), leftOut),
  };
}

function chatCall(call: unknown): ToolCall {
  const { id, function: named } = isRecord(call) ? call : {};
  const { name, arguments: given } = isRecord(named) ? named : {};
  return { id: textOf(id), name: textOf(name), arguments: textOf(given) };
}

function readMessages(take: Take, leftOut: Set<string>): Part {
  const builder = new TurnBuilder(leftOut);
  for (const message of listOf(take('messages'))) {
    if (!isRecord(message)) continue;
    const { role, content } = message;
    if (role === 'assistant') builder.answer(messagesAnswer(content, builder));
    else {
      const blocks = listOf(content).filter(isRecord);
      const results = blocks.filter(({ type }) => type === 'tool_result');
      for (const { tool_use_id: id, content: text } of results) {
        builder.result(textOf(id), builder.textOf(text));
      }
      const others = blocks.filter(({ type }) => type !== 'tool_result');
      if (typeof content === 'string') builder.question(content);
      else if (others.length > 0) builder.question(others);
    }
  }
  const config = take('output_config');
  const { effort, format } = isRecord(config) ? config : {};
  const thinking = take('thinking');
  const { type, budget_tokens: budget } = isRecord(thinking) ? thinking : {};
  return {
    turns: builder.turns,
    system: builder.textOf(take('system')),
    maxTokens: numberText(take('max_tokens')),
    topK: numberText(take('top_k')),
    stop: stopText(take('stop_sequences')),
    effort: effortOf('messages', type === 'disabled' ? 'none' : effort, leftOut),
    thinkingBudget: numberText(budget),
    ...formatOf(format, leftOut),
  };
}

function messagesAnswer(content: unknown, builder: TurnBuilder): Omit<AssistantTurn, 'role'> {
  const blocks = listOf(content).filter(isRecord);
  const thoughts = blocks.filter(({ type }) => type === 'thinking');
  const calls = blocks.filter(({ type }) => type === 'tool_use');
  const others = blocks.filter(({ type }) => type === 'text');
  if (thoughts.length + calls.length + others.length < blocks.length) {
    builder.leftOut.add('parts of answers');
  }
  return {
    text: typeof content === 'string' ? content : builder.textOf(others),
    reasoning: thoughts.map(({ thinking }) => textOf(thinking)).join('\n'),
    calls: calls.map(({ id, name, input }) => ({
      id: textOf(id),
      name: textOf(name),
      arguments: JSON.stringify(input ?? {}),
    })),
  };
}

function readResponses(take: Take, leftOut: Set<string>): Part {
  take('store');
  const builder = new TurnBuilder(leftOut);
  const input = take('input');
  if (typeof input === 'string') builder.question(input);
  for (const item of listOf(input)) if (isRecord(item)) responsesItem(item, builder);
  if (take('previous_response_id') !== undefined) leftOut.add('the stored conversation before it');
  const reasoning = take('reasoning');
  const text = take('text');
  return {
    turns: builder.turns,
    system: textOf(take('instructions')),
    maxTokens: numberText(take('max_output_tokens')),
    effort: effortOf('responses', isRecord(reasoning) ? reasoning['effort'] : undefined, leftOut),
    ...formatOf(isRecord(text) ? text['format'] : undefined, leftOut),
  };
}

function responsesItem(item: JsonRecord, builder: TurnBuilder): void {
  const { type, role, content } = item;
  const nothing = { text: '', reasoning: '', calls: [] };
  if (type === 'function_call') {
    const { call_id: id, name, arguments: given } = item;
    const call = { id: textOf(id), name: textOf(name), arguments: textOf(given) };
    builder.answer({ ...nothing, calls: [call] });
  } else if (type === 'function_call_output') {
    builder.result(textOf(item['call_id']), builder.textOf(item['output']));
  } else if (type === 'reasoning') {
    builder.answer({ ...nothing, reasoning: builder.textOf(item['summary']) });
  } else if (role === 'assistant') {
    builder.answer({ ...nothing, text: builder.textOf(content) });
  } else if (role === 'user') builder.question(content);
  else builder.leftOut.add(role === undefined ? 'items' : 'instructions within the conversation');
}

/** Adds turns; answers that follow each other are one, and so are results. */
class TurnBuilder {
  readonly turns: Turn[] = [];
  readonly leftOut: Set<string>;

  constructor(leftOut: Set<string>) {
    this.leftOut = leftOut;
  }

  question(content: unknown): void {
    const pictures = listOf(content).flatMap((part) => this.#picture(part));
    this.turns.push({ role: 'user', text: this.textOf(content), pictures });
  }

  answer({ text, reasoning, calls }: Omit<AssistantTurn, 'role'>): void {
    const last = this.turns.at(-1);
    const before = last?.role === 'assistant' ? last : undefined;
    if (before !== undefined) this.turns.pop();
    this.turns.push({
      role: 'assistant',
      text: (before?.text ?? '') + text,
      reasoning: (before?.reasoning ?? '') + reasoning,
      calls: [...(before?.calls ?? []), ...calls],
    });
  }

  result(id: string, text: string): void {
    const last = this.turns.at(-1);
    if (last?.role === 'tool') this.turns.pop();
    const before = last?.role === 'tool' ? last.results : [];
    this.turns.push({ role: 'tool', results: [...before, { id, text }] });
  }

  /** A text, or the texts of a list of parts. */
  textOf(content: unknown): string {
    if (typeof content === 'string') return content;
    return listOf(content)
      .map((part) => (isRecord(part) ? textOf(part['text'] ?? part['refusal']) : ''))
      .filter((text) => text !== '')
      .join('\n');
  }

  #picture(part: unknown): readonly Picture[] {
    if (!isRecord(part) || 'text' in part) return [];
    const { type, source, image_url: given } = part;
    const url = textOf(isRecord(given) ? given['url'] : given);
    const [, media = '', data = ''] = /^data:(image\/\w{1,20});base64,([\w+/=]+)$/.exec(url) ?? [];
    const own = isRecord(source) ? source : {};
    const picture = {
      name: 'image',
      type: media === '' ? textOf(own['media_type']) : media,
      base64: data === '' ? textOf(own['data']) : data,
    };
    const isWhole = picture.type.startsWith('image/') && /^[\w+/=]+$/.test(picture.base64);
    if (isWhole) return [picture];
    const isImage = ['image', 'image_url', 'input_image'].includes(textOf(type));
    this.leftOut.add(isImage ? 'images' : 'files');
    return [];
  }
}

function effortOf(endpoint: Endpoint, effort: unknown, leftOut: Set<string>): string {
  const text = textOf(effort);
  if (text === '' || efforts[endpoint].includes(text)) return text;
  leftOut.add(`the effort ${text}`);
  return '';
}

/** Of chat, messages or responses. */
function formatOf(format: unknown, leftOut: Set<string>): Partial<ModelSettings> {
  if (!isRecord(format) || format['type'] === 'text') return {};
  if (format['type'] === 'json_object') return { format: 'json' };
  const { json_schema: inner } = format;
  const schema = isRecord(inner) ? inner['schema'] : format['schema'];
  if (isRecord(schema)) return { format: 'schema', schema: jsonText(schema) };
  leftOut.add('the answer format');
  return {};
}

function toolChoiceOf(choice: unknown, leftOut: Set<string>): string {
  const type = isRecord(choice) ? choice['type'] : choice;
  if (type === undefined || type === null) return '';
  if (type === 'any') return 'required';
  if (type === 'auto' || type === 'none' || type === 'required') return type;
  leftOut.add('the tool choice');
  return '';
}

function stopText(stop: unknown): string {
  return typeof stop === 'string' ? stop : listOf(stop).map(textOf).join('\n');
}

function numberText(value: unknown): string {
  return typeof value === 'number' ? String(value) : '';
}

function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
