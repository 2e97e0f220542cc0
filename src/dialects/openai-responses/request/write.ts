/**
 * Renders a conversation of another dialect as a Responses request. The provider stores nothing: the input is complete
 * each time, and reasoning goes back as its provider encrypted it. The same conversation gives the same bytes each
 * time, because prompt caches depend on it.
 */
import type { Conversation, Reasoning, Sampling } from '../../../core/conversation.ts';
import type { Ask } from '../../../core/dialect.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { isObject, type Json, type JsonObject, type JsonMembers } from '../../../json/value.ts';
import { isInstruction, withInstructionsInFront } from '../../shared/request/instructions.ts';
import { writeEndUser, writeMessagesExtras } from '../../shared/request/foreign-options.ts';
import { writeTemperature } from '../../openai-chat/request/write.ts';
import { namedEffort, noteUncontrolled, wantedEffort } from '../../shared/request/effort.ts';
import { writeOutput } from '../../openai-chat/request/write-tools.ts';
import { noteUncited } from '../../shared/request/document-citations.ts';
import { cacheHints } from '../../shared/request/responses-fields.ts';
import { isPresent } from '../fields.ts';
import { dialectId } from '../items.ts';
import { ItemWriter } from './write-items.ts';
import { writeTools } from './write-tools.ts';

interface Target {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** @throws GatewayError `invalid_request` for a member that this upstream cannot honour. */
export function writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject {
  const { traits } = ask;
  const target = { traits, notes };
  noteUncited(conversation, notes);
  const format = writeFormat(conversation, target);
  const items = new ItemWriter({ conversation, traits, notes, provider: ask.provider });
  const { system, turns } = traits.systemAnywhere
    ? conversation
    : withInstructionsInFront(conversation, notes);
  items.instructions(system.filter(isInstruction), format.instruction);
  items.turns(turns);
  const { text, ...foreign } = writeExtras(conversation, target);
  const wanted = { ...format.text, ...text };
  const body: JsonMembers = {
    model: ask.model,
    input: items.written,
    ...writeTools(conversation, traits, notes),
    ...writeSampling(conversation.sampling, target),
    ...(Object.keys(wanted).length === 0 ? {} : { text: wanted }),
    ...writeReasoning(conversation.reasoning, target),
    ...writeEndUser(conversation, traits, notes),
    ...foreign,
    store: false,
    ...(isIncluded(encryptedReasoning, traits) ? { include: [encryptedReasoning] } : {}),
  };
  if (ask.stream) body['stream'] = true;
  return { ...conversation.extras[dialectId], ...body };
}

/** Value of `include` for encrypted reasoning, which can be sent back to a provider that stores nothing. */
export const encryptedReasoning = 'reasoning.encrypted_content';

/** Whether the provider is not known to refuse this value of `include`. */
export function isIncluded(value: Json, { refusedIncludes }: UpstreamTraits): boolean {
  return refusedIncludes?.some((each) => each === value) !== true;
}

/** The gateway itself finds stop sequences (core/dialect.ts). */
function writeSampling(sampling: Sampling, { traits, notes }: Target): JsonMembers {
  const { maxOutputTokens: cap, topK, seed } = sampling;
  const members: JsonMembers = {};
  const least = traits.minOutputTokens ?? 0;
  if (cap !== undefined) members['max_output_tokens'] = Math.max(cap, least);
  if (cap !== undefined && cap < least) {
    notes.changed(pathOf(sampling, ['max_tokens']), `the model takes no cap below ${least}`);
  }
  writeTemperature(members, sampling, { traits, notes });
  if (topK !== undefined) notes.lost(['top_k'], 'not known to the model');
  if (seed !== undefined) notes.lost(['seed'], 'not known to the model');
  return members;
}

interface WrittenFormat {
  /** Members of `text`. */
  readonly text: JsonMembers;
  /** Text for the instructions, where the upstream does not enforce the format. */
  readonly instruction: string | undefined;
}

/** The format of chat completions without its inner object. */
function writeFormat(conversation: Conversation, { traits, notes }: Target): WrittenFormat {
  const { members, instruction } = writeOutput(conversation, traits, notes);
  const format = members['response_format'];
  if (!isObject(format)) return { text: {}, instruction };
  const { json_schema: schema, ...rest } = format;
  return { text: { format: { ...rest, ...(isObject(schema) ? schema : {}) } }, instruction };
}

/** The effort, and a summary unless the client hides reasoning. */
function writeReasoning(reasoning: Reasoning | undefined, { traits, notes }: Target): JsonMembers {
  const wanted = reasoning === undefined ? undefined : wantedEffort(reasoning);
  if (reasoning === undefined || wanted === undefined) return {};
  if (traits.reasoningControl === 'none') {
    noteUncontrolled({ reasoning, wanted, traits, notes });
    return {};
  }
  const { effort } = namedEffort({ reasoning, wanted, traits, notes });
  if (effort === undefined) return {};
  const shown = effort !== 'none' && reasoning.hidden !== true && traits.reasoningSummary === true;
  return { reasoning: { effort, ...(shown ? { summary: 'auto' } : {}) } };
}

/** Members of chat completions that have the same name and meaning here. */
const shared: ReadonlySet<string> = new Set(['metadata', 'service_tier', ...cacheHints]);
/** Members that are dropped without a note, because they do not change the answer. */
const harmless: ReadonlySet<string> = new Set(['modalities', 'prediction']);

/** Members that only the client's dialect has. */
function writeExtras(
  { extras }: Conversation,
  target: Target,
): JsonMembers & { text?: JsonObject } {
  const { traits, notes } = target;
  const members: JsonMembers & { text?: JsonObject } = {
    ...writeMessagesExtras(extras['anthropic-messages'] ?? {}, traits, notes, () => unknown),
  };
  for (const [key, value] of Object.entries(extras['openai-chat'] ?? {})) {
    if (!isPresent(value) || harmless.has(key)) continue;
    if (key === 'verbosity') members.text = { verbosity: value };
    else if (shared.has(key) && traits.serviceTiers === true) members[key] = value;
    else if (!cacheHints.includes(key)) notes.lost([key], whyLost(key));
  }
  return members;
}

const unknown = 'not known to the model';

function whyLost(key: string): string {
  return key === 'store' ? 'the gateway keeps nothing at the provider' : unknown;
}
