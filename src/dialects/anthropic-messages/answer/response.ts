/** Reads a whole messages answer. */
import type {
  Citation,
  Conversation,
  DialectId,
  DocumentPlace,
  OpaquePart,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from '../../../core/conversation.ts';
import type { AnswerContext } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { FinishReason, Generation, Usage } from '../../../core/generation.ts';
import { isSealed } from '../../../core/secret.ts';
import { type Json, type JsonObject, isObject, textOf, isArray } from '../../../json/value.ts';
import {
  answerObjects,
  answerText,
  cutArguments,
  isCutBy,
  wrongType,
} from '../../shared/answers.ts';
import { placeForClient } from '../../shared/request/document-citations.ts';
import { sealCall, sealReasoning } from '../../shared/seals.ts';
import { AnswerCallIds, originalToolName } from '../../shared/tool-names.ts';
import {
  beginsObject,
  brokenArguments,
  toolInput,
  truncatedInput,
} from '../../shared/request/tools.ts';
import { readErrorValue } from '../errors.ts';
import { isPresent } from '../fields.ts';
import { readStop, readUsage, writeStop, writeUsage } from './usage.ts';

/**
 * @throws GatewayError the upstream's error if the document is one, `upstream_invalid` if it is
 * no answer at all.
 */
export function readResponse(body: JsonObject): Generation {
  const { content } = body;
  if (!isArray(content)) {
    if (looksLikeError(body)) throw readErrorValue(body);
    throw new GatewayError('upstream_invalid', 'The upstream answered without content.');
  }
  const finish = readStop(body) ?? ({ kind: 'other' } as const);
  const parts: Part[] = [];
  for (const [i, block] of content.entries()) {
    if (!isObject(block)) throw wrongType('a content block');
    const isCut = i === content.length - 1 && isCutBy(finish);
    parts.push(readBlock(block, isCut));
  }
  // Null or missing is a natural end; anything else that is not text hides why the answer ended.
  const reason = body['stop_reason'];
  if (isPresent(reason) && typeof reason !== 'string') throw wrongType('a stop_reason');
  const usage = readUsage(body['usage']);
  return {
    id: textOf(body['id']),
    model: textOf(body['model']),
    parts,
    finish,
    ...(usage === undefined ? {} : { usage }),
  };
}

function looksLikeError(body: JsonObject): boolean {
  if (isPresent(body['error']) || body['type'] === 'error') return true;
  return typeof body['message'] === 'string' || isPresent(body['detail']);
}

/** A content block of an answer. @param isCut the answer was cut within it */
function readBlock(block: JsonObject, isCut: boolean): Part {
  switch (block['type']) {
    case 'text': {
      const citations = answerCitations(block['citations']);
      return {
        type: 'text',
        text: answerText(block['text'], 'a text'),
        ...(citations.length === 0 ? {} : { citations }),
      };
    }
    case 'thinking': {
      const signature = answerText(block['signature'], 'a signature');
      return {
        type: 'reasoning',
        text: answerText(block['thinking'], 'thinking'),
        ...(signature === '' ? {} : { signature }),
      };
    }
    case 'redacted_thinking':
      return {
        type: 'reasoning',
        text: '',
        encrypted: answerText(block['data'], 'redacted thinking'),
      };
    case 'tool_use':
      return readToolUse(block, (isCut ? cutText : inputText)(block['input']));
    default:
      if (textOf(block['type']) === '') throw wrongType('a content block');
      return { type: 'opaque', dialect: 'anthropic-messages', value: block };
  }
}

/** Some servers send the input as text. */
export function inputText(input: Json | undefined): string {
  return typeof input === 'string' ? input : JSON.stringify(input ?? {});
}

/** Text shows by itself whether it was cut. */
function cutText(input: Json | undefined): string {
  return isObject(input) ? cutArguments(input) : inputText(input);
}

/**
 * A call; `caller` is retained where it is not the plain `direct`.
 * @throws GatewayError `upstream_invalid` for a call of nothing: no client can run it.
 */
export function readToolUse(block: JsonObject, argumentsJson: string): ToolCallPart {
  const { caller } = block;
  const name = textOf(block['name']);
  if (name === '') {
    throw new GatewayError('upstream_invalid', 'The upstream sent a call without a name.');
  }
  const plain = !isObject(caller) || caller['type'] === 'direct';
  return {
    type: 'tool-call',
    id: callId(block['id']),
    name,
    argumentsJson,
    ...(plain ? {} : { extras: { 'anthropic-messages': { caller } } }),
  };
}

function callId(id: Json | undefined): string {
  return typeof id === 'number' ? String(id) : textOf(id);
}

// Writes a whole messages answer.

/** The document that a client of this dialect gets. An empty answer has `content: []`. */
export function writeResponse(generation: Generation, context: AnswerContext): JsonObject {
  const finish = reachedLimit(generation, context)
    ? ({ ...generation.finish, kind: 'length' } as const)
    : generation.finish;
  const writing: Writing = { blocks: new AnswerBlocks(context), context, finish };
  const content: JsonObject[] = [];
  let called = false;
  for (const part of generation.parts) {
    // Line breaks between calls are not a block: the service would refuse it in the history.
    if (!called || !(part.type === 'text' && part.text.trim() === ''))
      content.push(...writePart(part, writing));
    called ||= part.type === 'tool-call';
  }
  const ending = {
    reason: finish,
    hasToolCalls: generation.parts.some((part) => part.type === 'tool-call'),
    refusal: generation.parts.map((part) => (part.type === 'refusal' ? part.text : '')).join(''),
  };
  return {
    id: writing.blocks.messageId(generation.id),
    type: 'message',
    role: 'assistant',
    model: context.model,
    content,
    ...writeStop(ending, context.notes),
    container: null,
    usage: writeUsage(withEstimate(generation.usage, context)),
  };
}

/**
 * The token limit cut a call off, whatever finish reason the upstream sent: all tokens are used and
 * the arguments are broken.
 */
function reachedLimit({ parts, finish, usage }: Generation, context: AnswerContext): boolean {
  if (finish.kind !== 'stop' && finish.kind !== 'tool-calls') return false;
  if (!usedUp(usage, context)) return false;
  for (const part of parts) {
    if (part.type === 'tool-call' && toolInput(part.argumentsJson).wrapped) return true;
  }
  return false;
}

/** The output reached the client's cap. */
export function usedUp(usage: Usage | undefined, { conversation }: AnswerContext): boolean {
  const cap = conversation?.sampling.maxOutputTokens;
  return cap !== undefined && (usage?.outputTokens ?? 0) >= cap;
}

/** Usage with an input count: the reported one, else the estimate of the prompt (F55). */
export function withEstimate(usage: Usage | undefined, context: AnswerContext): Usage {
  if (usage?.freshInputTokens !== undefined) return usage;
  if (usage?.cacheReadTokens !== undefined || usage?.cacheWriteTokens !== undefined) return usage;
  return { ...usage, freshInputTokens: Math.max(1, context.promptTokensEstimate) };
}

interface Writing {
  readonly blocks: AnswerBlocks;
  readonly context: AnswerContext;
  readonly finish: FinishReason;
}

/** The blocks of a part; empty for an empty text, which the service would refuse in the next request. */
function writePart(part: Part, writing: Writing): readonly JsonObject[] {
  const { blocks } = writing;
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : [writeText(part, writing.context)];
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text }];
    case 'reasoning': {
      if (isEmptyReasoning(part)) return [];
      if (isRedacted(part)) return [blocks.redacted(part)];
      const thinking = blocks.hidesReasoning ? '' : part.text;
      return [{ type: 'thinking', thinking, signature: blocks.signature(part) }];
    }
    case 'tool-call': {
      const { companion, block } = blocks.toolUse(part);
      const call = { ...block, input: writeInput(part, writing) };
      return companion === undefined ? [call] : [companion, call];
    }
    case 'opaque': {
      const block = blocks.opaque(part);
      return block === undefined ? [] : [block];
    }
    case 'media':
    case 'tool-result':
      blocks.lost(part.type === 'media' ? 'generated media' : 'a tool result');
      return [];
    default:
      return part satisfies never;
  }
}

