/** An answer of any endpoint as it comes in: what was said so far, and how it ended. */
import { isRecord, textOf, type JsonRecord } from './request.ts';
import type { AssistantTurn, Endpoint, ToolCall } from './turns.ts';

export interface Answer extends AssistantTurn {
  /** Why it ended, in the endpoint's word; undefined while it runs. */
  readonly finish: string | undefined;
  /** An error within the stream. */
  readonly error: string | undefined;
  /** As the endpoint reported it. */
  readonly usage: JsonRecord | undefined;
}

export const nothingYet: Answer = {
  role: 'assistant',
  text: '',
  reasoning: '',
  calls: [],
  finish: undefined,
  error: undefined,
  usage: undefined,
};

/** The answer with one more event of the stream; events that say nothing leave it as it is. */
export function withEvent(answer: Answer, endpoint: Endpoint, event: unknown): Answer {
  if (!isRecord(event)) return answer;
  const { error } = event;
  if (isRecord(error)) return { ...answer, error: textOf(error['message']) };
  return readers[endpoint].event(answer, event);
}

/** A whole answer. */
export function documentAnswer(endpoint: Endpoint, document: unknown): Answer {
  if (!isRecord(document)) return nothingYet;
  return readers[endpoint].document(document);
}

interface AnswerReader {
  readonly event: (answer: Answer, event: JsonRecord) => Answer;
  readonly document: (document: JsonRecord) => Answer;
}

function withChunk(answer: Answer, event: JsonRecord): Answer {
  const usage = isRecord(event['usage']) ? event['usage'] : answer.usage;
  const choice = firstOf(event['choices']);
  if (!isRecord(choice)) return { ...answer, usage };
  const delta = isRecord(choice['delta']) ? choice['delta'] : {};
  const finish = choice['finish_reason'];
  return {
    ...answer,
    usage,
    text: answer.text + textOf(delta['content']) + textOf(delta['refusal']),
    reasoning: answer.reasoning + textOf(delta['reasoning_content'] ?? delta['reasoning']),
    calls: withCallDeltas(answer.calls, delta['tool_calls']),
    finish: typeof finish === 'string' ? finish : answer.finish,
  };
}

function withCallDeltas(calls: readonly ToolCall[], deltas: unknown): readonly ToolCall[] {
  if (!Array.isArray(deltas)) return calls;
  const grown = [...calls];
  for (const delta of deltas as readonly unknown[]) {
    if (!isRecord(delta)) continue;
    const index = typeof delta['index'] === 'number' ? delta['index'] : grown.length;
    const named = isRecord(delta['function']) ? delta['function'] : {};
    const before = grown[index] ?? { id: '', name: '', arguments: '' };
    grown[index] = {
      id: before.id + textOf(delta['id']),
      name: before.name + textOf(named['name']),
      arguments: before.arguments + textOf(named['arguments']),
    };
  }
  return grown.filter((call) => call !== undefined);
}

function chatDocument(document: JsonRecord): Answer {
  const choice = firstOf(document['choices']);
  const message = isRecord(choice) && isRecord(choice['message']) ? choice['message'] : {};
  const calls = Array.isArray(message['tool_calls'])
    ? (message['tool_calls'] as readonly unknown[])
    : [];
  return {
    ...nothingYet,
    text: textOf(message['content']) + textOf(message['refusal']),
    reasoning: textOf(message['reasoning_content'] ?? message['reasoning']),
    calls: withCallDeltas(
      [],
      calls.map((call, index) => (isRecord(call) ? { ...call, index } : call)),
    ),
    finish: isRecord(choice) ? textOf(choice['finish_reason']) : undefined,
    usage: isRecord(document['usage']) ? document['usage'] : undefined,
  };
}

function withMessagesEvent(answer: Answer, event: JsonRecord): Answer {
  switch (event['type']) {
    case 'message_start': {
      const message = isRecord(event['message']) ? event['message'] : {};
      return { ...answer, usage: isRecord(message['usage']) ? message['usage'] : answer.usage };
    }
    case 'content_block_start':
      return withBlock(answer, event['content_block']);
    case 'content_block_delta':
      return withBlockDelta(answer, event['delta']);
    case 'message_delta': {
      const delta = isRecord(event['delta']) ? event['delta'] : {};
      const usage = isRecord(event['usage'])
        ? { ...answer.usage, ...event['usage'] }
        : answer.usage;
      const finish = delta['stop_reason'];
      return { ...answer, usage, finish: typeof finish === 'string' ? finish : answer.finish };
    }
    default:
      return answer;
  }
}

