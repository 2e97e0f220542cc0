/** The stream of a response, with every event about its items (wire/responses.md §6.3). */
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { listAt, textAt } from '../support/reading.ts';

/** @param more events before the last one. */
export function responseEvents(
  response: JsonObject,
  more: readonly JsonObject[],
): readonly JsonObject[] {
  const begun = {
    ...response,
    output: [],
    status: 'in_progress',
    usage: null,
    incomplete_details: null,
  };
  const events = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...listAt(response, 'output').flatMap(itemEvents),
    ...more,
    { type: `response.${textAt(response, 'status')}`, response },
  ];
  return events.map((event, sequence_number) => ({ ...event, sequence_number }));
}

type Place = (type: string, members: JsonObject) => JsonObject;

function itemEvents(item: JsonObject, output_index: number): readonly JsonObject[] {
  const item_id = textAt(item, 'id');
  const at: Place = (type, members) => ({
    type: `response.${type}`,
    output_index,
    item_id,
    ...members,
  });
  const within = inside[textAt(item, 'type')];
  const bounds = (item: JsonObject, type: string): JsonObject => ({
    type: `response.output_item.${type}`,
    output_index,
    item,
  });
  return [
    bounds({ ...item, ...within?.begins }, 'added'),
    ...(within?.events(item, at) ?? []),
    bounds(item, 'done'),
  ];
}

interface Inside {
  /** Members of the item in its first event. */
  readonly begins: JsonObject;
  readonly events: (item: JsonObject, at: Place) => readonly JsonObject[];
}

const inside: { readonly [type: string]: Inside } = {
  message: {
    begins: { status: 'in_progress', content: [] },
    events: (item, at) =>
      listAt(item, 'content').flatMap((part, content_index) =>
        contentEvents(part, (type, members) => at(type, { content_index, ...members })),
      ),
  },
  reasoning: {
    begins: { summary: [], content: [], encrypted_content: null },
    events: (item, at) => [
      ...listAt(item, 'content').flatMap((part, content_index) =>
        reasoningEvents(part, (type, members) => at(type, { content_index, ...members })),
      ),
      ...listAt(item, 'summary').flatMap((part, summary_index) =>
        summaryEvents(part, (type, members) => at(type, { summary_index, ...members })),
      ),
    ],
  },
  function_call: {
    begins: { status: 'in_progress', arguments: '' },
    events: (item, at) => callEvents('function_call_arguments', textAt(item, 'arguments'), at),
  },
  shell_call: {
    begins: { status: 'in_progress' },
    // Events of commands name no item.
    events: ({ action }, at) =>
      commandsOf(action).flatMap((command, command_index) =>
        [
          at('shell_call_command.added', { command_index, command: '' }),
          at('shell_call_command.delta', { command_index, delta: command }),
          at('shell_call_command.done', { command_index, command }),
        ].map(({ item_id: _none, ...event }) => event),
      ),
  },
  custom_tool_call: {
    begins: { input: '' },
    events: (item, at) => callEvents('custom_tool_call_input', textAt(item, 'input'), at),
  },
};

function contentEvents(part: JsonObject, at: Place): readonly JsonObject[] {
  const refuses = part['type'] === 'refusal';
  const [name, key] = refuses ? ['refusal', 'refusal'] : ['output_text', 'text'];
  const emptied = refuses ? { refusal: '' } : { text: '', annotations: [] };
  const scores = refuses ? {} : { logprobs: part['logprobs'] ?? [] };
  return [
    at('content_part.added', { part: { ...part, ...emptied } }),
    ...pieces(textAt(part, key)).map((delta) => at(`${name}.delta`, { delta, ...scores })),
    ...listAt(part, 'annotations').map((annotation, annotation_index) =>
      at('output_text.annotation.added', { annotation_index, annotation }),
    ),
    at(`${name}.done`, { [key]: part[key], ...scores }),
    at('content_part.done', { part }),
  ];
}

function reasoningEvents(part: JsonObject, at: Place): readonly JsonObject[] {
  const text = textAt(part, 'text');
  return [
    at('content_part.added', { part: { ...part, text: '' } }),
    ...pieces(text).map((delta) => at('reasoning_text.delta', { delta })),
    at('reasoning_text.done', { text }),
    at('content_part.done', { part }),
  ];
}

function summaryEvents(part: JsonObject, at: Place): readonly JsonObject[] {
  const text = textAt(part, 'text');
  return [
    at('reasoning_summary_part.added', { part: { ...part, text: '' } }),
    ...pieces(text).map((delta) => at('reasoning_summary_text.delta', { delta })),
    at('reasoning_summary_text.done', { text }),
    at('reasoning_summary_part.done', { part }),
  ];
}

function callEvents(name: string, whole: string, at: Place): readonly JsonObject[] {
  const member = name === 'custom_tool_call_input' ? 'input' : 'arguments';
  return [
    ...pieces(whole).map((delta) => at(`${name}.delta`, { delta })),
    at(`${name}.done`, { [member]: whole }),
  ];
}

function commandsOf(action: Json | undefined): readonly Json[] {
  const commands = isObject(action) ? action['commands'] : undefined;
  return Array.isArray(commands) ? commands : [];
}

/** Two halves. */
function pieces(text: string): readonly string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== '');
}
