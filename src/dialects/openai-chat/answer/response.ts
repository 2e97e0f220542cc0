/** Reads a whole chat-completions answer. */
import type {
  Part,
  ReasoningPart,
  RefusalPart,
  TextPart,
  ToolCallPart,
} from '../../../core/conversation.ts';
import type { AnswerContext } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { FinishReason, Generation } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import { positionedReasoning } from '../../../core/recall.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { tryParseObject } from '../../../json/parse.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  isArray,
} from '../../../json/value.ts';
import {
  answerObject,
  answerObjects,
  answerText,
  isCutBy,
  isPresent,
  wrongType,
} from '../../shared/answers.ts';
import { looksLikeError, readErrorValue } from '../../shared/vendor-errors.ts';
import { wrappedArguments } from '../../shared/request/tools.ts';
import { type AnswerIdentity, derivedCallId } from '../../shared/tool-names.ts';
import {
  findUsage,
  isCut,
  readFailedFinish,
  readFinish,
  writeFinish,
  writeServiceTier,
  writeUsage,
} from './usage.ts';
import { executedTool, listedRuns, listedSources, noSources } from './sources.ts';
import {
  answeredExtras,
  AnsweredTools,
  answerId,
  callArguments,
  freeTextInput,
  MessageBounds,
  readCall,
  readCitations,
  isCall,
  type SeenCall,
  writeCitation,
} from '../message-forms.ts';
import {
  answerThinking,
  detailMark,
  hasProof,
  readAnswerReasoning,
  reasoningParts,
  writeAnswerDetail,
} from '../reasoning.ts';

/**
 * @param notes absent where the upstream's own document goes to the client
 * @param choices how many answers were requested: others that the document holds do not fail it
 * @throws GatewayError the upstream's error if the document is one, `upstream_invalid` if it is
 * no answer at all.
 */
