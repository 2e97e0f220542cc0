/**
 * Renders a conversation as a Converse request. The address names the model, and whether it streams. The same
 * conversation gives the same bytes each time, because prompt caches depend on it.
 */
import type { CacheMark, Conversation, Extras, Part } from '../../../core/conversation.ts';
import { type Ask, plannedStops } from '../../../core/dialect.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { isObject, type Json, type JsonMembers, type JsonObject } from '../../../json/value.ts';
import { readMark } from '../../anthropic-messages/request/read-blocks.ts';
import { CacheMarks, writeMark } from '../../anthropic-messages/request/cache-marks.ts';
import { writeMaxTokens, writeTuning } from '../../anthropic-messages/request/write.ts';
import {
  chatDefaults,
  writeEndUser,
  writeMessagesExtras,
} from '../../shared/request/foreign-options.ts';
import { withQuestion, isInstruction } from '../../shared/request/instructions.ts';
import { isBlank, type Message } from '../../shared/request/message-turns.ts';
import { noteUncited } from '../../shared/request/document-citations.ts';
import {
  requestedTier,
  cacheHints,
  responsesOptions,
} from '../../shared/request/responses-fields.ts';
import { dialectId } from '../fields.ts';
import { writeMessages } from './write-messages.ts';
import { writeOutput, writeTools } from './write-tools.ts';
import { writeThinking, type WrittenThinking } from './thinking.ts';

/** @throws GatewayError `invalid_request` for a member that this upstream cannot honour. */
export function writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject {
  const { traits } = ask;
  const points = new CachePoints(notes);
  const marks = new CacheMarks(traits.cacheMarks, (block, mark) => points.add(block, mark));
  if (traits.citesDocuments !== true) noteUncited(conversation, notes);
  // An output limit of 0 asks to warm a cache. The attempt loop answers such a call itself and sends no request.
  const warms = conversation.sampling.maxOutputTokens === 0;
  const maxTokens = warms ? 0 : writeMaxTokens(conversation, ask, notes);
  const thinking = writeThinking({ conversation, traits, maxTokens }, notes);
  const writing = { conversation, traits, notes, marks };
  const output = writeOutput(writing, thinking.on);
  // Tools are first in the prompt, so their marks are registered first.
  const tools = output.tool ?? writeTools(writing);
  const asked = withQuestion(conversation, notes);
  const system = writeSystem(asked.system, output.instruction, { marks, notes });
  const messages = writeMessages(asked.turns, { ask, notes, marks, tools: conversation.tools });
  if (traits.instructions === false && system.length > 0) {
    const why = 'the model has no instructions: they begin the first turn';
    notes.changed(pathOf(asked.system, ['system']), why);
    messages[0]?.content.unshift(...system);
  }
  markEnd(messages, conversation.extras, marks);
  marks.apply(notes, 0);
  const foreign = writeForeign(conversation, { traits, notes });
  const sampling = writeSampling(conversation, { ask, notes, thinking, maxTokens });
  const config = { ...output.config, ...thinking.config };
  const more = { ...sampling.more, ...thinking.more };
  return {
    ...conversation.extras[dialectId],
    ...traits.always,
    messages: messages.map(({ role, content }) => ({ role, content: points.within(content) })),
    ...(system.length === 0 || traits.instructions === false
      ? {}
      : { system: points.within(system) }),
    ...(tools === undefined
      ? {}
      : {
          toolConfig: {
            tools: points.within(tools.tools),
            ...(tools.choice === undefined ? {} : { toolChoice: tools.choice }),
          },
        }),
    ...member('inferenceConfig', sampling.config),
    ...member('outputConfig', config),
    ...member('additionalModelRequestFields', more),
    ...sampling.paths,
    ...foreign,
  };
}

/** `cache_control` of a whole request marks the end of it. */
function markEnd(messages: readonly Message[], extras: Extras, marks: CacheMarks): void {
  const control = extras['anthropic-messages']?.['cache_control'];
  const last = messages.at(-1)?.content.at(-1);
  if (last !== undefined && isObject(control))
    marks.message(last, readMark({ cache_control: control }));
}

function member(name: string, value: JsonObject): JsonMembers {
  return Object.keys(value).length === 0 ? {} : { [name]: value };
}