function writeText(part: TextPart, { conversation, notes }: AnswerContext): JsonObject {
  const citations = (part.citations ?? [])
    .map((each) => writeCitation(each, conversation))
    .filter((each) => each !== undefined);
  if (citations.length < (part.citations?.length ?? 0)) {
    notes.lost(['citations'], 'sources of this provider have no place in a messages answer');
  }
  return { type: 'text', text: part.text, ...(citations.length === 0 ? {} : { citations }) };
}

/** A call that the token limit cut off retains its complete members. */
function writeInput(part: ToolCallPart, { context, finish }: Writing): JsonObject {
  const { input, wrapped } = toolInput(part.argumentsJson);
  if (!wrapped) return input;
  const isCut = finish.kind === 'length' || finish.kind === 'context-window';
  const cut = isCut ? truncatedInput(part.argumentsJson) : undefined;
  if (cut !== undefined) return cut;
  // A stream has already sent the beginning of the object when the cut shows. A document is written alike.
  if (!isCut && finish.kind !== 'content-filter' && beginsObject(part.argumentsJson)) {
    throw brokenArguments(part.name);
  }
  context.notes.changed(['content'], 'tool arguments that are not a JSON object were wrapped');
  return input;
}

// Code that the writers of documents and streams share.

/** A call, and the block before it with the sealed extras of its upstream. */
interface WrittenCall {
  readonly companion: JsonObject | undefined;
  readonly block: JsonObject;
}

