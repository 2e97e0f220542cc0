/**
 * What a refused member says about a model: the traits with which the request would be written
 * otherwise (B9). A wrong guess costs one more request and is not kept.
 */
import type { Effort, JsonObject } from '../core/conversation.ts';
import { allEfforts, type UpstreamTraits } from '../core/traits.ts';
import { isObject } from '../core/json.ts';
import type { Complaint } from './named-parameters.ts';

type Changes = Partial<UpstreamTraits>;

export interface Correction {
  readonly traits: Changes;
  /** The members that were refused, as the upstream spells them. */
  readonly members: readonly string[];
  /** It says something of the model; else only of a value, which other calls do not have. */
  readonly lasting: boolean;
}

interface Seen {
  readonly text: string;
  /** The body that was refused. */
  readonly sent: JsonObject;
  readonly traits: UpstreamTraits;
}

type Fix = (seen: Seen) => Changes | undefined;

/** By the name of the member; each looks whether the request had it at all. */
const fixes: ReadonlyMap<string, Fix> = new Map<string, Fix>([
  ['max_tokens', fixMaxTokens],
  ['max_completion_tokens', ifSent('max_completion_tokens', { maxTokensField: 'max_tokens' })],
  ['reasoning_effort', fixEffort],
  ['reasoning.effort', fixEffort],
  ['output_config.effort', fixEffort],
  ['effort', fixEffort],
  ['temperature', fixSampling],
  ['top_p', fixSampling],
  ['top_k', ifSent('top_k', { topK: false })],
  ['stop', fixStop],
  ['stop_sequences', fixStop],
  ['stream_options', ifSent('stream_options', { usageOption: false })],
  ['include_usage', ifSent('stream_options', { usageOption: false })],
  ['parallel_tool_calls', ifSent('parallel_tool_calls', { parallelFlag: false })],
  ['seed', ifSent('seed', { seed: false })],
  ['response_format', fixFormat],
  ['json_schema', fixFormat],
  ['output_config.format', ifSent('output_config', { responseFormat: 'none' })],
  ['tool_choice', fixToolChoice],
  ['role', fixRole],
  ['developer', fixRole],
  ['thinking', fixThinking],
  ['thinking.type', fixThinking],
  ['thinking.type.enabled', fixThinking],
  ['thinking.type.adaptive', fixThinking],
  ['thinking.budget_tokens', fixThinking],
  ['signature', fixHistory],
  ['prompt_cache_breakpoint', fixBreakpoint],
  ['cache_control', fixCacheMark],
  ['safety_identifier', ifSent('safety_identifier', { endUserField: 'user' })],
  ['user', ifSent('user', { endUserField: undefined })],
  ['strict', fixStrict],
  ['stream', fixStream],
]);

/**
 * Complaints about the value that one client sent, by the member. Learned as traits of the model, they
 * would take the member from everybody's calls: one bad schema would end structured output for all.
 */
const range =
  /\b(greater|less|larger|smaller|between|range|at (least|most))\b|[<>]|\bwhen (using|temperature|top_p|thinking)\b/i;
const schema = /\binvalid (json )?schema|\bin context=|\bschema (for|contains|has|must)\b/i;
const thinkingBlocks = /signature|cannot be modified/i;
const valueComplaints: ReadonlyMap<string, RegExp> = new Map([
  ['temperature', range],
  ['top_p', range],
  ['top_k', range],
  ['seed', range],
  ['stop', /string (is )?too long/i],
  ['stop_sequences', /string (is )?too long/i],
  ['response_format', schema],
  ['json_schema', schema],
  ['output_config.format', schema],
  ['strict', schema],
  ['thinking', thinkingBlocks],
  ['signature', thinkingBlocks],
]);

function ifSent(member: string, wanted: Changes): Fix {
  return ({ sent }) => (sent[member] === undefined ? undefined : wanted);
}

/** Undefined when nothing that the gateway wrote is refused, or it knows no other way. */
export function correctionOf(
  complaint: Complaint,
  request: Omit<Seen, 'text'>,
): Correction | undefined {
  const seen = { ...request, text: complaint.text };
  let wanted: Changes = {};
  let lasting = true;
  const members: string[] = [];
  for (const name of complaint.names) {
    const member = fixes.has(name) ? name : lastPart(name);
    const found = fixes.get(member)?.(seen);
    if (found === undefined) continue;
    wanted = { ...wanted, ...found };
    if (valueComplaints.get(member)?.test(seen.text) === true) lasting = false;
    if (!members.includes(member)) members.push(member);
  }
  const traits = changes(wanted, request.traits);
  return traits === undefined ? undefined : { traits, members, lasting };
}

/** `messages.content.prompt_cache_breakpoint`, `tools.function.strict`: the member itself. */
function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

/** Only what is new; undefined when nothing is. */
function changes(wanted: Changes, traits: UpstreamTraits): Changes | undefined {
  const fresh = Object.entries(wanted).filter(
    ([key, value]) => JSON.stringify(Reflect.get(traits, key)) !== JSON.stringify(value),
  );
  return fresh.length === 0 ? undefined : Object.fromEntries(fresh);
}

function fixMaxTokens({ text, sent, traits }: Seen): Changes | undefined {
  const limit = /max_tokens: \d+ > (\d+)/.exec(text)?.[1];
  // The model's own limit: only the gateway's default may be lowered, never what a client asked for.
  if (limit !== undefined) {
    return sent['max_tokens'] === traits.defaultMaxOutputTokens
      ? { defaultMaxOutputTokens: Number(limit) }
      : undefined;
  }
  return sent['max_tokens'] === undefined ? undefined : { maxTokensField: 'max_completion_tokens' };
}

