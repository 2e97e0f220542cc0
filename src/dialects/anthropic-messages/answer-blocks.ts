/** What documents and streams of this dialect share when an answer is written. */
import type { Citation, OpaquePart, ReasoningPart, ToolCallPart } from '../../core/conversation.ts';
import type { AnswerContext } from '../../core/dialect.ts';
import { isSealed } from '../../core/sealer.ts';
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { AnswerCallIds, originalToolName } from '../shared/tool-ids.ts';
import { answerObjects } from '../shared/answers.ts';
import { sealCall, sealReasoning } from '../shared/seals.ts';
import { isArray } from './fields.ts';

/** A call, and the block before it that keeps what only the upstream knows of it. */
interface WrittenCall {
  readonly companion: JsonObject | undefined;
  readonly block: JsonObject;
}

/** Writes the blocks of one answer; state is the ids that were given out. */
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

  /** The client asked not to see the text of reasoning. */
  get hidesReasoning(): boolean {
    return this.#context.conversation?.reasoning?.hidden === true;
  }

  /** Reasoning that only its provider can read. */
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

  /** A block of this dialect as it came; undefined, with a note, for one of another. */
  opaque(part: OpaquePart): JsonObject | undefined {
    if (part.dialect === 'anthropic-messages') return part.value;
    this.lost('a block that only its provider knows');
    return undefined;
  }

  lost(what: string): void {
    this.#context.notes.lost(['content'], `${what} has no place in a messages answer`);
  }
}

/** Whether reasoning can only be shown as `redacted_thinking`. */
export function isRedacted(part: ReasoningPart): boolean {
  return part.encrypted !== undefined && part.text === '';
}

/** Reasoning without text, signature or secret says nothing. */
export function isEmptyReasoning(part: ReasoningPart): boolean {
  return part.text === '' && part.encrypted === undefined && (part.signature ?? '') === '';
}

/** Whether a messages server may be shown this reasoning: it signed or encrypted it itself. */
export function isNative(part: ReasoningPart): boolean {
  const proof = part.signature ?? part.encrypted;
  if (part.broken === true || proof === undefined || proof === '' || isSealed(proof)) return false;
  if (part.origin !== undefined) return part.origin.dialect === 'anthropic-messages';
  const foreign = part.extras?.['openai-chat'];
  return foreign === undefined || (foreign['format'] === undefined && foreign['summary'] !== true);
}

/** Whether a provider signed this reasoning, so that leaving it out is a loss. */
export function isProof(part: ReasoningPart): boolean {
  return (
    part.broken === true ||
    part.origin !== undefined ||
    (part.signature ?? '') !== '' ||
    (part.encrypted ?? '') !== ''
  );
}

// Citations of a text block. They stay in their own words underneath.

/** The citations of a text block; empty when there are none. */
export function readCitations(citations: Json | undefined): readonly Citation[] {
  return isArray(citations) ? citations.filter(isObject).map(readCitation) : [];
}

/** The same of an answer, where a missing field is an error. @throws GatewayError `upstream_invalid` */
export function answerCitations(citations: Json | undefined): readonly Citation[] {
  return answerObjects(citations, 'citations').map(readCitation);
}

export function readCitation(value: JsonObject): Citation {
  const { url, source, title, document_title: documentTitle, cited_text: citedText } = value;
  const address = typeof url === 'string' ? url : webAddress(source);
  const named = typeof title === 'string' ? title : documentTitle;
  return {
    ...(address === undefined ? {} : { url: address }),
    ...(typeof named === 'string' ? { title: named } : {}),
    ...(typeof citedText === 'string' ? { citedText } : {}),
    native: { dialect: 'anthropic-messages', value },
  };
}

/** Undefined for a citation of another dialect: it lacks the index that this one demands. */
export function writeCitation(citation: Citation): JsonObject | undefined {
  return citation.native.dialect === 'anthropic-messages' ? citation.native.value : undefined;
}

function webAddress(source: Json | undefined): string | undefined {
  return typeof source === 'string' && /^https?:\/\//.test(source) ? source : undefined;
}
