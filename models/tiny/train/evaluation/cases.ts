/** The held-back cases, as chat-completions requests and as answers that are right or wrong. */
import { isDeepStrictEqual } from 'node:util';
import { tryParse, tryParseObject } from '../../../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../../../src/json/value.ts';

/** A conversation up to the turn that is wanted, in the words of the chat template. */
export interface Case {
  readonly category: string;
  readonly turns: readonly Turn[];
  readonly want: string;
}

interface Turn {
  readonly role: string;
  readonly text: string;
}

/** @throws when the text is not what `questions.py` writes */
export function readCases(text: string): readonly Case[] {
  const list = tryParse(text);
  if (!Array.isArray(list)) throw new Error('the questions are no JSON array');
  return list.map(readCase);
}

function readCase(value: Json): Case {
  const { cat: category, messages, want } = isObject(value) ? value : {};
  if (typeof category !== 'string' || typeof want !== 'string' || !Array.isArray(messages)) {
    throw new Error(`not a case: ${JSON.stringify(value)}`);
  }
  const turns = messages.map(([role, turn]: readonly Json[]) => ({
    role: String(role),
    text: String(turn),
  }));
  return { category, turns, want };
}

/** The request that a client would send for it. */
export function requestOf({ turns }: Case): JsonObject {
  const [first] = turns;
  const tools = first?.role === 'system' ? toolsIn(first.text) : [];
  return {
    model: 'tiny',
    messages: turns.flatMap(messagesOf),
    ...(tools.length === 0 ? {} : { tools }),
    temperature: 0,
    max_tokens: 256,
  };
}

const toolHead = '# Tools\n\n';
const toolLines = /<tools>\n(?<lines>.*)\n<\/tools>/s;
const toolCall = /^<tool_call>\n(?<call>.*)\n<\/tool_call>$/s;
const toolResult = /^<tool_response>\n(?<result>.*)\n<\/tool_response>$/s;
const callId = 'call_1';

function toolsIn(system: string): readonly JsonObject[] {
  const listed = system.slice(Math.max(0, system.indexOf(toolHead)));
  const lines = toolLines.exec(listed)?.groups?.['lines']?.split('\n') ?? [];
  return lines.map((line) => tryParseObject(line)).filter((tool) => tool !== undefined);
}

function messagesOf({ role, text }: Turn): readonly JsonObject[] {
  if (role === 'system') {
    const [content] = text.split(toolHead);
    return content === '' ? [] : [{ role, content: content?.trimEnd() ?? '' }];
  }
  const result = toolResult.exec(text)?.groups?.['result'];
  if (result !== undefined) return [{ role: 'tool', tool_call_id: callId, content: result }];
  const call = callIn(text);
  if (call === undefined) return [{ role, content: text }];
  const fields = { name: call.name, arguments: JSON.stringify(call.arguments) };
  return [
    { role, content: null, tool_calls: [{ id: callId, type: 'function', function: fields }] },
  ];
}

interface Call {
  readonly name: string;
  readonly arguments: Json;
}

function callIn(text: string): Call | undefined {
  const written = toolCall.exec(text)?.groups?.['call'];
  const call = written === undefined ? undefined : tryParseObject(written);
  const name = call?.['name'];
  return typeof name === 'string' ? { name, arguments: call?.['arguments'] ?? null } : undefined;
}

/** Whether the completion says exactly what is wanted: the text, or the one call with its arguments. */
export function isRight({ want }: Case, completion: JsonObject): boolean {
  const { text, calls } = saidIn(completion);
  const wanted = callIn(want);
  if (wanted === undefined) return calls.length === 0 && text === want;
  return calls.length === 1 && isDeepStrictEqual(calls[0], wanted);
}

/** What the model said, for people. */
export function describeAnswer(completion: JsonObject): string {
  const { text, calls } = saidIn(completion);
  return calls.length === 0 ? text : JSON.stringify(calls);
}

interface Said {
  readonly text: string;
  readonly calls: readonly Call[];
}

function saidIn(completion: JsonObject): Said {
  const { choices } = completion;
  const choice = Array.isArray(choices) ? choices[0] : undefined;
  const message = isObject(choice) ? choice['message'] : undefined;
  if (!isObject(message)) throw new Error(`no message: ${JSON.stringify(completion)}`);
  const { content, tool_calls: calls } = message;
  return {
    text: typeof content === 'string' ? content : '',
    calls: Array.isArray(calls) ? calls.map(readCall) : [],
  };
}

function readCall(value: Json): Call {
  const called = isObject(value) ? value['function'] : undefined;
  const { name, arguments: text } = isObject(called) ? called : {};
  return { name: String(name), arguments: tryParse(String(text)) ?? null };
}