/** Writes the blocks of one answer. The state is the ids that were used. */
export class AnswerBlocks {
  readonly #context: AnswerContext;
  readonly #ids: AnswerCallIds;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#ids = new AnswerCallIds(context, { prefix: 'toolu_', anyText: false });
  }

  /** `msg_` and the upstream's id, or a new one. */
  messageId(upstreamId: string): string {
    if (upstreamId.startsWith('msg_')) return upstreamId;
    const legal = upstreamId.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 200);
    return legal === '' ? this.#context.newId('msg_') : `msg_${legal}`;
  }

  /** A call with an empty input; the arguments follow. */
  toolUse(part: ToolCallPart): WrittenCall {
    const tools = this.#context.conversation?.tools;
    const callId = this.#ids.show(part.id);
    const { sealing } = this.#context;
    const extras = sealing === undefined ? undefined : part.extras?.[sealing.upstream.dialect];
    return {
      companion:
        sealing === undefined || extras === undefined
          ? undefined
          : { type: 'redacted_thinking', data: sealCall(callId, extras, sealing) },
      block: {
        type: 'tool_use',
        id: callId,
        name: tools === undefined ? part.name : originalToolName(part.name, tools),
        input: {},
        caller: part.extras?.['anthropic-messages']?.['caller'] ?? { type: 'direct' },
      },
    };
  }

  /** The client hides the text of reasoning. */
  get hidesReasoning(): boolean {
    return this.#context.conversation?.reasoning?.hidden === true;
  }

  /** Encrypted reasoning, which only its provider can read. */
  redacted(part: ReasoningPart): JsonObject {
    const { sealing } = this.#context;
    const data =
      sealing === undefined ? (part.encrypted ?? '') : sealReasoning(part, false, sealing);
    return { type: 'redacted_thinking', data };
  }

  /** The signature of a thinking block; `''` when its own upstream did not sign it. */
  signature(part: ReasoningPart): string {
    const { sealing } = this.#context;
    if (sealing === undefined) return part.signature ?? '';
    return sealReasoning(part, this.hidesReasoning, sealing);
  }

  /** An unchanged block of this dialect. Undefined, with a note, for a block of another dialect. */
  opaque(part: OpaquePart): JsonObject | undefined {
    if (part.dialect === 'anthropic-messages') return part.value;
    this.lost('a block that only its provider knows');
    return undefined;
  }

  /** Undefined for a source that has no place in an answer of this dialect. */
  citation(citation: Citation): JsonObject | undefined {
    return writeCitation(citation, this.#context.conversation);
  }

  lost(what: string): void {
    this.#context.notes.lost(['content'], `${what} has no place in a messages answer`);
  }
}

