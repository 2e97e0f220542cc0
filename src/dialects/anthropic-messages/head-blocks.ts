/** Checks content blocks; types that are not known here pass (wire/messages.md §4.1; B53, B59–B61). */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { type FieldPath, invalidRequest } from '../../core/errors.ts';
import { mayBeImage } from '../../core/image-bytes.ts';
import { isInternalUrl } from '../../core/internal-address.ts';
import { isObject } from '../../core/json.ts';
import type { Pace, Steps } from '../../core/steps.ts';
import {
  isArray,
  isPresent,
  pathOf,
  readBoolean,
  readString,
  required,
  requireString,
  wrongType,
} from './fields.ts';

/** Where a block stands. `result` is the inside of a tool result. */
export interface BlockPlace {
  readonly path: FieldPath;
  readonly role: 'user' | 'assistant' | 'system' | 'result';
}

const base64Text = /^[A-Za-z0-9+/_-]*={0,2}$/;
const maxUrlLength = 2048;
const webUrl = /^https?:\/\//i;
const credentials = /^https?:\/\/[^/?#]*@/i;

/** @throws GatewayError `invalid_request` with the path of the field. */
export function checkBlock(block: Json, place: BlockPlace): JsonObject {
  const { path } = place;
  if (!isObject(block)) throw wrongType(path, 'a valid dictionary');
  const type = requireString({ of: block, key: 'type', at: path });
  checkRole(type, place);
  switch (type) {
    case 'text':
      requireString({ of: block, key: 'text', at: path });
      break;
    case 'image':
    case 'document':
      checkSource(block, path, type);
      break;
    case 'thinking':
      requireString({ of: block, key: 'thinking', at: path });
      readString({ of: block, key: 'signature', at: path });
      break;
    case 'redacted_thinking':
      requireString({ of: block, key: 'data', at: path });
      break;
    case 'tool_use':
      checkToolUse(block, path);
      break;
    case 'tool_result':
      checkToolResult(block, path);
      break;
    default:
      break;
  }
  return block;
}

/**
 * The blocks of a list in steps: one result, or one document, may hold very many. What holds them is checked first, as
 * it is without steps, so that the first fault is the same.
 * @returns them, those that stand in others left out
 */
export function* blocksChecking(
  blocks: readonly Json[],
  { path, role }: BlockPlace,
  pace: Pace,
): Steps<readonly JsonObject[]> {
  const checked: JsonObject[] = [];
  for (const [j, block] of blocks.entries()) {
    const place = { path: [...path, j], role };
    const held = heldIn(block);
    checked.push(checkBlock(held?.outer ?? block, place));
    if (held !== undefined) {
      const inner = { path: [...place.path, ...held.at], role: 'result' } as const;
      yield* blocksChecking(held.blocks, inner, pace);
    }
    if (pace.due) yield;
  }
  return checked;
}

interface HeldBlocks {
  readonly blocks: readonly Json[];
  readonly at: FieldPath;
  /** What holds them, without them. */
  readonly outer: JsonObject;
}

/** The blocks that stand in this one. */
function heldIn(block: Json): HeldBlocks | undefined {
  if (!isObject(block)) return undefined;
  const { type, content, source } = block;
  if (type === 'tool_result') {
    if (!isArray(content)) return undefined;
    return { blocks: content, at: ['content'], outer: { ...block, content: [] } };
  }
  if ((type !== 'document' && type !== 'image') || !isObject(source)) return undefined;
  const { content: blocks } = source;
  if (source['type'] !== 'content' || !isArray(blocks)) return undefined;
  const outer = { ...block, source: { ...source, content: [] } };
  return { blocks, at: ['source', 'content'], outer };
}

function checkRole(type: string, { path, role }: BlockPlace): void {
  if (type === 'tool_use' && role !== 'assistant') {
    throw invalidRequest('`tool_use` blocks can only be in `assistant` messages', path);
  }
  if (type === 'tool_result' && role !== 'user') {
    throw invalidRequest('`tool_result` blocks can only be in `user` messages', path);
  }
}

function checkToolUse(block: JsonObject, path: FieldPath): void {
  for (const key of ['id', 'name']) {
    const field = { of: block, key, at: path };
    if (requireString(field) === '') {
      throw invalidRequest('String should have at least 1 character', pathOf(field));
    }
  }
  const { input } = block;
  if (input === undefined) throw required([...path, 'input']);
  if (!isObject(input)) throw wrongType([...path, 'input'], 'a valid dictionary');
}

function checkToolResult(block: JsonObject, path: FieldPath): void {
  requireString({ of: block, key: 'tool_use_id', at: path });
  readBoolean({ of: block, key: 'is_error', at: path });
  const { content } = block;
  if (!isPresent(content) || typeof content === 'string') return;
  if (!isArray(content)) {
    throw wrongType([...path, 'content'], 'a valid string or a list of content blocks');
  }
  content.forEach((inner, j) =>
    checkBlock(inner, { path: [...path, 'content', j], role: 'result' }),
  );
}

function checkSource(block: JsonObject, path: FieldPath, type: 'image' | 'document'): void {
  const { source } = block;
  const at = [...path, 'source'];
  if (source === undefined) throw required(at);
  if (!isObject(source)) throw wrongType(at, 'a valid dictionary');
  switch (requireString({ of: source, key: 'type', at })) {
    case 'base64':
      return checkBase64(source, at, type);
    case 'url':
      return checkUrl(requireString({ of: source, key: 'url', at }), [...at, 'url']);
    case 'text':
      requireString({ of: source, key: 'data', at });
      return;
    case 'content':
      return checkContent(source['content'], [...at, 'content']);
    default:
      return;
  }
}

/** A document that is made of blocks. */
function checkContent(content: Json | undefined, path: FieldPath): void {
  if (!isArray(content)) return;
  content.forEach((inner, j) => checkBlock(inner, { path: [...path, j], role: 'result' }));
}

function checkBase64(source: JsonObject, at: FieldPath, type: 'image' | 'document'): void {
  const mediaType = requireString({ of: source, key: 'media_type', at });
  if (type === 'image' && (!mediaType.startsWith('image/') || mediaType === 'image/svg+xml')) {
    throw wrongType(
      [...at, 'media_type'],
      "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    );
  }
  const data = requireString({ of: source, key: 'data', at });
  if (data === '' || !base64Text.test(data)) {
    throw invalidRequest('The data should be valid base64 of at least one byte', [...at, 'data']);
  }
  if (type === 'image' && !mayBeImage(mediaType, data)) {
    throw invalidRequest('The data should be a JPEG, PNG, GIF or WebP image', [...at, 'data']);
  }
}

function checkUrl(url: string, path: FieldPath): void {
  if (!webUrl.test(url)) throw invalidRequest('Only http and https URLs are supported', path);
  if (credentials.test(url)) throw invalidRequest('The URL should not contain credentials', path);
  if (url.length > maxUrlLength) {
    throw invalidRequest(`URL should have at most ${maxUrlLength} characters`, path);
  }
  if (isInternalUrl(url)) {
    throw invalidRequest('The URL should not point into a private network', path);
  }
}
