/** Reads a document of the Responses API, and the items of documents and streams. */
import type {
  Citation,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from '../../../core/conversation.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { FinishReason, Generation } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import { tryParseInnerObject } from '../../../json/parse.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import {
  answerObjects,
  answerText,
  citedSpan,
  isPresent,
  wrongType,
} from '../../shared/answers.ts';
import { looksLikeError, readErrorValue } from '../../shared/vendor-errors.ts';
import {
  argumentsOf,
  type CallKind,
  callKindOf,
  dialectId,
  idPrefixes,
  isItemId,
  withItemExtras,
} from '../items.ts';
import { readUsage } from './usage.ts';

/**
 * @param notes absent where the upstream's own document goes to the client
 * @throws GatewayError the upstream's error if the document is an error (F24), `upstream_invalid` if it is no finished
 * answer.
 */
export function readResponse(body: JsonObject, notes?: Notes): Generation {
  const failure = failureOf(body);
  if (failure !== undefined) throw failure;
  if (!Array.isArray(body['output'])) throw noAnswer(body);
  const { status } = body;
  if (status === 'queued' || status === 'in_progress') {
    throw new GatewayError('upstream_invalid', 'The upstream answered before it had finished.');
  }
  const items = answerObjects(body['output'], 'output');
  const declared = declaredNames(body);
  const parts = items.flatMap((item, i) =>
    itemParts(item, declared, status === 'incomplete' && isCutItem(item, i === items.length - 1)),
  );
  const fileSearches = items.filter(isFileSearch).length;
  const counts = readUsage(body, items.filter(isSearch).length);
  const usage = fileSearches === 0 ? counts : { ...counts, fileSearches };
  return {
    id: textOf(body['id']),
    model: textOf(body['model']),
    parts,
    finish: readFinish(body, parts.some(isCall), notes),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** The error of a response object, even if its status is `completed`. Undefined without an error. */
export function failureOf(response: JsonObject): GatewayError | undefined {
  const { status, error } = response;
  if (isPresent(error)) return readErrorValue(response);
  if (status !== 'failed' && status !== 'cancelled') return undefined;
  return new GatewayError(
    status === 'failed' ? 'upstream_unavailable' : 'stream_interrupted',
    `The provider gave up on the answer (${status}).`,
  );
}

/** The error for a document or event that this dialect does not have. */
export function noAnswer(body: JsonObject): GatewayError {
  if (body['choices'] !== undefined) {
    return new GatewayError(
      'upstream_invalid',
      'The upstream answered in the form of chat completions: its base address or its dialect is not the one of the Responses API.',
    );
  }
  if (looksLikeError(body)) return readErrorValue(body);
  return new GatewayError('upstream_invalid', 'The upstream answered without an output.');
}

/** Reasons of an incomplete response that other dialects have as well. */
const knownReasons: ReadonlySet<string> = new Set([
  'content_filter',
  'max_output_tokens',
  // xAI
  'length',
]);

/**
 * @param calls whether the answer holds a call that the client is to run.
 * @param notes as of `readResponse`
 */
export function readFinish(response: JsonObject, calls: boolean, notes?: Notes): FinishReason {
  const { status, incomplete_details: details } = response;
  if (status === 'incomplete') {
    const reason = isObject(details) ? textOf(details['reason']) : '';
    if (!knownReasons.has(reason)) {
      const named = reason === '' ? '' : ` (${reason.slice(0, 40)})`;
      const why = `the provider cut the answer with a reason that is not known here${named}`;
      notes?.changed(['incomplete_details', 'reason'], why);
    }
    return {
      kind: reason === 'content_filter' ? 'content-filter' : 'length',
      raw: reason === '' ? 'incomplete' : reason,
    };
  }
  const raw = typeof status === 'string' ? { raw: status } : {};
  return { kind: calls ? 'tool-calls' : 'stop', ...raw };
}

export function isCall(part: Part): boolean {
  return part.type === 'tool-call';
}

export function isSearch(item: JsonObject): boolean {
  return item['type'] === 'web_search_call';
}

export function isFileSearch(item: JsonObject): boolean {
  return item['type'] === 'file_search_call';
}

/** Whether an answer that was cut was cut within this item. Some servers give items no status. */
export function isCutItem({ status }: JsonObject, isLast: boolean): boolean {
  return status === 'incomplete' || (isLast && !isPresent(status));
}

/**
 * The parts of an item.
 * @param declared names of the offered tools that the answer repeats.
 * @param isCut the answer was cut within the item
 * @throws GatewayError `upstream_invalid` for an item without a type.
 */
export function itemParts(
  item: JsonObject,
  declared: ReadonlySet<string>,
  isCut: boolean,
): readonly Part[] {
  const kind = clientCall(item);
  if (kind !== undefined) {
    const call = callPart(kind, item, isCut);
    return splitCalls(call, declared) ?? [call];
  }
  switch (item['type']) {
    case 'message':
      return messageParts(item);
    case 'reasoning': {
      const part = reasoningPart(item);
      return part === undefined ? [] : [part];
    }
    default:
      if (textOf(item['type']) === '') {
        throw new GatewayError('upstream_invalid', 'The upstream sent an item without a type.');
      }
      return [{ type: 'opaque', dialect: dialectId, value: item }];
  }
}

// Messages.

function messageParts(item: JsonObject): readonly Part[] {
  const parts: Part[] = [];
  for (const content of messageContent(item)) {
    // They are on the first text, too, where a part that nothing knows is before it.
    const extras = parts.every((part) => part.type === 'opaque') ? messageExtras(item) : {};
    if (content['type'] === 'refusal') {
      parts.push({ type: 'refusal', text: contentText(content), ...extras });
    } else if (isOtherContent(content)) {
      parts.push({ type: 'opaque', dialect: dialectId, value: content, ...extras });
    } else {
      const citations = readAnnotations(content['annotations']);
      const text: TextPart = { type: 'text', text: contentText(content), ...extras };
      parts.push(citations.length === 0 ? text : { ...text, citations });
    }
  }
  return parts;
}

/** The texts and refusals of a message. Some servers write a text instead of a list. */
export function messageContent(item: JsonObject): readonly JsonObject[] {
  const { content } = item;
  if (typeof content === 'string') return [{ type: 'output_text', text: content }];
  return answerObjects(content, 'a content');
}

/** @throws GatewayError `upstream_invalid` for a content part without a known type. */
export function contentText(content: JsonObject): string {
  if (isPresent(content['type']) && typeof content['type'] !== 'string') throw wrongType('a type');
  const name = content['type'] === 'refusal' ? 'refusal' : 'text';
  return answerText(content[name], `a ${name}`);
}

/** Whether a part of a message is of a type that is not known, without a text. */
export function isOtherContent({ type, text }: JsonObject): boolean {
  return (
    typeof type === 'string' && type !== 'output_text' && type !== 'refusal' && !isPresent(text)
  );
}

/** The extras on the first part of a message. */
export function messageExtras({ phase }: JsonObject): ReturnType<typeof withItemExtras> {
  return withItemExtras({ phase: typeof phase === 'string' ? phase : undefined });
}

/** @throws GatewayError `upstream_invalid` */
export function readAnnotations(annotations: Json | undefined): readonly Citation[] {
  return answerObjects(annotations, 'annotations').map(readAnnotation);
}

export function readAnnotation(value: JsonObject): Citation {
  const { url, title, filename } = value;
  const named = typeof title === 'string' ? title : filename;
  return {
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof named === 'string' ? { title: named } : {}),
    ...citedSpan(value),
    native: { dialect: dialectId, value },
  };
}

// Reasoning.

/** Undefined for reasoning without text that cannot be sent back. */
function reasoningPart(item: JsonObject): ReasoningPart | undefined {
  const summary = textsOf(item['summary'], 'a summary');
  const content = textsOf(item['content'], 'a content');
  const text = summary === '' ? content : summary;
  const signature = encryptedContent(item);
  if (text === '' && signature === '') return undefined;
  return {
    type: 'reasoning',
    text,
    ...(signature === '' ? {} : { signature }),
    ...reasoningExtras(item, summary === '' && content !== ''),
  };
}

/** The joined texts of a summary or content. @throws GatewayError `upstream_invalid` */
export function textsOf(list: Json | undefined, name: string): string {
  return answerObjects(list, name)
    .map((entry) => answerText(entry['text'], name))
    .join(summarySeparator);
}

/** Between the parts of a summary. */
export const summarySeparator = '\n\n';

export function encryptedContent(item: JsonObject): string {
  return answerText(item['encrypted_content'], 'an encrypted_content');
}

/** @param raw the text is the reasoning itself, not a summary. */
export function reasoningExtras(
  { id }: JsonObject,
  raw: boolean,
): ReturnType<typeof withItemExtras> {
  return withItemExtras({
    id: isItemId(id, idPrefixes.reasoning) ? id : undefined,
    raw: raw ? true : undefined,
  });
}

// Calls that the client runs.

/** The kind of a call that the client runs. Undefined for items that the provider ran itself. */
export function clientCall(item: JsonObject): CallKind | undefined {
  const kind = callKindOf(item['type']);
  // The service itself runs a tool search without `execution`, and a shell in a container.
  if (kind === 'tool_search' && item['execution'] !== 'client') return undefined;
  const { environment } = item;
  const environmentType =
    kind === 'shell' && isObject(environment) ? textOf(environment['type']) : '';
  return environmentType.startsWith('container') ? undefined : kind;
}

/**
 * The call with its arguments.
 * @param isCut the answer was cut within it. A free text does not show this, and without its end no client runs the call.
 * @throws GatewayError `upstream_invalid` for a call without a name.
 */
function callPart(kind: CallKind, item: JsonObject, isCut: boolean): ToolCallPart {
  const whole = argumentsOf(kind, item);
  const argumentsJson = isCut && kind === 'custom' ? whole.slice(0, -2) : whole;
  return { ...callStart(kind, item), argumentsJson };
}

/** The call without its arguments. @throws GatewayError `upstream_invalid` for a call without a name. */
export function callStart(kind: CallKind, item: JsonObject): ToolCallPart {
  const named = kind === 'function' || kind === 'custom';
  const name = named ? answerText(item['name'], 'a name') : kind;
  if (name === '') {
    throw new GatewayError('upstream_invalid', 'The upstream sent a call without a name.');
  }
  const { namespace, caller } = item;
  return {
    type: 'tool-call',
    id: answerText(item['call_id'], 'a call_id'),
    name,
    argumentsJson: '',
    ...withItemExtras({
      kind: kind === 'function' ? undefined : kind,
      namespace: typeof namespace === 'string' && namespace !== '' ? namespace : undefined,
      // `direct` means that the model itself called.
      caller: isObject(caller) && caller['type'] !== 'direct' ? caller : undefined,
    }),
  };
}

/** The function name under which OpenAI's models sometimes wrap several calls into one. */
export const wrapperName = 'parallel';
const recipientPrefix = 'functions.';

/** Names of the offered functions that an answer repeats. */
export function declaredNames(response: JsonObject): ReadonlySet<string> {
  const { tools } = response;
  const names = Array.isArray(tools)
    ? tools.map((tool: Json) => (isObject(tool) ? textOf(tool['name']) : ''))
    : [];
  return new Set(names.filter((name) => name !== ''));
}

/** The calls inside of an undeclared wrapper call. Undefined if any of them is no offered function. */
export function splitCalls(
  call: ToolCallPart,
  declared: ReadonlySet<string>,
): readonly ToolCallPart[] | undefined {
  if (call.name !== wrapperName || declared.size === 0 || declared.has(wrapperName)) {
    return undefined;
  }
  const uses = tryParseInnerObject(call.argumentsJson)?.['tool_uses'];
  if (!Array.isArray(uses) || uses.length === 0) return undefined;
  const calls: ToolCallPart[] = [];
  for (const [i, use] of uses.entries()) {
    const recipient = isObject(use) ? textOf(use['recipient_name']) : '';
    const name = recipient.slice(recipientPrefix.length);
    if (!recipient.startsWith(recipientPrefix) || !declared.has(name)) return undefined;
    const given = isObject(use) ? use['parameters'] : undefined;
    calls.push({
      type: 'tool-call',
      id: `${call.id}_${i}`,
      name,
      argumentsJson: JSON.stringify(given ?? {}),
    });
  }
  return calls;
}
