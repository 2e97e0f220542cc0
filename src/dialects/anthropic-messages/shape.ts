/** The members of a messages request that are read, or known to have no effect. Top-level members: `fields.ts`. */
import { type JsonObject, textOf } from '../../json/value.ts';
import { fields, kinds, openFields, whole, wholes, type Fields } from '../../core/shape.ts';
import { pricedTool, vendorMembers } from '../shared/body/requested-services.ts';
import { messagesFields } from './fields.ts';
import { isClientTool } from './head.ts';

const cache_control = fields(wholes('type', 'ttl'));
const marks = { cache_control };
const byType = ({ type }: JsonObject): JsonObject[string] => type;
/** Blocks are in blocks: their shape is known only when it is requested. */
const held: Fields = {
  members: new Map(),
  open: false,
  kind: (value) => block.kind?.(value) ?? block,
};

const base64 = fields(wholes('type', 'media_type', 'data'));
const source = kinds(byType, {
  base64,
  text: base64,
  url: fields(wholes('type', 'url')),
  file: fields(wholes('type', 'file_id')),
  content: fields({ type: whole, content: held }),
});
const text = fields({ ...wholes('type', 'text', 'citations'), ...marks });

const clientTool = fields({
  ...wholes('type', 'name', 'description', 'input_schema', 'strict', 'defer_loading'),
  // Hints without effect on the answer.
  ...wholes('eager_input_streaming', 'input_examples', 'allowed_callers'),
  ...marks,
});
/** A tool that the vendor defines and the client runs. Its type says everything that the client needs. */
const publishedTool = fields({ ...wholes('type', 'name', 'max_uses', 'model'), ...marks });
const serverTool = openFields({ ...pricedTool, ...wholes('name', 'input_schema'), ...marks });

const tool = kinds(
  (value) => {
    if (isClientTool(value)) return 'own';
    return textOf(value['type']).startsWith('web_search') ? 'search' : 'published';
  },
  { own: clientTool, search: serverTool, published: publishedTool },
);
const toolChange = openFields({
  type: whole,
  tool: openFields({ ...wholes('type', 'name', 'server_name'), definition: tool }),
  ...marks,
});

/** Calls of tools that the service ran. They come with their results. */
const serverCall = fields({
  ...wholes('type', 'id', 'name', 'server_name', 'input', 'caller'),
  ...marks,
});
const kindOfBlock = ({ type }: JsonObject): JsonObject[string] =>
  type !== 'tool_use' && textOf(type).endsWith('_tool_use') ? 'server_tool_use' : type;

const block = kinds(kindOfBlock, {
  text,
  image: fields({
    type: whole,
    source,
    transformations: fields(wholes('oversized_image')),
    ...marks,
  }),
  document: fields({
    ...wholes('type', 'title', 'context'),
    source,
    citations: fields(wholes('enabled')),
    ...marks,
  }),
  search_result: fields({
    ...wholes('type', 'source', 'title'),
    content: held,
    citations: fields(wholes('enabled')),
    ...marks,
  }),
  thinking: fields({ ...wholes('type', 'thinking', 'signature'), ...marks }),
  redacted_thinking: fields({ ...wholes('type', 'data'), ...marks }),
  tool_use: fields({
    ...wholes('type', 'id', 'name', 'input'),
    caller: fields(wholes('type', 'tool_id')),
    ...marks,
  }),
  tool_result: fields({
    ...wholes('type', 'tool_use_id', 'is_error'),
    content: held,
    ...marks,
  }),
  tool_reference: fields({ ...wholes('type', 'tool_name'), ...marks }),
  server_tool_use: serverCall,
  tool_addition: toolChange,
  tool_removal: toolChange,
});

const format = fields(wholes('type', 'schema'));

/** A request of this dialect. What is not among its own members is kept by name (`request/read.ts`). */
export const requestShape = fields({
  ...wholes(...messagesFields),
  ...vendorMembers,
  messages: fields({
    ...wholes('role', 'clear_at'),
    content: block,
    output_config: fields(wholes('effort')),
  }),
  system: kinds(byType, { text }),
  tools: tool,
  tool_choice: fields(wholes('type', 'name', 'disable_parallel_tool_use')),
  thinking: fields(wholes('type', 'budget_tokens', 'display')),
  output_config: openFields({ ...wholes('effort'), format }),
  output_format: format,
  metadata: openFields(wholes('user_id')),
  cache_control,
});
