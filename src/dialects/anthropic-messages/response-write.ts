/** Writes a whole messages answer (wire/messages.md §6, wire/translation.md §7.2). */
import type {
  JsonObject,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from '../../core/conversation.ts';
import type { AnswerContext } from '../../core/dialect.ts';
import type { FinishReason, Generation, Usage } from '../../core/generation.ts';
import { atOnce, Pace, textWeight, type Steps } from '../../core/steps.ts';
import { toolInput, truncatedInput } from '../tool-arguments.ts';
import { AnswerBlocks, isEmptyReasoning, isRedacted } from './answer-blocks.ts';
import { writeCitation } from './citations.ts';
import { writeStop } from './stop-reason.ts';
import { writeUsage } from './usage.ts';

/** The document that a client of this dialect gets. An empty answer has `content: []`. */
export function writeResponse(generation: Generation, context: AnswerContext): JsonObject {
  return atOnce(responseWriting(generation, context));
}

/** The same in steps: the arguments of calls are parsed. */
export function* responseWriting(
  generation: Generation,
  context: AnswerContext,
): Steps<JsonObject> {
  const pace = new Pace();
  const finish = (yield* reachedLimit(generation, context, pace))
    ? ({ ...generation.finish, kind: 'length' } as const)
    : generation.finish;
  const writing: Writing = { blocks: new AnswerBlocks(context), context, finish };
  const content: JsonObject[] = [];
  let called = false;
  for (const part of generation.parts) {
    // Line breaks between calls are no block: the service would refuse it in the history (C2).
    if (!called || !isBlankText(part)) content.push(...writePart(part, writing));
    called ||= part.type === 'tool-call';
    if (pace.dueWith(weightOf(part))) yield;
  }
  const ending = {
    reason: finish,
    hasToolCalls: generation.parts.some((part) => part.type === 'tool-call'),
    refusal: refusalOf(generation.parts),
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
 * The token limit cut a call off, whatever the upstream calls it (B12): all tokens are used up and
 * the arguments are broken.
 */
function* reachedLimit(
  { parts, finish, usage }: Generation,
  context: AnswerContext,
  pace: Pace,
): Steps<boolean> {
  if (finish.kind !== 'stop' && finish.kind !== 'tool-calls') return false;
  if (!usedUp(usage, context)) return false;
  for (const part of parts) {
    if (part.type === 'tool-call' && toolInput(part.argumentsJson).wrapped) return true;
    if (pace.dueWith(weightOf(part))) yield;
  }
  return false;
}

function weightOf(part: Part): number {
  return textWeight(part.type === 'tool-call' ? part.argumentsJson.length : 0);
}

/** As many tokens were generated as the client allowed. */
export function usedUp(usage: Usage | undefined, { conversation }: AnswerContext): boolean {
  const cap = conversation?.sampling.maxOutputTokens;
  return cap !== undefined && (usage?.outputTokens ?? 0) >= cap;
}

function isBlankText(part: Part): boolean {
  return part.type === 'text' && part.text.trim() === '';
}

/** Usage whose input is known: what was reported, else the estimate of the prompt (F1, F55). */
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

/** The blocks of a part; none for empty text, which would break the next request. */
function writePart(part: Part, writing: Writing): readonly JsonObject[] {
  const { blocks } = writing;
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : [writeText(part, writing.context)];
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text }];
    case 'reasoning':
      return writeReasoning(part, blocks);
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

function writeReasoning(part: ReasoningPart, blocks: AnswerBlocks): readonly JsonObject[] {
  if (isEmptyReasoning(part)) return [];
  if (isRedacted(part)) return [blocks.redacted(part)];
  const thinking = blocks.hidesReasoning ? '' : part.text;
  return [{ type: 'thinking', thinking, signature: blocks.signature(part) }];
}

function writeText(part: TextPart, { notes }: AnswerContext): JsonObject {
  const citations = part.citations?.map(writeCitation).filter((each) => each !== undefined) ?? [];
  if (citations.length < (part.citations?.length ?? 0)) {
    notes.lost(['citations'], 'sources of this provider have no place in a messages answer');
  }
  return { type: 'text', text: part.text, ...(citations.length === 0 ? {} : { citations }) };
}

/** A call that the token limit cut off keeps its complete members (§3.6). */
function writeInput(part: ToolCallPart, { context, finish }: Writing): JsonObject {
  const { input, wrapped } = toolInput(part.argumentsJson);
  if (!wrapped) return input;
  const isCut = finish.kind === 'length' || finish.kind === 'context-window';
  const cut = isCut ? truncatedInput(part.argumentsJson) : undefined;
  if (cut !== undefined) return cut;
  context.notes.changed(['content'], 'tool arguments that are no JSON object were wrapped');
  return input;
}

function refusalOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === 'refusal' ? part.text : '')).join('');
}
