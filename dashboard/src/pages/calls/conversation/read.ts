/** The stored request and answer of a call as one conversation, from any endpoint's bodies. */
import type { CallContent, LoggedBody } from '../../../api/content.ts';
import { nothingYet, withEvent } from '../../playground/formats/answer.ts';
import { isRecord, listOf, textOf, type JsonRecord } from '../../playground/formats/request.ts';
import type { Endpoint } from '../../playground/formats/turns.ts';
import { callPart, other, partsOf, resultPart, type Message, type Part } from './parts.ts';

export interface Conversation {
  readonly asked: readonly Message[];
  readonly answered: readonly Message[];
  /** Names of the tools that were offered. */
  readonly tools: readonly string[];
  /** The other members of the request, each as JSON. */
  readonly settings: readonly (readonly [name: string, json: string])[];
}

/** Undefined: the request is not whole JSON, so only its text can be shown. */
export function conversationOf(
  endpoint: Endpoint,
  { request, answer }: CallContent,
): Conversation | undefined {
  const body = request?.body;
  if (body?.form !== 'json' || !isRecord(body.content)) return undefined;
  const { tools, ...members } = body.content;
  const { messages: asked, rest } = askedOf[endpoint](members);
  return {
    asked,
    answered: answer === null ? [] : answeredIn(endpoint, answer.body),
    tools: listOf(tools).map(toolName),
    settings: Object.entries(rest).map(([name, value]) => [name, JSON.stringify(value)]),
  };
}

interface Asked {
  readonly messages: readonly Message[];
  readonly rest: JsonRecord;
}

const askedOf: { readonly [E in Endpoint]: (members: JsonRecord) => Asked } = {
  chat: ({ messages, ...rest }) => ({ messages: listOf(messages).map(chatMessage), rest }),
  messages: ({ system, messages, ...rest }) => ({
    messages: [...instructionsOf(system), ...listOf(messages).map(blocksMessage)],
    rest,
  }),
  responses: ({ instructions, input, ...rest }) => ({
    messages: [
      ...instructionsOf(instructions),
      ...(typeof input === 'string'
        ? [{ role: 'user', parts: partsOf(input) }]
        : joined(listOf(input).map(itemMessage))),
    ],
    rest,
  }),
};

function instructionsOf(content: unknown): readonly Message[] {
  const parts = partsOf(content);
  return parts.length === 0 ? [] : [{ role: 'system', parts }];
}

function toolName(tool: unknown): string {
  if (!isRecord(tool)) return 'tool';
  const { name, type, function: named, custom } = tool;
  const inner = isRecord(named) ? named['name'] : isRecord(custom) ? custom['name'] : undefined;
  return textOf(name ?? inner ?? type);
}

function chatMessage(message: unknown): Message {
  if (!isRecord(message)) return { role: '', parts: [other('', message)] };
  const { role, content, refusal, tool_call_id: id } = message;
  if (role === 'tool') return { role, parts: [resultPart(id, content)] };
  return {
    role: textOf(role),
    parts: [
      ...reasoningOf(message['reasoning_content'] ?? message['reasoning']),
      ...partsOf(content),
      ...partsOf(refusal),
      ...listOf(message['tool_calls']).map(chatCall),
    ],
  };
}

function reasoningOf(text: unknown): readonly Part[] {
  return typeof text === 'string' && text !== '' ? [{ kind: 'reasoning', text }] : [];
}

function chatCall(call: unknown): Part {
  if (!isRecord(call)) return other('', call);
  const { id, type, function: named, custom } = call;
  if (isRecord(named)) return callPart(id, named['name'], named['arguments']);
  if (isRecord(custom)) return callPart(id, custom['name'], custom['input']);
  return other(textOf(type), call);
}

/** Tool results of the messages dialect are in a turn of the user. */
function blocksMessage(message: unknown): Message {
  if (!isRecord(message)) return { role: '', parts: [other('', message)] };
  const parts = partsOf(message['content']);
  const areResults = parts.length > 0 && parts.every(({ kind }) => kind === 'result');
  const role = textOf(message['role']);
  return { role: areResults && role === 'user' ? 'tool' : role, parts };
}

