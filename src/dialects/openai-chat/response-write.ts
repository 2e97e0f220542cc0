/** Writes a whole answer for a chat client (wire/chat-completions.md §4, §8.4; translation.md §7.1). */
import type {
  JsonObject,
  Part,
  ReasoningPart,
  RefusalPart,
  TextPart,
  ToolCallPart,
} from '../../core/conversation.ts';
import type { AnswerContext } from '../../core/dialect.ts';
import type { FinishReason, Generation } from '../../core/generation.ts';
import { placedReasoning } from '../../core/kept-turn.ts';
import { atOnce, Pace, textWeight, type Steps } from '../../core/steps.ts';
import { answerId, AnsweredTools, callArguments, freeTextInput } from './answered-tools.ts';
import { writeCitation } from './citations.ts';
import type { JsonMembers } from './fields.ts';
import { writeFinish } from './finish.ts';
import { detailMark } from './reasoning-seal.ts';
import { hasProof, writeDetail } from './reasoning-write.ts';
import { writeServiceTier, writeUsage } from './usage.ts';

/** Always one choice, `content` and `refusal` always there, `tool_calls` only with calls. */
export function writeResponse(generation: Generation, context: AnswerContext): JsonObject {
  return atOnce(responseWriting(generation, context));
}

/** The same in steps: the input of tools that take text is parsed. */
export function* responseWriting(
  generation: Generation,
  context: AnswerContext,
): Steps<JsonObject> {
  const { usage, finish } = generation;
  const calls = generation.parts.filter((part) => part.type === 'tool-call');
  const tools = new AnsweredTools(context);
  const reason = writeFinish(finish, calls.length > 0, context.notes);
  const tier = writeServiceTier(usage);
  const writtenCalls = yield* writeCalls(calls, tools, context);
  return {
    id: answerId(generation.id, context),
    object: 'chat.completion',
    created: context.createdSeconds,
    model: context.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: contentOf(generation.parts),
          refusal: refusalOf(generation.parts, finish),
          ...writeReasoning(generation.parts, context),
          ...writtenCalls,
          ...writeAnnotations(generation.parts, context),
        },
        logprobs: null,
        finish_reason: tools.legacy && reason === 'tool_calls' ? 'function_call' : reason,
        ...(finish.sequence === undefined ? {} : { stop_reason: finish.sequence }),
      },
    ],
    ...(usage === undefined ? {} : { usage: writeUsage(usage) }),
    ...(tier === undefined ? {} : { service_tier: tier }),
  };
}

function contentOf(parts: readonly Part[]): string | null {
  const texts = parts.filter((part): part is TextPart => part.type === 'text');
  return texts.length === 0 ? null : texts.map((part) => part.text).join('');
}

function refusalOf(parts: readonly Part[], finish: FinishReason): string | null {
  const refusals = parts.filter((part): part is RefusalPart => part.type === 'refusal');
  if (refusals.length > 0) return refusals.map((part) => part.text).join('');
  return refusalExplanation(finish) ?? null;
}

/** The words of a messages refusal (`stop_details.explanation`). */
export function refusalExplanation(finish: FinishReason): string | undefined {
  const explanation = finish.details?.['explanation'];
  if (finish.kind !== 'content-filter' || typeof explanation !== 'string') return undefined;
  return explanation === '' ? undefined : explanation;
}

function writeReasoning(parts: readonly Part[], context: AnswerContext): JsonMembers {
  if (context.conversation?.reasoning?.hidden === true) return {};
  const reasoning = parts.filter((part): part is ReasoningPart => part.type === 'reasoning');
  const text = reasoning
    .map((part) => part.text)
    .filter((part) => part !== '')
    .join('\n\n');
  const sealed = reasoning.some(hasProof);
  return {
    ...(text === '' ? {} : { reasoning_content: text }),
    ...(sealed ? { reasoning_details: writeDetails(parts, context) } : {}),
  };
}

/** The entries, marked so that it shows whether they come back whole. */
function writeDetails(parts: readonly Part[], { sealing }: AnswerContext): readonly JsonObject[] {
  return placedReasoning(parts).map(({ part, callsBefore }, entry) => ({
    ...writeDetail(part, entry),
    ...(sealing === undefined || !hasProof(part)
      ? {}
      : { id: detailMark(part, { entry, callsBefore }, sealing.sealer) }),
  }));
}

function* writeCalls(
  calls: readonly ToolCallPart[],
  tools: AnsweredTools,
  context: AnswerContext,
): Steps<JsonMembers> {
  const first = calls[0];
  if (first === undefined) return {};
  if (tools.legacy) {
    if (calls.length > 1) {
      context.notes.lost(['function_call'], 'the deprecated form holds one call only');
    }
    return { function_call: { name: tools.name(first.name), arguments: callArguments(first) } };
  }
  const pace = new Pace();
  const written: JsonObject[] = [];
  for (const call of calls) {
    written.push(writeCall(call, tools));
    if (pace.dueWith(textWeight(call.argumentsJson.length))) yield;
  }
  return { tool_calls: written };
}

function writeCall(call: ToolCallPart, tools: AnsweredTools): JsonObject {
  const id = tools.id(call.id);
  const name = tools.name(call.name);
  const extra = call.extras?.['openai-chat'];
  return tools.isFreeText(name)
    ? { id, type: 'custom', custom: { name, input: freeTextInput(call.argumentsJson) } }
    : { id, type: 'function', function: { name, arguments: callArguments(call) }, ...extra };
}

function writeAnnotations(parts: readonly Part[], context: AnswerContext): JsonMembers {
  const annotations: JsonObject[] = [];
  let start = 0;
  for (const part of parts) {
    if (part.type !== 'text') continue;
    const span = { start, end: start + part.text.length };
    for (const citation of part.citations ?? []) {
      const annotation = writeCitation(citation, span, context.notes);
      if (annotation !== undefined) annotations.push(annotation);
    }
    start = span.end;
  }
  return annotations.length === 0 ? {} : { annotations };
}
