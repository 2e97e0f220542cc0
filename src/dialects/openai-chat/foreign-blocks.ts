/**
 * Blocks that only the messages dialect knows, as the text and media that they amount to
 * (wire/translation.md §3.5, §3.8, §6). What has no such form gives undefined.
 */
import type { Json, JsonObject, MediaPart, Part } from '../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { isArray } from './fields.ts';

/** @throws GatewayError `invalid_request` for files of another provider's store. */
export function readForeignBlock(block: JsonObject, path: FieldPath): readonly Part[] | undefined {
  switch (block['type']) {
    case 'text':
      return textParts(block['text']);
    case 'image':
    case 'document':
      return readSourced(block, path);
    case 'search_result':
      return textParts(searchResultText(block));
    case 'tool_reference':
      return textParts(`[tool now available: ${textOf(block['tool_name'])}]`);
    case 'compaction':
      return textParts(block['content']);
    default:
      return serverToolParts(block);
  }
}

function textParts(text: Json | undefined): readonly Part[] {
  return typeof text === 'string' && text !== '' ? [{ type: 'text', text }] : [];
}

function readSourced(block: JsonObject, path: FieldPath): readonly Part[] | undefined {
  const { source, title } = block;
  if (!isObject(source)) return undefined;
  const kind = block['type'] === 'image' ? 'image' : 'document';
  const common = {
    type: 'media' as const,
    kind,
    mediaType: textOf(source['media_type']),
    ...(typeof title === 'string' && title !== '' ? { name: title } : {}),
  } satisfies Omit<MediaPart, 'source'>;
  switch (source['type']) {
    case 'base64':
      return [{ ...common, source: { base64: textOf(source['data']) } }];
    case 'url':
      return [{ ...common, source: { url: textOf(source['url']) } }];
    case 'text':
      return [{ ...common, source: { text: textOf(source['data']) } }];
    case 'content':
      return [...textParts(title), ...contentParts(source['content'], path)];
    case 'file':
      throw unsupported([...path, 'source'], "Files belong to one provider's file store.");
    default:
      return undefined;
  }
}

/** A string or a list of text and image blocks. */
function contentParts(content: Json | undefined, path: FieldPath): readonly Part[] {
  if (!isArray(content)) return textParts(content);
  return content.flatMap((block) => (isObject(block) ? (readForeignBlock(block, path) ?? []) : []));
}

function searchResultText(block: JsonObject): string {
  const { content } = block;
  const texts = isArray(content)
    ? content.map((piece) => (isObject(piece) ? textOf(piece['text']) : ''))
    : [];
  return [textOf(block['title']), textOf(block['source']), ...texts]
    .filter((line) => line !== '')
    .join('\n');
}

/** Calls and results of tools that the other provider ran: the model keeps the knowledge. */
function serverToolParts(block: JsonObject): readonly Part[] | undefined {
  const type = textOf(block['type']);
  if (type === 'server_tool_use' || type === 'mcp_tool_use') {
    const input = isObject(block['input']) ? block['input'] : {};
    const asked =
      textOf(input['query']) === '' ? JSON.stringify(input) : `"${textOf(input['query'])}"`;
    return textParts(`[${textOf(block['name'])} ${asked}]`);
  }
  if (!type.endsWith('_tool_result')) return undefined;
  return textParts(resultText(block['content']));
}

function resultText(content: Json | undefined): string {
  if (isObject(content)) {
    const failure = textOf(content['error_code']);
    return failure === '' ? `[result: ${JSON.stringify(content)}]` : `[failed: ${failure}]`;
  }
  if (!isArray(content)) return typeof content === 'string' ? `[result: ${content}]` : '';
  const results = content.filter(isObject);
  const lines = results.map((result) =>
    [textOf(result['title']), textOf(result['url']), textOf(result['text'])]
      .filter((line) => line !== '')
      .join(' '),
  );
  return `[${results.length} ${results.length === 1 ? 'result' : 'results'}: ${lines.join('; ')}]`;
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