function itemMessage(item: unknown): Message {
  if (!isRecord(item)) return { role: '', parts: [other('', item)] };
  const { role, type, content, summary, call_id: id, name, output } = item;
  const kind = textOf(type);
  if (role !== undefined) return { role: textOf(role), parts: partsOf(content) };
  if (kind === 'reasoning') {
    const texts = [...partsOf(summary), ...partsOf(content)];
    return {
      role: 'assistant',
      parts: texts.length === 0 ? [{ kind: 'reasoning', text: '' }] : texts,
    };
  }
  if (kind === 'function_call' || kind === 'custom_tool_call') {
    return { role: 'assistant', parts: [callPart(id, name, item['arguments'] ?? item['input'])] };
  }
  if (kind.endsWith('_output')) return { role: 'tool', parts: [resultPart(id, output)] };
  return { role: kind.endsWith('_call') ? 'assistant' : '', parts: [other(kind, item)] };
}

/** Items of one role that follow each other are one message. */
function joined(messages: readonly Message[]): readonly Message[] {
  const all: Message[] = [];
  for (const message of messages) {
    const last = all.at(-1);
    if (last?.role !== message.role) all.push(message);
    else all.splice(-1, 1, { ...last, parts: [...last.parts, ...message.parts] });
  }
  return all;
}

/** Nothing where the answer is an error or is not stored whole. */
function answeredIn(endpoint: Endpoint, { form, content }: LoggedBody): readonly Message[] {
  if (form === 'events') return streamed[endpoint](listOf(content).filter(isRecord));
  return form === 'json' && isRecord(content) ? documents[endpoint](content) : [];
}

const documents: { readonly [E in Endpoint]: (document: JsonRecord) => readonly Message[] } = {
  chat: ({ choices }) =>
    listOf(choices).flatMap((choice) =>
      isRecord(choice) && isRecord(choice['message']) ? [chatMessage(choice['message'])] : [],
    ),
  messages: (document) => ('content' in document ? [blocksMessage(document)] : []),
  responses: ({ output }) => joined(listOf(output).map(itemMessage)),
};

const streamed: {
  readonly [E in Endpoint]: (events: readonly JsonRecord[]) => readonly Message[];
} = {
  chat: (events) => {
    const answers = new Map<unknown, typeof nothingYet>();
    for (const choice of events.flatMap(({ choices }) => listOf(choices)).filter(isRecord)) {
      const before = answers.get(choice['index']) ?? nothingYet;
      answers.set(choice['index'], withEvent(before, 'chat', { choices: [choice] }));
    }
    return [...answers.values()].map(({ text, reasoning, calls }) => ({
      role: 'assistant',
      parts: [
        ...reasoningOf(reasoning),
        ...partsOf(text),
        ...calls.map(({ id, name, arguments: input }) => callPart(id, name, input)),
      ],
    }));
  },
  messages: (events) => {
    const blocks = new Map<unknown, JsonRecord>();
    for (const { index, content_block: block, delta } of events) {
      const before = blocks.get(index);
      if (isRecord(block)) blocks.set(index, block);
      else if (before !== undefined && isRecord(delta)) blocks.set(index, grown(before, delta));
    }
    return blocks.size === 0
      ? []
      : [blocksMessage({ role: 'assistant', content: [...blocks.values()] })];
  },
  responses: (events) => {
    const whole = events.map(({ response }) => response).findLast(isRecord)?.['output'];
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    const items = listOf(whole).length > 0 ? listOf(whole) : done.map(({ item }) => item);
    return joined(items.map(itemMessage));
  },
};

/** The block with a delta added. */
function grown(block: JsonRecord, delta: JsonRecord): JsonRecord {
  const { text, thinking, partial_json: json } = delta;
  const added = (name: string, more: unknown): string => textOf(block[name]) + textOf(more);
  if (text !== undefined) return { ...block, text: added('text', text) };
  if (thinking !== undefined) return { ...block, thinking: added('thinking', thinking) };
  return json === undefined ? block : { ...block, input: added('input', json) };
}
