/** Legal documents and streams of a Responses server (wire/responses.md §5, §6.3). */
import type { JsonObject } from '../../src/json/value.ts';
import type { Answer } from './scripted.ts';

export const responsesUsage = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 14,
} as const;

export function textItem(text: string): JsonObject {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }];
  return { id: 'msg_scripted', type: 'message', status: 'completed', role: 'assistant', content };
}

export function callItem(id: string, name: string, args: string): JsonObject {
  const call = { id: `fc_${id}`, call_id: id, name, arguments: args };
  return { type: 'function_call', status: 'completed', ...call };
}

export function customCallItem(id: string, name: string, input: string): JsonObject {
  return {
    type: 'custom_tool_call',
    status: 'completed',
    id: `ctc_${id}`,
    call_id: id,
    name,
    input,
  };
}

export function reasoningItem(text: string, blob: string): JsonObject {
  const summary = text === '' ? [] : [{ type: 'summary_text', text }];
  return { id: `rs_${blob}`, type: 'reasoning', summary, encrypted_content: blob };
}

/** The response object of an answer. */
export function responsesDocument(
  output: readonly JsonObject[],
  more: JsonObject = {},
): JsonObject {
  return {
    id: 'resp_scripted',
    object: 'response',
    created_at: 1_700_000_000,
    status: 'completed',
    error: null,
    incomplete_details: null,
    model: 'upstream-model',
    output,
    usage: responsesUsage,
    ...more,
  };
}

/** All events of a stream with these items, in the order of the service. */
export function responsesEvents(
  output: readonly JsonObject[],
  more: JsonObject = {},
): readonly JsonObject[] {
  const last = responsesDocument(output, more);
  const begun = { ...last, output: [], status: 'in_progress', usage: null };
  const events = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...output.flatMap(itemEvents),
    { type: `response.${String(last['status'])}`, response: last },
  ];
  return events.map((event, sequence) => ({ ...event, sequence_number: sequence }));
}

function itemEvents(item: JsonObject, index: number): readonly JsonObject[] {
  const place = { output_index: index, item_id: item['id'] ?? '' };
  const event = (type: string, members: JsonObject): JsonObject => ({
    type: `response.${type}`,
    ...place,
    ...members,
  });
  const bounds = (added: JsonObject, between: readonly JsonObject[]): readonly JsonObject[] => [
    { type: 'response.output_item.added', output_index: index, item: { ...item, ...added } },
    ...between,
    { type: 'response.output_item.done', output_index: index, item },
  ];
  switch (item['type']) {
    case 'message': {
      const [part] = item['content'] as readonly JsonObject[];
      const text = String(part?.['text'] ?? '');
      const at = { content_index: 0 };
      return bounds({ status: 'in_progress', content: [] }, [
        event('content_part.added', { ...at, part: { ...part, text: '' } }),
        ...piecesOf(text).map((delta) => event('output_text.delta', { ...at, delta })),
        event('output_text.done', { ...at, text }),
        event('content_part.done', { ...at, part: part ?? {} }),
      ]);
    }
    case 'reasoning': {
      const [part] = item['summary'] as readonly JsonObject[];
      if (part === undefined) return bounds({ encrypted_content: 'begun' }, []);
      const text = String(part['text']);
      const at = { summary_index: 0 };
      return bounds({ summary: [], encrypted_content: 'begun' }, [
        event('reasoning_summary_part.added', { ...at, part: { ...part, text: '' } }),
        ...piecesOf(text).map((delta) => event('reasoning_summary_text.delta', { ...at, delta })),
        event('reasoning_summary_text.done', { ...at, text }),
        event('reasoning_summary_part.done', { ...at, part }),
      ]);
    }
    case 'custom_tool_call': {
      const input = String(item['input']);
      return bounds({ status: 'in_progress', input: '' }, [
        ...piecesOf(input).map((delta) => event('custom_tool_call_input.delta', { delta })),
        event('custom_tool_call_input.done', { input }),
      ]);
    }
    default: {
      const args = String(item['arguments'] ?? '');
      return bounds({ status: 'in_progress', arguments: '' }, [
        ...piecesOf(args).map((delta) => event('function_call_arguments.delta', { delta })),
        event('function_call_arguments.done', { arguments: args }),
      ]);
    }
  }
}

/** Some characters each, and 64 pieces at most. */
function piecesOf(text: string): readonly string[] {
  const size = Math.max(4, Math.ceil(text.length / 64));
  return text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? [];
}

export function responsesFrame(event: JsonObject): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** An answer as the request asks for it. */
export function responsesAnswer(
  output: readonly JsonObject[],
  { stream, ...more }: JsonObject & { readonly stream: boolean },
): Answer {
  return stream
    ? { body: responsesEvents(output, more).map(responsesFrame), framing: 'chunked' }
    : { body: JSON.stringify(responsesDocument(output, more)) };
}