/** Whether reasoning can only be shown as `redacted_thinking`. */
export function isRedacted(part: ReasoningPart): boolean {
  return part.encrypted !== undefined && part.text === '';
}

/** Whether reasoning has neither text nor signature nor encrypted data. */
export function isEmptyReasoning(part: ReasoningPart): boolean {
  return part.text === '' && part.encrypted === undefined && (part.signature ?? '') === '';
}

/** The APIs that serve Claude. Their servers accept each other's signatures. */
const signers: ReadonlySet<DialectId> = new Set(['anthropic-messages', 'bedrock-converse']);

/** Whether this reasoning may be sent to a server of Claude: one of them signed or encrypted it. */
export function isNative(part: ReasoningPart): boolean {
  const proof = part.signature ?? part.encrypted;
  if (part.broken === true || proof === undefined || proof === '' || isSealed(proof)) return false;
  if (part.origin !== undefined) return signers.has(part.origin.dialect);
  const foreign = part.extras?.['openai-chat'];
  return foreign === undefined || (foreign['format'] === undefined && foreign['summary'] !== true);
}

/** Whether a provider signed this reasoning, so that omitting it is a loss. */
export function isProof(part: ReasoningPart): boolean {
  return (
    part.broken === true ||
    part.origin !== undefined ||
    (part.signature ?? '') !== '' ||
    (part.encrypted ?? '') !== ''
  );
}

// Citations of a text block. The extras retain their original form.

/** The citations of a text block; empty when there are none. */
export function readCitations(citations: Json | undefined): readonly Citation[] {
  return isArray(citations) ? citations.filter(isObject).map(readCitation) : [];
}

/** The citations of an answer, in which a missing field is an error. @throws GatewayError `upstream_invalid` */
export function answerCitations(citations: Json | undefined): readonly Citation[] {
  return answerObjects(citations, 'citations').map(readCitation);
}

export function readCitation(value: JsonObject): Citation {
  const { url, source, title, document_title: documentTitle, cited_text: citedText } = value;
  const address =
    typeof url === 'string'
      ? url
      : typeof source === 'string' && /^https?:\/\//.test(source)
        ? source
        : undefined;
  const named = typeof title === 'string' ? title : documentTitle;
  return {
    ...(address === undefined ? {} : { url: address }),
    ...(typeof named === 'string' ? { title: named } : {}),
    ...(typeof citedText === 'string' ? { citedText } : {}),
    native: { dialect: 'anthropic-messages', value },
  };
}

/**
 * Undefined for a citation of another dialect without a place in a document: it lacks the index that this dialect
 * requires.
 * @param conversation the request that the answer is for
 */
export function writeCitation(
  citation: Citation,
  conversation?: Conversation,
): JsonObject | undefined {
  const { native, place, title, citedText = '' } = citation;
  if (native.dialect === 'anthropic-messages') return native.value;
  const found = place && placeForClient(place, conversation);
  if (found === undefined) return undefined;
  const { document, unit, start, end, ...named } = found;
  const [type, from, to] = placeMembers[unit];
  return {
    type,
    cited_text: citedText,
    document_index: document,
    document_title: ('title' in named ? named.title : title) ?? null,
    [from]: start,
    [to]: end,
    file_id: null,
  };
}

const placeMembers: {
  readonly [U in DocumentPlace['unit']]: readonly [type: string, start: string, end: string];
} = {
  char: ['char_location', 'start_char_index', 'end_char_index'],
  page: ['page_location', 'start_page_number', 'end_page_number'],
  block: ['content_block_location', 'start_block_index', 'end_block_index'],
};