/** The words that the server lists as known; else all but the refused one. */
function fixEffort({ text, sent, traits }: Seen): Changes | undefined {
  const refused = sentEffort(sent);
  if (refused === undefined) return undefined;
  if (
    /tools?\b[^]{0,300}(not supported|cannot|are not)/i.test(text) &&
    sent['tools'] !== undefined
  ) {
    return { toolsExcludeReasoning: true };
  }
  const listed = allEfforts.filter(
    (effort) => effort !== refused && new RegExp(`["'\`]${effort}["'\`]`).test(text),
  );
  if (listed.length > 0) return { efforts: listed };
  // Without a word about the value the member itself is unknown.
  if (!new RegExp(`\\b${refused}\\b`).test(text)) return { efforts: [] };
  return { efforts: traits.efforts.filter((effort) => effort !== refused) };
}

function sentEffort(sent: JsonObject): Effort | undefined {
  const { reasoning, output_config: config } = sent;
  const word =
    sent['reasoning_effort'] ??
    (isObject(reasoning) ? reasoning['effort'] : undefined) ??
    (isObject(config) ? config['effort'] : undefined);
  return allEfforts.find((effort) => effort === word);
}

function fixSampling({ text, sent }: Seen): Changes | undefined {
  if (sent['temperature'] === undefined && sent['top_p'] === undefined) return undefined;
  const both = sent['temperature'] !== undefined && sent['top_p'] !== undefined;
  const names = /temperature/.test(text) && /top_p/.test(text);
  if (both && names && /both|only one|together|either/i.test(text)) {
    return { temperatureExcludesTopP: true };
  }
  return { samplingAllowed: false };
}

function fixStop({ text, sent }: Seen): Changes | undefined {
  const stop = sent['stop'] ?? sent['stop_sequences'];
  if (!Array.isArray(stop)) return undefined;
  if (/white ?space/i.test(text)) return { refusesBlankStops: true };
  const limit =
    /(?:at most|maximum(?: \w{1,20}){0,3}|max(?:imum)? length|up to|more than) (\d{1,6})/i.exec(
      text,
    )?.[1];
  const known = limit === undefined ? 0 : Number(limit);
  return { stopMax: known < stop.length ? known : 0 };
}

function fixFormat({ sent }: Seen): Changes | undefined {
  const format = sent['response_format'];
  if (!isObject(format)) return undefined;
  return { responseFormat: format['type'] === 'json_schema' ? 'object' : 'none' };
}

/** Where a demand of one tool is refused beside thinking, nothing is learned of the model. */
function fixToolChoice({ text, sent }: Seen): Changes | undefined {
  if (sent['tool_choice'] === undefined || /thinking/i.test(text)) return undefined;
  return { toolChoice: false };
}

function fixRole({ text, sent, traits }: Seen): Changes | undefined {
  if (sent['messages'] === undefined) return undefined;
  if (traits.systemRole === 'developer' && /developer/.test(text)) return { systemRole: 'system' };
  if (traits.systemRole === 'system' && /does not support 'system'/.test(text)) {
    return { systemRole: 'developer' };
  }
  return undefined;
}

/** Thoughts of earlier turns that were changed, or that this provider never signed (§5.3). */
function fixHistory({ text, sent }: Seen): Changes | undefined {
  return thinkingBlocks.test(text) && sent['messages'] !== undefined
    ? { historyReasoning: false }
    : undefined;
}

function fixThinking(seen: Seen): Changes | undefined {
  const { text } = seen;
  const { thinking } = seen.sent;
  if (thinkingBlocks.test(text)) return fixHistory(seen);
  if (!isObject(thinking)) return undefined;
  switch (thinking['type']) {
    case 'enabled':
      return /adaptive/.test(text) ? { thinking: 'adaptive' } : { thinking: 'none' };
    case 'adaptive':
      return /thinking[^.]{0,200}not supported|enabled|budget/.test(text)
        ? { thinking: /adaptive|enabled|budget/.test(text) ? 'budget' : 'none' }
        : undefined;
    case 'disabled':
      return { thinkingOff: 'never' };
    default:
      return undefined;
  }
}

/** That there are too many marks, or one at a wrong place, is no word about the model. */
const unknownMember =
  /unknown|unrecogni[sz]ed|extra (inputs|fields)|unsupported|not (supported|permitted)/i;

function fixBreakpoint({ text, traits }: Seen): Changes | undefined {
  if (traits.cacheBreakpoints !== true || !unknownMember.test(text)) return undefined;
  return { cacheBreakpoints: false };
}

function fixCacheMark({ text, traits }: Seen): Changes | undefined {
  return traits.cacheMarks && unknownMember.test(text) ? { cacheMarks: false } : undefined;
}

/** Strict schemas are promised by those who take any schema as it is. */
function fixStrict({ sent, traits }: Seen): Changes | undefined {
  if (sent['tools'] === undefined) return undefined;
  return sent['max_tokens'] !== undefined && traits.thinking !== 'none'
    ? { responseFormat: 'none' }
    : { schemaRules: traits.schemaRules ?? 'resolved' };
}

function fixStream({ text, sent }: Seen): Changes | undefined {
  if (sent['stream'] !== true) {
    return /must be (set to )?true|only.{0,200}stream/i.test(text)
      ? { streams: 'only' }
      : undefined;
  }
  return /stream_options/.test(text) ? undefined : { streams: 'never' };
}
