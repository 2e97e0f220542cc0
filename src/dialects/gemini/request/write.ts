/**
 * Renders a conversation as a `generateContent` request. The address names the model, and whether it streams. The same
 * conversation gives the same bytes each time, because prompt caches depend on it.
 */
import type { Conversation, Extras, Part, Sampling } from '../../../core/conversation.ts';
import { type Ask, plannedStops } from '../../../core/dialect.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { Json, JsonObject, JsonMembers } from '../../../json/value.ts';
import {
  chatDefaults,
  writeEndUser,
  writeMessagesExtras,
} from '../../shared/request/foreign-options.ts';
import {
  withQuestion,
  isInstruction,
  withInstructionsInFront,
} from '../../shared/request/instructions.ts';
import { noteUncited } from '../../shared/request/document-citations.ts';
import {
  requestedTier,
  cacheHints,
  imageDetail,
  responsesOptions,
} from '../../shared/request/responses-fields.ts';
import { dialectId } from '../fields.ts';
import { ContentWriter, type ShownMedia } from './write-contents.ts';
import { writeOutput, writeTools } from './write-tools.ts';
import { writeThinking } from './thinking.ts';

interface Target {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** @throws GatewayError `invalid_request` for a member that this upstream cannot honour. */
export function writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject {
  const { traits } = ask;
  const target = { traits, notes };
  noteUncited(conversation, notes);
  const asked = withQuestion(withInstructionsInFront(conversation, notes), notes);
  const tools = writeTools(conversation, traits, notes);
  const output = writeOutput(conversation, { traits, notes, offersTools: tools.functions });
  const system = writeInstructions(asked.system, output.instruction, notes);
  const contents = new ContentWriter({ conversation, ask, notes });
  if (traits.instructions === false) contents.fold(system, pathOf(asked.system, ['system']));
  contents.turns(asked.turns);
  const config: JsonMembers = {
    ...writeSampling(conversation.sampling, target),
    ...output.members,
    ...writeThinking(conversation, target),
    ...writeResolution(contents.shown, notes),
    ...writeForeign(conversation, target),
  };
  return {
    ...conversation.extras[dialectId],
    ...traits.always,
    contents: contents.written,
    ...(system.length === 0 || traits.instructions === false
      ? {}
      : { systemInstruction: { parts: system } }),
    ...tools.members,
    ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
    ...writeTier(conversation.extras, target),
    ...(ask.resume === undefined ? {} : { continuationToken: ask.resume }),
  };
}

/** One part for each that the client sent. */
function writeInstructions(
  parts: readonly Part[],
  instruction: string | undefined,
  notes: Notes,
): readonly JsonObject[] {
  const written: JsonObject[] = [];
  for (const part of parts.filter(isInstruction)) {
    if (part.type !== 'text') notes.lost(['system'], 'instructions are text only');
    else if (part.text.trim() !== '') written.push({ text: part.text });
  }
  if (instruction !== undefined) written.push({ text: instruction });
  return written;
}

/** One resolution for all media: the highest that an image requests, and low if all images request low. */
function writeResolution(shown: readonly ShownMedia[], notes: Notes): JsonMembers {
  const seen = shown.filter(({ part }) => part.kind !== 'audio' && !('text' in part.source));
  const wanted = seen.map(({ part }) => (part.kind === 'image' ? imageDetail(part) : undefined));
  const sent = resolutionFor(wanted);
  seen.forEach(({ path }, i) => {
    const detail = wanted[i] === 'original' ? 'high' : wanted[i];
    if (detail === sent) return;
    notes.changed(
      path,
      `the provider has one detail for all media: ${sent ?? 'the model decides'}`,
    );
  });
  return sent === undefined ? {} : { mediaResolution: `MEDIA_RESOLUTION_${sent.toUpperCase()}` };
}

function resolutionFor(wanted: readonly (string | undefined)[]): 'high' | 'low' | undefined {
  if (wanted.includes('high') || wanted.includes('original')) return 'high';
  return wanted.length > 0 && wanted.every((detail) => detail === 'low') ? 'low' : undefined;
}

const maxSeed = 0x7fff_ffff;

/** The gateway itself finds stop sequences beyond the number that the upstream takes (core/dialect.ts). */
function writeSampling(sampling: Sampling, { traits, notes }: Target): JsonMembers {
  const { maxOutputTokens, temperature, topP, topK, seed, stop } = sampling;
  const members: JsonMembers = {};
  if (maxOutputTokens !== undefined) members['maxOutputTokens'] = maxOutputTokens;
  for (const [key, name, value] of [
    ['temperature', 'temperature', temperature],
    ['topP', 'top_p', topP],
  ] as const) {
    if (value === undefined) continue;
    if (traits.samplingAllowed) members[key] = value;
    // 1 is the model's default.
    else if (value !== 1) notes.lost([name], 'the model takes no sampling parameters');
  }
  if (topK !== undefined) {
    if (traits.topK) members['topK'] = topK;
    else notes.lost(['top_k'], 'not known to the model');
  }
  if (seed !== undefined) {
    if (traits.seed) members['seed'] = seedOf(seed, notes);
    else notes.lost(['seed'], 'not known to the model');
  }
  const { native } = plannedStops(stop, traits);
  return native.length === 0 ? members : { ...members, stopSequences: [...native] };
}

/** Seeds have 32 bits in this API. A larger seed maps to the same 32-bit seed each time. */
function seedOf(seed: number, notes: Notes): number {
  if (Math.abs(seed) <= maxSeed) return seed;
  notes.changed(['seed'], 'the provider takes seeds of 32 bits');
  return Math.abs(seed) % maxSeed;
}

/** Members of chat completions that have the same meaning here. */
const penalties: ReadonlyMap<string, string> = new Map([
  ['presence_penalty', 'presencePenalty'],
  ['frequency_penalty', 'frequencyPenalty'],
]);
/** Members that are dropped without a note, because they do not change the answer. */
const harmless: ReadonlySet<string> = new Set(['modalities', 'prediction', ...cacheHints]);

/** Members that only the client's dialect has: written as configuration, noted or refused. */
function writeForeign(conversation: Conversation, { traits, notes }: Target): JsonMembers {
  const { extras } = conversation;
  const own = { ...traits, cacheMarks: false, serviceTiers: false };
  writeMessagesExtras(extras['anthropic-messages'] ?? {}, own, notes, () => unknown);
  writeEndUser(conversation, { ...traits, endUserField: undefined }, notes);
  if (responsesOptions(extras).verbosity !== undefined) notes.lost(['text', 'verbosity'], unknown);
  return writeChatExtras(extras['openai-chat'] ?? {}, { traits, notes });
}

/** Service tiers by OpenAI's names. */
export const tiers: ReadonlyMap<Json, string> = new Map([
  ['default', 'standard'],
  ['flex', 'flex'],
  ['priority', 'priority'],
]);

/** The Gemini API takes tiers in a request. On Vertex AI they are part of the contract. */
function writeTier(extras: Extras, { traits, notes }: Target): JsonMembers {
  const tier = requestedTier(extras);
  if (tier === undefined) return {};
  const own = traits.serviceTiers === true ? tiers.get(tier) : undefined;
  if (own !== undefined) return { serviceTier: own };
  notes.lost(['service_tier'], 'the provider has no such tier');
  return {};
}

function writeChatExtras(extras: JsonObject, { traits, notes }: Target): JsonMembers {
  const members: JsonMembers = {};
  for (const [key, value] of Object.entries(extras)) {
    if (value === undefined || value === null || value === chatDefaults.get(key)) continue;
    if (harmless.has(key) || key === 'service_tier') continue;
    const penalty = penalties.get(key);
    if (penalty !== undefined && traits.refuses?.includes(key) !== true) members[penalty] = value;
    else notes.lost([key], unknown);
  }
  return members;
}

const unknown = 'not known to the model';