function withBlock(answer: Answer, block: unknown): Answer {
  if (!isRecord(block)) return answer;
  const said = {
    ...answer,
    text: answer.text + textOf(block['text']),
    reasoning: answer.reasoning + textOf(block['thinking']),
  };
  if (block['type'] !== 'tool_use') return said;
  const input = isRecord(block['input']) ? block['input'] : {};
  const call = {
    id: textOf(block['id']),
    name: textOf(block['name']),
    arguments: Object.keys(input).length === 0 ? '' : JSON.stringify(input),
  };
  return { ...said, calls: [...answer.calls, call] };
}

function withBlockDelta(answer: Answer, delta: unknown): Answer {
  if (!isRecord(delta)) return answer;
  const more = textOf(delta['partial_json']);
  const last = answer.calls.at(-1);
  return {
    ...answer,
    text: answer.text + textOf(delta['text']),
    reasoning: answer.reasoning + textOf(delta['thinking']),
    calls:
      more === '' || last === undefined
        ? answer.calls
        : [...answer.calls.slice(0, -1), { ...last, arguments: last.arguments + more }],
  };
}

function messagesDocument(document: JsonRecord): Answer {
  const blocks = Array.isArray(document['content'])
    ? (document['content'] as readonly unknown[])
    : [];
  const said = blocks.reduce<Answer>((answer, block) => withBlock(answer, block), nothingYet);
  return {
    ...said,
    finish: textOf(document['stop_reason']),
    usage: isRecord(document['usage']) ? document['usage'] : undefined,
  };
}

function withResponsesEvent(answer: Answer, event: JsonRecord): Answer {
  const delta = textOf(event['delta']);
  switch (event['type']) {
    case 'response.output_text.delta':
    case 'response.refusal.delta':
      return { ...answer, text: answer.text + delta };
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
      return { ...answer, reasoning: answer.reasoning + delta };
    case 'response.output_item.done':
      return withCallItem(answer, event['item']);
    case 'response.completed':
    case 'response.incomplete':
    case 'response.failed':
      return isRecord(event['response']) ? withEnd(answer, event['response']) : answer;
    default:
      return answer;
  }
}

function responsesDocument(document: JsonRecord): Answer {
  const items = Array.isArray(document['output']) ? (document['output'] as readonly unknown[]) : [];
  const said = items.reduce<Answer>((answer, item) => {
    if (!isRecord(item)) return answer;
    const text = answer.text + textsOf(item['content']);
    if (item['type'] === 'message') return { ...answer, text };
    const reasoning = answer.reasoning + textsOf(item['summary']);
    return item['type'] === 'reasoning' ? { ...answer, reasoning } : withCallItem(answer, item);
  }, nothingYet);
  return withEnd(said, document);
}

function withCallItem(answer: Answer, item: unknown): Answer {
  if (!isRecord(item)) return answer;
  const { type, call_id: id, name } = item;
  if (type !== 'function_call' && type !== 'custom_tool_call') return answer;
  const given = textOf(type === 'function_call' ? item['arguments'] : item['input']);
  const call = { id: textOf(id), name: textOf(name), arguments: given };
  return { ...answer, calls: [...answer.calls, call] };
}

/** Why it ended is in the details where it was cut. */
function withEnd(answer: Answer, response: JsonRecord): Answer {
  const { status, incomplete_details: details, usage, error } = response;
  const reason = isRecord(details) ? textOf(details['reason']) : '';
  return {
    ...answer,
    finish: reason === '' ? textOf(status) : reason,
    error: isRecord(error) ? textOf(error['message']) : answer.error,
    usage: isRecord(usage) ? usage : answer.usage,
  };
}

function textsOf(parts: unknown): string {
  if (!Array.isArray(parts)) return '';
  return (parts as readonly unknown[])
    .map((part) => (isRecord(part) ? textOf(part['text']) + textOf(part['refusal']) : ''))
    .join('');
}

const readers: { readonly [E in Endpoint]: AnswerReader } = {
  chat: { event: withChunk, document: chatDocument },
  messages: { event: withMessagesEvent, document: messagesDocument },
  responses: { event: withResponsesEvent, document: responsesDocument },
};

function firstOf(list: unknown): unknown {
  return Array.isArray(list) ? (list as readonly unknown[])[0] : undefined;
}
