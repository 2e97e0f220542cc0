/**
 * Renders a conversation of any dialect as a chat-completions request.
 * The same conversation gives the same bytes each time, because prompt caches depend on it.
 */
import type {
  Conversation,
  DialectId,
  Extras,
  Reasoning,
  Sampling,
} from '../../../core/conversation.ts';
import { type Ask, plannedStops } from '../../../core/dialect.ts';
import type { Notes } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonObject, JsonMembers } from '../../../json/value.ts';
import { noteUncited } from '../../shared/request/document-citations.ts';
import { cacheHints, responsesOptions } from '../../shared/request/responses-fields.ts';
import { MessageWriter, isPrefill, writePrefill } from './write-messages.ts';
import { writeOutput, writeTools } from './write-tools.ts';
import {
  type Wanted,
  noteUncontrolled,
  namedEffort,
  wantedEffort,
  reasoningPath,
} from '../../shared/request/effort.ts';
import { isInstruction, withInstructionsInFront } from '../../shared/request/instructions.ts';
import {
  writeMessagesExtras,
  type Target,
  writeEndUser,
} from '../../shared/request/foreign-options.ts';
import { chatFields } from '../fields.ts';

/** @throws GatewayError `invalid_request` for a member that this upstream cannot honour. */
export function writeRequest(conversation: Conversation, ask: Ask, notes: Notes): JsonObject {
  const { traits } = ask;
  noteUncited(conversation, notes);
  const output = writeOutput(conversation, traits, notes);
  const messages = new MessageWriter({ conversation, traits, notes, provider: ask.provider });
  const { system, turns } = traits.systemAnywhere
    ? conversation
    : withInstructionsInFront(conversation, notes);
  messages.system(system.filter(isInstruction), output.instruction);
  messages.turns(turns);
  const tools = writeTools(conversation, traits, notes);
  const body: JsonMembers = {
    model: ask.model,
    messages: messages.written,
    ...tools,
    ...writeSampling(conversation.sampling, traits, notes),
    ...output.members,
    ...writeReasoning({
      reasoning: conversation.reasoning,
      traits,
      notes,
      offersTools: tools['tools'] !== undefined || output.members['tools'] !== undefined,
      continues: traits.prefill && isPrefill(messages.written),
    }),
    ...writePrefill(messages.written, traits),
    ...writeEndUser(conversation, traits, notes),
    ...writeForeignExtras(conversation.extras, traits, notes),
    ...writeResponsesOptions(conversation.extras, { traits, notes }),
  };
  if (ask.stream) {
    body['stream'] = true;
    if (traits.usageOption) body['stream_options'] = { include_usage: true };
  }
  return { ...conversation.extras['openai-chat'], ...traits.always, ...body };
}

// Top-level fields of other dialects that chat completions cannot carry.

/** The same for all other dialects. */
function writeForeignExtras(extras: Extras, traits: UpstreamTraits, notes: Notes): JsonMembers {
  const members: JsonMembers = {};
  const dialects: readonly DialectId[] = ['anthropic-messages', 'gemini', 'bedrock-converse'];
  for (const dialect of dialects) {
    const fields = extras[dialect] ?? {};
    if (dialect === 'anthropic-messages') {
      Object.assign(members, writeMessagesExtras(fields, traits, notes, whyForeign));
      continue;
    }
    for (const [key, value] of Object.entries(fields)) {
      if (value === undefined || value === null) continue;
      notes.lost([key], 'chat completions has no such field');
    }
  }
  return members;
}

/** A field that chat completions has did not come from the client's API. */
function whyForeign(path: readonly string[]): string {
  if (path.length > 1) return 'not known to the model';
  return chatFields.has(path[0] ?? '')
    ? 'a field of chat completions, and not of the messages API'
    : 'chat completions has no such field';
}

/** Members that both APIs of OpenAI have. */
function writeResponsesOptions(extras: Extras, { traits, notes }: Target): JsonMembers {
  const { verbosity, serviceTier } = responsesOptions(extras);
  const members: JsonMembers = {};
  if (verbosity !== undefined) {
    if (traits.known === true && traits.refuses?.includes('verbosity') !== true) {
      members['verbosity'] = verbosity;
    } else notes.lost(['text', 'verbosity'], 'not known to the model');
  }
  if (serviceTier !== undefined) {
    if (traits.serviceTiers === true) members['service_tier'] = serviceTier;
    else if (serviceTier !== 'default') {
      notes.lost(['service_tier'], 'the provider has no such tier');
    }
  }
  if (traits.serviceTiers !== true) return members;
  for (const key of cacheHints) {
    const value = extras['openai-responses']?.[key];
    if (value !== undefined && value !== null) members[key] = value;
  }
  return members;
}

// Sampling and end user, as far as the upstream takes them.