/** One block for each part that the client sent. */
function writeSystem(
  parts: readonly Part[],
  instruction: string | undefined,
  { marks, notes }: { readonly marks: CacheMarks; readonly notes: Notes },
): readonly JsonMembers[] {
  const blocks: JsonMembers[] = [];
  for (const part of parts.filter(isInstruction)) {
    if (part.type !== 'text') notes.lost(['system'], 'instructions are text only');
    else if (!isBlank(part.text)) blocks.push(marks.prefix({ text: part.text }, part));
  }
  if (instruction !== undefined) blocks.push({ text: instruction });
  return blocks;
}

/** Cache marks as separate blocks after the blocks that they mark. */
class CachePoints {
  readonly #notes: Notes;
  readonly #points = new Map<JsonMembers, JsonObject>();
  /** An earlier mark lasts five minutes. Later marks may not last longer. */
  #short = false;

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  add(block: JsonMembers, mark: CacheMark): void {
    const long = writeMark(mark, this.#notes)['ttl'] === '1h';
    if (long && this.#short) {
      const path = [...pathOf(mark, ['cache_control']), 'ttl'];
      this.#notes.changed(path, 'kept as long as what is marked before it');
    }
    this.#short ||= !long;
    const ttl = long && !this.#short ? { ttl: '1h' } : {};
    this.#points.set(block, { cachePoint: { type: 'default', ...ttl } });
  }

  within(blocks: readonly JsonMembers[]): readonly JsonObject[] {
    return blocks.flatMap((block) => {
      const point = this.#points.get(block);
      return point === undefined ? [block] : [block, point];
    });
  }
}

interface SamplingWriting {
  readonly ask: Ask;
  readonly notes: Notes;
  readonly thinking: WrittenThinking;
  readonly maxTokens: number;
}

interface WrittenSampling {
  readonly config: JsonMembers;
  /** Members of the model's own request. */
  readonly more: JsonMembers;
  /** Paths of the model's own answer that the service returns. */
  readonly paths: JsonMembers;
}

/** The gateway itself finds stop sequences beyond the number that the upstream takes (core/dialect.ts). */
function writeSampling(
  { sampling }: Conversation,
  { ask, notes, thinking, maxTokens }: SamplingWriting,
): WrittenSampling {
  const { traits, stream } = ask;
  const tuned = writeTuning(sampling, { traits, notes, thinks: thinking.on });
  const { temperature, top_p: topP, top_k: topK } = tuned;
  if (sampling.seed !== undefined) notes.lost(['seed'], 'the model takes no seed');
  const { native } = plannedStops(sampling.stop, traits);
  const path = stream ? '/delta/stop_sequence' : '/stop_sequence';
  const named = native.length > 0 && traits.reportsStopSequence === true;
  const own = traits.topKInConfig === true ? { inferenceConfig: { topK } } : { top_k: topK };
  return {
    config: {
      // Without a limit, the service charges the model's maximum output against the account's quota.
      ...(thinking.unbounded === true ? {} : { maxTokens }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(topP === undefined ? {} : { topP }),
      ...(native.length === 0 ? {} : { stopSequences: [...native] }),
    },
    more: topK === undefined ? {} : own,
    paths: named ? { additionalModelResponseFieldPaths: [path] } : {},
  };
}

// Members that only the client's dialect has.

interface Target {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

const unknown = 'not known to the model';
/** Members that are dropped without a note, because they do not change the answer. */
const harmless: ReadonlySet<string> = new Set(['modalities', 'prediction', ...cacheHints]);
/** Service tiers by OpenAI's names. */
export const tiers: ReadonlySet<Json> = new Set(['default', 'flex', 'priority']);

function writeForeign(conversation: Conversation, { traits, notes }: Target): JsonMembers {
  const { extras } = conversation;
  const own = { ...traits, cacheMarks: false, serviceTiers: false };
  writeMessagesExtras(extras['anthropic-messages'] ?? {}, own, notes, () => unknown);
  writeEndUser(conversation, { ...traits, endUserField: undefined }, notes);
  if (responsesOptions(extras).verbosity !== undefined) notes.lost(['text', 'verbosity'], unknown);
  writeChatExtras(extras, notes);
  return writeTier(requestedTier(extras), notes);
}

function writeChatExtras(extras: Extras, notes: Notes): void {
  for (const [key, value] of Object.entries(extras['openai-chat'] ?? {})) {
    if (value === undefined || value === null || value === chatDefaults.get(key)) continue;
    if (!harmless.has(key) && key !== 'service_tier') notes.lost([key], unknown);
  }
}

function writeTier(tier: Json | undefined, notes: Notes): JsonMembers {
  if (tier === undefined) return {};
  if (tiers.has(tier)) return { serviceTier: { type: tier } };
  notes.lost(['service_tier'], 'the provider has no such tier');
  return {};
}