export function readResponse(
  body: JsonObject,
  traits: UpstreamTraits,
  notes?: Notes,
  choices = 1,
): Generation {
  if (isPresent(body['error'])) throw readErrorValue(body);
  const choice = firstChoice(body);
  if (choice === undefined) {
    if (body['choices'] === undefined && looksLikeError(body)) throw readErrorValue(body);
    throw new GatewayError('upstream_invalid', 'The upstream answered without a choice.');
  }
  assertComplete(choice);
  // The others go to the client only where the document itself does.
  if (notes === undefined && choices > 1) assertOthers(body['choices'], choices);
  const message = choice['message'];
  if (!isObject(message)) {
    throw new GatewayError('upstream_invalid', 'The upstream answered without a message.');
  }
  const parts = readMessage(message, {
    id: body['id'],
    created: body['created'],
    isCut: isCut(choice['finish_reason']),
    wraps: traits.bufferToolArguments === true,
    body,
    notes,
  });
  if (isArray(body['choices']) && body['choices'].length > 1) notes?.lost(['choices'], oneChoice);
  const usage = findUsage(body, traits);
  return {
    id: stringOr(body['id'], ''),
    model: stringOr(body['model'], ''),
    parts,
    finish: readFinish(
      choice,
      parts.some((part) => part.type === 'tool-call'),
    ),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** Those of the requested choices. */
function assertOthers(choices: Json | undefined, requested: number): void {
  if (!isArray(choices)) return;
  for (const [place, choice] of choices.entries()) {
    if (!isObject(choice)) continue;
    const index = choice['index'];
    if ((typeof index === 'number' ? index : place) < requested) assertComplete(choice);
  }
}

/** @throws GatewayError for a choice that says that it failed */
function assertComplete(choice: JsonObject): void {
  if (isPresent(choice['error'])) throw readErrorValue(choice['error']);
  assertWord(choice['finish_reason']);
  const failure = readFailedFinish(choice['finish_reason']);
  if (failure !== undefined) throw failure;
}

/** Null or missing is a natural end; anything else that is not text hides why the answer ended. */
function assertWord(finish: Json | undefined): void {
  if (isPresent(finish) && typeof finish !== 'string') throw wrongType('a finish_reason');
}

function firstChoice(body: JsonObject): JsonObject | undefined {
  const choices = body['choices'];
  if (!isArray(choices)) return undefined;
  let first: JsonObject | undefined;
  for (const choice of choices) {
    if (!isObject(choice)) continue;
    if (choice['index'] === 0) return choice;
    first ??= choice;
  }
  return first;
}

interface ReadAnswer extends AnswerIdentity {
  /** The answer was cut, and its last call with it. */
  readonly isCut: boolean;
  /** Arguments that are not an object are wrapped, as they are in streams of this upstream, unless they were cut. */
  readonly wraps: boolean;
  readonly body: JsonObject;
  readonly notes: Notes | undefined;
}

function readMessage(message: JsonObject, answer: ReadAnswer): readonly Part[] {
  const parts: Part[] = [...reasoningParts(readAnswerReasoning(message))];
  const { runs, unread } = listedRuns(message);
  if (unread) answer.notes?.lost(['executed_tools'], runWithoutMembers);
  parts.push(...runs.map(executedTool));
  readContent(message, parts);
  cite(message, parts, answer);
  const refusal = answerText(message['refusal'], 'a refusal');
  if (refusal !== '') parts.push({ type: 'refusal', text: refusal });
  const calls = callsOf(message).map(readCall).filter(isCall);
  for (const [i, call] of calls.entries()) {
    const argumentsJson = argumentsOf(named(call), answer, i === calls.length - 1);
    parts.push(callPart(call, argumentsJson, { answer, index: parts.length }));
  }
  return misplacedJson(parts) ?? parts;
}

/** DeepSeek at Azure with a JSON format: the document may be in the reasoning member, with no content after it. */
function misplacedJson(parts: readonly Part[]): readonly Part[] | undefined {
  const [only, ...others] = parts;
  if (only?.type !== 'reasoning' || others.length > 0 || only.signature !== undefined)
    return undefined;
  return tryParseObject(only.text) === undefined ? undefined : [{ type: 'text', text: only.text }];
}

/** Text of the message; Mistral's part arrays are split by kind. */
function readContent(message: JsonObject, parts: Part[]): void {
  const { content } = message;
  if (isArray(content)) for (const piece of content) readPiece(piece, parts);
  else {
    const text = answerText(content, 'a content');
    pushText(parts, text === '' ? transcriptOf(message) : text);
  }
  parts.push(...otherParts(message));
}

/** Sources are those of the last text. */
function cite(message: JsonObject, parts: Part[], { body, notes }: ReadAnswer): void {
  const annotated = readCitations(message['annotations']);
  const listed = listedSources(body, message);
  if (annotated.length === 0 && listed === noSources) return;
  const others = listed.citations.filter(({ url }) => annotated.every((each) => each.url !== url));
  const citations = [...annotated, ...others];
  if (listed.unread) notes?.lost(['citations'], sourceWithoutAddress);
  if (citations.length === 0) return;
  const at = parts.findLastIndex((part) => part.type === 'text');
  const last = parts[at];
  if (last?.type === 'text') parts[at] = { ...last, citations };
  else notes?.lost(['citations'], sourcesWithoutText);
}

export const oneChoice = 'only the first answer is carried';
export const runWithoutMembers = 'a run of a tool that is no object has no place elsewhere';
export const sourceWithoutAddress = 'a source without an address has no place elsewhere';
export const sourcesWithoutText = 'sources without a text have no place elsewhere';

function readPiece(piece: Json, parts: Part[]): void {
  if (!isObject(piece)) return pushText(parts, answerText(piece, 'a content part'));
  const kind = pieceKind(piece);
  if (kind === 'text') return pushText(parts, answerText(piece['text'], 'a text'));
  const text = kind === 'thinking' ? answerThinking(piece) : '';
  if (text !== '') parts.push({ type: 'reasoning', text });
}

/**
 * What a content part is: one with a text is that text, whatever it is called (`output_text`); `other` is nothing that
 * this dialect's answers are made of.
 * @throws GatewayError `upstream_invalid` for one that does not say what it is.
 */
export function pieceKind({ type, text }: JsonObject): 'text' | 'thinking' | 'other' {
  if (typeof type !== 'string') throw wrongType('a content part');
  if (type === 'text' || type === 'thinking') return type;
  return isPresent(text) ? 'text' : 'other';
}

const noParts: readonly Part[] = [];

/** Content parts that this dialect does not have, and pictures, which OpenRouter sends beside the text. */
export function otherParts({ content, images }: JsonObject): readonly Part[] {
  if (!isArray(content) && !isPresent(images)) return noParts;
  const pieces = isArray(content) ? content.filter(isObject) : [];
  const others = pieces.filter((piece) => pieceKind(piece) === 'other');
  return [
    ...others.map((value): Part => ({ type: 'opaque', dialect: 'openai-chat', value })),
    ...picturesOf(images),
  ];
}

/** No specification says how pictures are written, so none of them fails an answer: a text is an address. */
function picturesOf(images: Json | undefined): readonly Part[] {
  const list = isArray(images) ? images : [images ?? null];
  return list.filter((each) => isPresent(each) && each !== '' && !isEmpty(each)).map(pictureOf);
}

/** Some servers write an empty list as an object. */
function isEmpty(value: Json): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

function pictureOf(picture: Json): Part {
  const image = isObject(picture) ? picture['image_url'] : picture;
  const given = isObject(image) ? image['url'] : image;
  const url = typeof given === 'string' ? given : '';
  return { type: 'media', kind: 'image', mediaType: '', source: { url } };
}

/** What a spoken answer says. */
export function transcriptOf({ audio }: JsonObject): string {
  return answerText(answerObject(audio, 'an audio')?.['transcript'], 'a transcript');
}

function pushText(parts: Part[], text: string): void {
  const last: Part | undefined = parts.at(-1);
  if (text === '') return;
  if (last?.type === 'text') {
    const merged: TextPart = { ...last, text: last.text + text };
    parts[parts.length - 1] = merged;
  } else {
    parts.push({ type: 'text', text });
  }
}

function callsOf(message: JsonObject): readonly JsonObject[] {
  const calls = answerObjects(message['tool_calls'], 'tool_calls');
  if (calls.length > 0) return calls;
  const legacy = answerObject(message['function_call'], 'a function_call');
  return legacy === undefined ? [] : [{ function: legacy }];
}

/** @throws GatewayError `upstream_invalid` for a call without a name, which no client can run */
function named(call: SeenCall): SeenCall {
  if (call.name === '') {
    throw new GatewayError('upstream_invalid', 'The upstream sent a call without a name.');
  }
  return call;
}

function callPart(
  call: SeenCall,
  argumentsJson: string,
  { answer, index }: { readonly answer: ReadAnswer; readonly index: number },
): ToolCallPart {
  return {
    type: 'tool-call',
    id: call.id === '' ? derivedCallId(answer, index) : call.id,
    name: call.name,
    argumentsJson,
    ...(call.extras === undefined ? {} : { extras: { 'openai-chat': call.extras } }),
  };
}

function argumentsOf(
  { freeText, arguments: text }: SeenCall,
  { wraps, isCut: cut }: ReadAnswer,
  isLast: boolean,
): string {
  // A text does not show that it was cut. Without its end no client runs the call.
  if (freeText) return JSON.stringify({ input: text }).slice(0, cut && isLast ? -2 : undefined);
  return wraps && !cut && text !== '' ? wrappedArguments(text) : text;
}

function stringOr(value: Json | undefined, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}

// Writes a whole answer for a chat client.

/** Always one choice with `content` and `refusal`; `tool_calls` only if there are calls. */
export function writeResponse(generation: Generation, context: AnswerContext): JsonObject {
  const { usage, finish } = generation;
  const calls = generation.parts.filter((part) => part.type === 'tool-call');
  const tools = new AnsweredTools(context);
  const reason = writeFinish(finish, calls.length > 0, context.notes);
  const tier = writeServiceTier(usage);
  const writtenCalls = writeCalls(calls, tools, { context, isCut: isCutBy(finish) });
  for (const part of generation.parts) noteHidden(part, context.notes);
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

/** Notes that a part is omitted: a generated image or sound, and what is neither an answer nor known. */
export function noteHidden(part: Part, notes: Notes): void {
  if (part.type === 'media')
    notes.lost(['content'], 'generated media has no place in a chat answer');
  if (part.type !== 'opaque' || ownTools.some((tool) => tool.test(blockName(part.value)))) return;
  notes.lost(['content'], 'a block that only its provider knows has no place in a chat answer');
}

/** Calls and results of tools that the provider ran. A client that was shown them would try to run them again. */
const ownTools: readonly RegExp[] = [
  /_tool_use$|_tool_result$|^(mcp_tool_listing|container_upload|compaction|fallback)$/,
  /^(web_search|file_search|code_interpreter|image_generation|computer|tool_search)_call$/,
  /^(shell|local_shell|apply_patch|mcp)_call$|_output$|^mcp_|^(additional_tools|program)$/,
  /^(executableCode|codeExecutionResult|toolCall|toolResponse|toolUse|toolResult)$/,
];

/** The type of a block; in the dialects without types its only member. */
function blockName(value: JsonObject): string {
  const { type } = value;
  return typeof type === 'string' ? type : (Object.keys(value)[0] ?? '');
}

function contentOf(parts: readonly Part[]): string | null {
  const bounds = new MessageBounds();
  let content: string | null = null;
  for (const part of parts) {
    bounds.begin(part);
    if (part.type === 'text') content = (content ?? '') + bounds.before(part.text) + part.text;
  }
  return content;
}

function refusalOf(parts: readonly Part[], finish: FinishReason): string | null {
  const refusals = parts.filter((part): part is RefusalPart => part.type === 'refusal');
  if (refusals.length > 0) return refusals.map((part) => part.text).join('');
  return refusalExplanation(finish) ?? null;
}

/** The text of a messages refusal (`stop_details.explanation`). Undefined for an answer that a filter cut. */
export function refusalExplanation(finish: FinishReason): string | undefined {
  const explanation = finish.details?.['explanation'];
  if (finish.kind !== 'content-filter' || finish.raw === 'content_filter') return undefined;
  return typeof explanation === 'string' && explanation !== '' ? explanation : undefined;
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

/** The entries, with marks that show whether they come back whole. */
function writeDetails(parts: readonly Part[], { sealing }: AnswerContext): readonly JsonObject[] {
  return positionedReasoning(parts).map(({ part, callsBefore }, entry) => ({
    ...writeAnswerDetail(part, entry),
    ...(sealing === undefined || !hasProof(part)
      ? {}
      : { id: detailMark(part, { entry, callsBefore }, sealing.sealer) }),
  }));
}

/** @param answer whether it was cut, and its last call with it */
function writeCalls(
  calls: readonly ToolCallPart[],
  tools: AnsweredTools,
  { context, isCut }: { readonly context: AnswerContext; readonly isCut: boolean },
): JsonMembers {
  const first = calls[0];
  if (first === undefined) return {};
  if (tools.legacy) {
    if (calls.length > 1) {
      context.notes.lost(['function_call'], 'the deprecated form holds one call only');
    }
    const called = callArguments(first, isCut && calls.length === 1);
    return { function_call: { name: tools.name(first.name), arguments: called } };
  }
  const written: JsonObject[] = [];
  for (const [i, call] of calls.entries()) {
    written.push(writeCall(call, tools, isCut && i === calls.length - 1));
  }
  return { tool_calls: written };
}

function writeCall(call: ToolCallPart, tools: AnsweredTools, isCut: boolean): JsonObject {
  const id = tools.id(call.id);
  const name = tools.name(call.name);
  return tools.isFreeText(name)
    ? { id, type: 'custom', custom: { name, input: freeTextInput(call.argumentsJson, isCut) } }
    : {
        id,
        type: 'function',
        function: { name, arguments: callArguments(call, isCut) },
        ...answeredExtras(call),
      };
}

function writeAnnotations(parts: readonly Part[], context: AnswerContext): JsonMembers {
  const annotations: JsonObject[] = [];
  const bounds = new MessageBounds();
  let start = 0;
  for (const part of parts) {
    bounds.begin(part);
    if (part.type !== 'text') continue;
    start += bounds.before(part.text).length;
    const span = { start, end: start + part.text.length };
    for (const citation of part.citations ?? []) {
      const annotation = writeCitation(citation, span, context.notes);
      if (annotation !== undefined) annotations.push(annotation);
    }
    start = span.end;
  }
  return annotations.length === 0 ? {} : { annotations };
}