/** Notes name the fields of the messages dialect: the only one that is translated to this one. */
function writeSampling(sampling: Sampling, traits: UpstreamTraits, notes: Notes): JsonMembers {
  const { maxOutputTokens, topK, seed } = sampling;
  const members: JsonMembers = {};
  if (maxOutputTokens !== undefined) members[traits.maxTokensField] = maxOutputTokens;
  writeTemperature(members, sampling, { traits, notes });
  if (topK !== undefined) {
    if (traits.topK) members['top_k'] = topK;
    else notes.lost(['top_k'], 'not known to the model');
  }
  if (seed !== undefined) {
    if (traits.seed) members[traits.seedField ?? 'seed'] = seed;
    else notes.lost(['seed'], 'not known to the model');
  }
  return { ...members, ...writeStop(sampling.stop, traits) };
}

interface OptionTarget {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

export function writeTemperature(
  members: JsonMembers,
  { temperature, topP }: Sampling,
  { traits, notes }: OptionTarget,
): void {
  for (const [key, value] of [
    ['temperature', temperature],
    ['top_p', topP],
  ] as const) {
    if (value === undefined) continue;
    if (traits.samplingAllowed) members[key] = value;
    // 1 is what the model does anyway.
    else if (value !== 1) notes.lost([key], 'the model takes no sampling parameters');
  }
}

/** Those that the upstream cannot take are searched for by the path (core/dialect.ts). */
function writeStop(stop: readonly string[] | undefined, traits: UpstreamTraits): JsonMembers {
  const { native } = plannedStops(stop, traits);
  return native.length === 0 ? {} : { stop: [...native] };
}

// How much the model may reason, in the members that the upstream has for it.

interface ReasoningQuestion {
  readonly reasoning: Reasoning | undefined;
  readonly traits: UpstreamTraits;
  /** Tools go with the request. */
  readonly offersTools: boolean;
  /** The model is to continue the last assistant message. */
  readonly continues: boolean;
  readonly notes: Notes;
}

/** Nothing where the client said nothing, unless the upstream would refuse the request without. */
export function writeReasoning(question: ReasoningQuestion): JsonMembers {
  const { reasoning, traits, notes } = question;
  const wanted = reasoning === undefined ? undefined : wantedEffort(reasoning);
  const obstacle = findObstacle(question);
  if (obstacle !== undefined) {
    if (wanted !== undefined && wanted !== 'none')
      notes.changed(reasoningPath(reasoning), obstacle.why);
    return obstacle.members;
  }
  if (reasoning === undefined || wanted === undefined) return {};
  return writeControl({ reasoning, wanted, traits, notes });
}

interface Obstacle {
  readonly why: string;
  readonly members: JsonMembers;
}

/**
 * A combination that such models refuse together with reasoning. They reason by default, so reasoning must be
 * turned off explicitly, or every such call fails.
 */
function findObstacle(question: ReasoningQuestion): Obstacle | undefined {
  const { traits, offersTools, continues } = question;
  if (offersTools && traits.toolsExcludeReasoning === true) {
    return {
      why: 'the model does not reason where tools are offered',
      members: { reasoning_effort: 'none' },
    };
  }
  // llama.cpp: "Assistant response prefill is incompatible with enable_thinking."
  if (continues && traits.reasoningControl === 'template') {
    return {
      why: 'the model does not reason in the middle of an answer',
      members: templateSwitch(false),
    };
  }
  return undefined;
}

function writeControl(question: Wanted): JsonMembers {
  const { reasoning, wanted, traits } = question;
  const off = wanted === 'none';
  const budget = traits.reasoningBudget === true && !off ? reasoning.budgetTokens : undefined;
  switch (traits.reasoningControl) {
    case 'effort':
      return writeEffort(question);
    case 'openrouter':
      return { reasoning: budget === undefined ? namedEffort(question) : { max_tokens: budget } };
    case 'gemini':
      return budget === undefined ? writeEffort(question) : geminiBudget(budget);
    case 'thinking-type':
      return {
        thinking: { type: off ? 'disabled' : 'enabled' },
        ...(off ? {} : writeWord(question)),
      };
    case 'template':
      return off ? templateSwitch(false) : { ...templateSwitch(true), ...writeWord(question) };
    case 'qwen':
      if (budget !== undefined) return { enable_thinking: true, thinking_budget: budget };
      return { enable_thinking: !off, ...(off ? {} : writeWord(question)) };
    case 'none':
      noteUncontrolled(question);
      return {};
    default:
      return traits.reasoningControl satisfies never;
  }
}

/** `reasoning_effort` with the nearest word that the model knows. */
function writeEffort(question: Wanted): JsonMembers {
  const { effort } = namedEffort(question);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

/** The effort word in addition to a switch; without effort words, only on and off can be expressed. */
function writeWord(question: Wanted): JsonMembers {
  const { reasoning, traits, notes } = question;
  if (traits.efforts.length > 0) return writeEffort(question);
  if (reasoning.effort !== undefined || reasoning.budgetTokens !== undefined) {
    notes.changed(reasoningPath(reasoning), 'the model decides itself how much it reasons');
  }
  return {};
}

function templateSwitch(on: boolean): JsonMembers {
  return { chat_template_kwargs: { enable_thinking: on } };
}

function geminiBudget(budget: number): JsonMembers {
  return { extra_body: { google: { thinking_config: { thinking_budget: budget } } } };
}
