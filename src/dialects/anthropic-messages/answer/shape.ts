/** The members of an answer and of its events that are read, or whose loss is decided. Others are noted. */
import { fields, kinds, openFields, wholes, type Fields } from '../../../core/shape.ts';
import type { Json } from '../../../json/value.ts';

const citation = fields({
  ...wholes('type', 'url', 'title', 'source', 'cited_text', 'encrypted_index', 'file_id'),
  ...wholes('document_index', 'document_title', 'search_result_index'),
  ...wholes('start_char_index', 'end_char_index', 'start_page_number', 'end_page_number'),
  ...wholes('start_block_index', 'end_block_index'),
});

/** Blocks of other types are carried or noted as a whole. */
const block = kinds(
  ({ type }) => type,
  {
    text: fields({ ...wholes('type', 'text'), citations: citation }),
    thinking: fields(wholes('type', 'thinking', 'signature', 'estimated_tokens')),
    redacted_thinking: fields(wholes('type', 'data')),
    tool_use: fields(wholes('type', 'id', 'name', 'input', 'caller', 'toolset_name')),
  },
  openFields({}),
);

export const messageShape: Fields = fields({
  ...wholes('id', 'type', 'role', 'model', 'usage', 'container', 'diagnostics'),
  ...wholes('stop_reason', 'stop_sequence', 'stop_details'),
  ...wholes('context_management', 'input_transformations'),
  // What vendors say of a call, and no part of an answer.
  ...wholes('provider', 'base_resp', 'amazon-bedrock-invocationMetrics'),
  ...wholes('amazon-bedrock-guardrailAction', 'amazon-bedrock-trace'),
  content: block,
});

/** Deltas of other types are noted by their type. */
const delta = kinds(
  ({ type }) => type,
  {
    text_delta: fields(wholes('type', 'text')),
    thinking_delta: fields(wholes('type', 'thinking', 'estimated_tokens')),
    signature_delta: fields(wholes('type', 'signature')),
    input_json_delta: fields(wholes('type', 'partial_json')),
    citations_delta: fields({ ...wholes('type'), citation }),
  },
  openFields({}),
);

/** By the type of the event. */
export const eventShapes: ReadonlyMap<Json | undefined, Fields> = new Map([
  ['message_start', fields({ ...wholes('type'), message: messageShape })],
  ['content_block_start', fields({ ...wholes('type', 'index'), content_block: block })],
  ['content_block_delta', fields({ ...wholes('type', 'index'), delta })],
  ['content_block_stop', fields(wholes('type', 'index'))],
  [
    'message_delta',
    fields({
      ...wholes('type', 'usage', 'context_management', 'input_transformations'),
      ...wholes('amazon-bedrock-invocationMetrics'),
      delta: fields(wholes('stop_reason', 'stop_sequence', 'stop_details', 'container')),
    }),
  ],
  ['message_stop', fields(wholes('type', 'amazon-bedrock-invocationMetrics'))],
]);
