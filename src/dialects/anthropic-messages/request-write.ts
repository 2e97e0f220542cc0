/**
 * Renders a conversation of any dialect as a messages request (wire/translation.md §1, §3, §8). The
 * same conversation gives the same bytes each time: prompt caches depend on it (G2).
 */
import type { Conversation, JsonObject, Part } from '../../core/conversation.ts';
import type { Ask } from '../../core/dialect.ts';
import { unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import { atOnce, type Steps } from '../../core/steps.ts';
import { jsonTool } from '../json-tool.ts';
import { CacheMarks } from './cache-marks.ts';
import { isBlank, type Writing } from './request-write-blocks.ts';
import type { JsonMembers } from './fields.ts';
import {
  writeEndUser,
  writeForeignFields,
  writeOutput,
  writeSampling,
  type WrittenOutput,
} from './request-write-options.ts';
import { writeThinking, type WrittenThinking } from './request-write-thinking.ts';
import { canForceTools, writeJsonTool, writeTools } from './request-write-tools.ts';
import { writeTurns } from './request-write-turns.ts';

/** @throws GatewayError `invalid_request` for what this upstream cannot honour. */
export function writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject {
  return atOnce(requestWriting(conversation, ask, notes));
}

/** The same in steps. */
export function* requestWriting(
  conversation: Conversation,
  ask: Ask,
  notes: Notes,
): Steps<JsonObject> {
  const { traits } = ask;
  const marks = new CacheMarks(traits.cacheMarks);
  const writing: Writing = { traits, notes, marks, tools: conversation.tools };
  const maxTokens = writeMaxTokens(conversation, ask);
  const thinking = writeThinking({ conversation, traits, maxTokens }, notes);
  const json =
    traits.responseFormat === 'schema' || !canForceTools(traits)
      ? undefined
      : jsonTool(conversation, thinking.on);
  const output = json === undefined ? yield* writeOutput(conversation.output, traits, notes) : {};
  const { system, turns } = withQuestion(conversation, notes);
  const native = nativeFields(conversation, traits.cacheMarks);
  // Tools are first in the prompt, so their marks are registered first.
  const tools =
    json === undefined
      ? yield* writeTools(conversation, writing)
      : yield* writeJsonTool(json, writing);
  const body: JsonMembers = {
    model: ask.model,
    max_tokens: maxTokens,
    ...writeSystem(system, output.instruction, writing),
    messages: (yield* writeTurns(turns, writing)).map(({ role, content }) => ({ role, content })),
    ...tools,
    ...(thinking.thinking === undefined ? {} : { thinking: thinking.thinking }),
    ...writeOutputConfig(thinking, output, native['output_config']),
    ...writeSampling(conversation.sampling, { traits, notes, thinks: thinking.on }),
    ...writeMetadata(conversation.endUser, native['metadata']),
    ...writeForeignFields(conversation.extras, traits, notes),
  };
  marks.apply(notes, native['cache_control'] === undefined ? 0 : 1);
  if (ask.stream) body['stream'] = true;
  return { ...native, ...body };
}

/** 0 would mean to warm the prompt cache and answer nothing: it is never sent by accident. */
function writeMaxTokens({ sampling }: Conversation, { traits }: Ask): number {
  const { maxOutputTokens = traits.defaultMaxOutputTokens } = sampling;
  if (maxOutputTokens < 1) throw unsupported(['max_tokens'], 'At least 1 token must be allowed.');
  return maxOutputTokens;
}

/** A request needs a turn: without one, the last instruction becomes it. */
function withQuestion(
  { system, turns }: Conversation,
  notes: Notes,
): Pick<Conversation, 'system' | 'turns'> {
  const last = system.at(-1);
  if (turns.length > 0 || last === undefined) return { system, turns };
  notes.changed(['messages'], 'the last instruction is sent as the user');
  return { system: system.slice(0, -1), turns: [{ role: 'user', parts: [last] }] };
}

/** One block per part, never joined: joining changes what is cached. */
function writeSystem(
  parts: readonly Part[],
  instruction: string | undefined,
  { marks, notes }: Writing,
): JsonObject {
  const blocks: JsonMembers[] = [];
  for (const part of parts) {
    if (part.type !== 'text') notes.lost(['system'], 'instructions are text only');
    else if (!isBlank(part.text))
      blocks.push(marks.prefix({ type: 'text', text: part.text }, part));
  }
  if (instruction !== undefined) blocks.push({ type: 'text', text: instruction });
  return blocks.length === 0 ? {} : { system: blocks };
}

function writeOutputConfig(
  { effort }: WrittenThinking,
  { format }: WrittenOutput,
  native: JsonObject[string],
): JsonObject {
  const config: JsonMembers = { ...(isObject(native) ? native : {}) };
  if (effort !== undefined) config['effort'] = effort;
  if (format !== undefined) config['format'] = format;
  return Object.keys(config).length === 0 ? {} : { output_config: config };
}

function writeMetadata(endUser: string | undefined, native: JsonObject[string]): JsonObject {
  const metadata = { ...(isObject(native) ? native : {}), ...writeEndUser(endUser) };
  return Object.keys(metadata).length === 0 ? {} : { metadata };
}

/** Fields of this dialect that came through another one. */
function nativeFields({ extras }: Conversation, cacheMarks: boolean): JsonObject {
  const { cache_control: mark, ...fields } = extras['anthropic-messages'] ?? {};
  return cacheMarks && mark !== undefined ? { ...fields, cache_control: mark } : fields;
}
