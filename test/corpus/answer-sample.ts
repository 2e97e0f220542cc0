/** One answer of an upstream, and what clients of the other dialects must read in it. */
import type { JsonObject } from '../../src/json/value.ts';
import { listAt, objectAt, textAt, type AnyDialect } from '../support/reading.ts';
import { chatChunk, chatDone, chatFrame, chatUsageChunk } from '../upstream/chat.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messagesFrame,
  messageStop,
} from '../upstream/messages.ts';
import { responsesFrame } from '../upstream/responses.ts';
import type { Answer } from '../upstream/scripted.ts';
import { responseEvents } from './response-events.ts';

/** What a client must read in an answer. */
export interface Told {
  /** What the client's document holds, beside whatever else. */
  readonly tells: JsonObject;
  /** Put over the client's minimal request. */
  readonly asked?: JsonObject;
  /** Paths that are noted, as rows spell them. */
  readonly noted?: readonly string[];
}

/** One answer, and what the client reads in it that was there first: chat's of messages, and the other way round. */
export interface FirstSample<Document> extends Told {
  readonly name: string;
  readonly answer: Document;
}

export interface AnswerSample<Document> {
  readonly name: string;
  readonly answer: Document;
  /** A client of each other dialect. */
  readonly to: { readonly [D in AnyDialect]?: Told };
  /** Events of the stream before its last one, beside those of the document. */
  readonly events?: readonly JsonObject[];
}

const blockDeltas: {
  readonly [type: string]: readonly (readonly [delta: string, key: string])[];
} = {
  text: [['text_delta', 'text']],
  thinking: [
    ['thinking_delta', 'thinking'],
    ['signature_delta', 'signature'],
  ],
};

/** The events of a message. */
function messageEvents(message: JsonObject): readonly JsonObject[] {
  const { content: _content, stop_reason, stop_sequence, stop_details, container, usage } = message;
  const blocks = listAt(message, 'content').flatMap((block, index) => blockEvents(block, index));
  const {
    service_tier: _tier,
    inference_geo: _geo,
    cache_creation: _split,
    speed: _speed,
    ...counted
  } = objectAt(message, 'usage');
  return [
    {
      type: 'message_start',
      message: { ...message, content: [], stop_reason: null, stop_sequence: null, usage },
    },
    ...blocks,
    {
      type: 'message_delta',
      delta: { stop_reason, stop_sequence, stop_details, container },
      usage: counted,
      ...picked(message, ['context_management', 'input_transformations']),
    },
    messageStop,
  ];
}

function blockEvents(block: JsonObject, index: number): readonly JsonObject[] {
  const type = textAt(block, 'type');
  if (type === 'tool_use') {
    const json = JSON.stringify(block['input']);
    return [
      blockStart(index, { ...block, input: {} }),
      blockDelta(index, { type: 'input_json_delta', partial_json: json }),
      blockStop(index),
    ];
  }
  if (type === 'compaction') {
    return [
      blockStart(index, { ...block, content: null }),
      blockDelta(index, { type: 'compaction_delta', content: block['content'] ?? null }),
      blockStop(index),
    ];
  }
  const deltas = blockDeltas[type] ?? [];
  const emptied = Object.fromEntries(deltas.map(([, key]) => [key, '']));
  return [
    blockStart(index, { ...block, ...emptied, ...(type === 'text' ? { citations: null } : {}) }),
    ...deltas.map(([delta, key]) =>
      blockDelta(index, {
        type: delta,
        [key]: block[key],
        ...(type === 'thinking' && key === 'thinking' ? { estimated_tokens: 5 } : {}),
      }),
    ),
    ...listAt(block, 'citations').map((citation) =>
      blockDelta(index, { type: 'citations_delta', citation }),
    ),
    blockStop(index),
  ];
}

function picked(from: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(keys.filter((key) => key in from).map((key) => [key, from[key]]));
}

/** The chunks of a completion. */
function completionChunks(completion: JsonObject): readonly JsonObject[] {
  const {
    choices: _choices,
    usage: _usage,
    object: _object,
    metadata: _metadata,
    ...shared
  } = completion;
  const choice = listAt(completion, 'choices')[0] ?? {};
  const { message: _message, finish_reason: finish, ...beside } = choice;
  const { tool_calls: _calls, annotations: _annotations, ...delta } = objectAt(choice, 'message');
  const calls = listAt(objectAt(choice, 'message'), 'tool_calls');
  const chunk = (part: JsonObject): JsonObject => ({
    ...chatChunk(part),
    ...shared,
    obfuscation: 'x',
  });
  return [
    chunk(delta),
    ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
    {
      ...chunk({}),
      choices: [{ ...beside, index: 0, delta: {}, finish_reason: finish }],
    },
    chatUsageChunk(objectAt(completion, 'usage')),
  ];
}

/** The events of a document's stream. */
export function eventsOf(
  upstream: AnyDialect,
  document: JsonObject,
  more: readonly JsonObject[] = [],
): readonly JsonObject[] {
  switch (upstream) {
    case 'chat':
      return completionChunks(document);
    case 'messages':
      return messageEvents(document);
    case 'responses':
      return responseEvents(document, more);
    default:
      return upstream satisfies never;
  }
}

const frames: { readonly [D in AnyDialect]: (event: JsonObject) => string } = {
  chat: chatFrame,
  messages: messagesFrame,
  responses: responsesFrame,
};

/** The answer as the request asks for it. */
export function answering(
  upstream: AnyDialect,
  document: JsonObject,
  more: readonly JsonObject[] = [],
): (request: { json: JsonObject }) => Answer {
  return ({ json }) => {
    if (json['stream'] !== true) return { body: JSON.stringify(document) };
    const events = eventsOf(upstream, document, more).map(frames[upstream]);
    return {
      body: [...events, ...(upstream === 'chat' ? [chatDone] : [])].join(''),
      framing: 'chunked',
    };
  };
}
