/**
 * Refusals of members: how vendors word them, and how the request is written instead. One table holds the repairs;
 * `test/unit/gateway/learned-parameters.test.ts` has a refusal for each of its rows.
 */
import type { Effort } from '../../core/conversation.ts';
import type { GatewayError } from '../../core/errors.ts';
import { allEfforts, type UpstreamTraits } from '../../core/traits.ts';
import { tryParseInner } from '../../json/parse.ts';
import {
  isArray,
  isObject,
  type Json,
  type JsonMembers,
  type JsonObject,
} from '../../json/value.ts';

export interface Complaint {
  /** Paths as the upstream spelled them, in snake case, without indexes: `messages.role`, `stop`. */
  readonly names: ReadonlySet<string>;
  /** The same with indexes, where a member of the error holds the path: `include[1]`, `include.1`. */
  readonly paths?: readonly string[];
  /** The complete text of the answer. */
  readonly text: string;
}

/**
 * Sentences in which servers name the member that they refuse. The first group holds the name, or several names
 * with commas in between. `test/unit/gateway/learned-parameters.test.ts` has a real sentence for each row, which
 * no other row reads.
 */
export const wordings = {
  /** `Unsupported parameter: 'max_tokens' is not supported`, `property 'user' is unsupported`. */
  quoted: /["'`]([A-Za-z][A-Za-z0-9_.[\]]{1,60})["'`]/g,
  /** `max_tokens: 5 > 4`, `tools.0.custom.strict: Extra inputs…`. */
  leading: /(?:^|[\n"'`:]\s{0,3})([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*):/g,
  /** `unknown parameter stop`, `Unsupported param: echo`. */
  announced:
    /(?:param(?:eter)?s?|arguments?|field|property|key|name):?\s{1,3}["'`\\]{0,3}([A-Za-z][A-Za-z0-9_.]{0,60})/gi,
  /** `Unrecognized request arguments supplied: user, seed`. */
  supplied:
    /(?:param(?:eter)?s?|arguments?|fields?|propert(?:y|ies)|keys?|inputs?) (?:supplied|provided|given|found|received|specified):\s{0,3}([a-z][\w, ]{0,300})/gi,
  /** `Argument not supported on this model: stop`. */
  onThisModel: /on this model:\s*([A-Za-z][A-Za-z0-9_]*)/g,
  /** `stop is not supported`, `seed parameter`. */
  subject:
    /\b([a-z][a-z_]{0,60}) (?:parameter|argument|field|is not|must be|not (?:supported|allowed|permitted))\b/gi,
  /** `This model does not support temperature`. */
  object: /\b(?:not support|not accept|unsupported)(?: the| a| an)? ([a-z][a-z_]{0,60})\b/gi,
  /** Any word in snake case is taken for a member: `Set max_completion_tokens lower`. */
  snakeCase: /\b([a-z]+(?:_[a-z]+)+)\b/g,
  /** `#: extraneous key [user] is not permitted` (Bedrock). */
  bracketed: /\bkey \[([A-Za-z][A-Za-z0-9_.]{0,60})\]/g,
} as const satisfies { readonly [name: string]: RegExp };

/**
 * Errors that name a rule and no member: of chat templates, of the items of a Responses input, of models behind Converse.
 * vLLM, omlx and Ollama answer those of chat templates with 400, llama.cpp with 400 or 500 (vllm#41114, llama.cpp#20733,
 * ollama#17774), so the status does not matter.
 */
const ruleRefusals = {
  system_position:
    /system (?:message|prompt|role)s? (?:must|should|can only|may only) (?:be|come|appear|stand)[^.]{0,20}(?:beginning|start|first)/i,
  /** One name of a beta that is not known there fails the request (Bedrock). */
  anthropic_beta: /invalid beta flag/i,
  /** Reasoning of another account, without its following item, or with an id of a provider that stored nothing. */
  reasoning_items:
    /invalid_encrypted_content|encrypted content (?:for item )?(?:\S{1,400} )?(?:could not be|(?:was )?not issued to)|without its required (following item|'reasoning' item)|items are not persisted/i,
  /** Gemini: signatures of another account or model, or changed ones. */
  thought_signatures: /(?:invalid|corrupted) thought signature/i,
  /** Converse, in the words that AWS has for all models. */
  forced_choice: /support the toolConfig\.toolChoice\.(?:any|tool) field/,
  calls_in_streams: /support tool use in streaming mode/i,
  instructions: /doesn.t support system messages/i,
  model_cap: /requested exceeds the model limit of \d/i,
} as const satisfies { readonly [name: string]: RegExp };

/** Lists of allowed values. The names in them are not refused. A dot within a name does not end a list. */
const allowedValues =
  /\b(?:expected one of|one of|(?:supported|allowed|valid|possible) (?:values|roles|types|options)(?: are| include)?)\b:?(?:[^.;]|\.(?=\w)){0,400}/gi;

/** Words by which a member itself or its value is refused; without one of them a name is only a name. */
const refusal = new RegExp(
  [
    'un(supported|known|recogni[sz]ed|expected|permitted|available)',
    'not (be )?(supported|permitted|allowed|recogni[sz]ed|available|valid|compatible|one of)',
    '(does|do|is|are|can)(n.t| not) (currently )?(support|allow|accept|have)',
    'cannot (find field|both|be)',
    'extra (inputs|fields)',
    'extra_forbidden',
    'must (be|contain)',
    'invalid (value|parameter|argument|type|.?signature)',
    'deprecated',
    'too (long|many|large)',
    'maximum',
    'only (supports?|one|the default)',
    'requires',
    'use .{1,100} instead',
  ].join('|'),
  'i',
);

/** Undefined when the error is not a refusal of a member. */
export function readComplaint(error: GatewayError): Complaint | undefined {
  const { upstream } = error;
  if (upstream === undefined) return undefined;
  const texts: string[] = [];
  const names = new Set<string>();
  const paths: string[] = [];
  gather(tryParseInner(upstream.body) ?? upstream.body, { texts, paths });
  const text = texts.join('\n');
  const rules = Object.entries(ruleRefusals).filter(([, pattern]) => pattern.test(text));
  if (rules.length > 0) return { names: new Set(rules.map(([name]) => name)), text };
  if (error.code !== 'upstream_rejected' || !refusal.test(text)) return undefined;
  if (upstream.status !== 400 && upstream.status !== 422) return undefined;
  for (const path of paths) names.add(normal(path));
  for (const name of namesIn(text)) names.add(name);
  return { names, paths, text };
}

interface Gathering {
  readonly texts: string[];
  readonly paths: string[];
}

const textKeys: ReadonlySet<string> = new Set([
  'message',
  'msg',
  'detail',
  'code',
  'type',
  'error',
  'description',
]);

function gather(value: Json, gathering: Gathering, depth = 0): void {
  if (depth > 6) return;
  if (typeof value === 'string') gathering.texts.push(value);
  else if (Array.isArray(value)) for (const each of value) gather(each, gathering, depth + 1);
  if (!isObject(value)) return;
  const { param, loc, field } = value;
  for (const path of [param, field]) if (typeof path === 'string') gathering.paths.push(path);
  if (Array.isArray(loc)) gathering.paths.push(loc.join('.'));
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined || member === null) continue;
    if (typeof member === 'object' || textKeys.has(key)) gather(member, gathering, depth + 1);
  }
}

function* namesIn(text: string): Generator<string> {
  const complaints = text.replace(allowedValues, '');
  for (const pattern of Object.values(wordings)) {
    for (const match of complaints.matchAll(pattern)) {
      for (const name of match[1]?.split(', ') ?? []) yield normal(name);
    }
  }
}

/** `body.stopSequences` → `stop_sequences`; `messages[0].role`, `tools.0.function` → without numbers. */
function normal(name: string): string {
  return name
    .replace(/', '|\[(\d+)\]/g, '.$1')
    .replace(/\.?\b\d+\b/g, '')
    .replace(/\.{2,}/g, '.')
    .replace(/^(body|request)\./, '')
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/\.$/, '');
}

export type Changes = Partial<UpstreamTraits>;

export interface Correction {
  readonly traits: Changes;
  /** The members that were refused, as the upstream spells them. */
  readonly members: readonly string[];
  /** The refusal is about the model; false = about a value of this call, so that it is not remembered. */
  readonly lasting: boolean;
}

/** The members of a client's request, in either dialect, from which the value of a trait's member is written. */
const writtenFrom: { readonly [T in keyof UpstreamTraits]?: readonly string[] } = {
  maxTokensField: ['max_tokens', 'max_completion_tokens'],
  oneCapField: ['max_tokens', 'max_completion_tokens'],
  defaultMaxOutputTokens: [],
  usageOption: ['stream_options'],
  streams: ['stream'],
  topK: ['top_k'],
  seed: ['seed'],
  refusedIncludes: ['include'],
  stopMax: ['stop', 'stop_sequences'],
  refusesBlankStops: ['stop', 'stop_sequences'],
  samplingAllowed: ['temperature', 'top_p', 'top_k'],
  temperatureExcludesTopP: ['temperature', 'top_p'],
  parallelFlag: ['parallel_tool_calls', 'tool_choice'],
  toolChoice: ['tool_choice'],
  responseFormat: ['response_format', 'output_config', 'output_format', 'tools'],
  endUserField: ['user', 'safety_identifier', 'metadata'],
};

/**
 * Whether the refused member came from the client's own request. A trait without a row depends on messages, tools or
 * reasoning, which every client may write.
 * @param asked the client's body.
 */
export function writtenByClient({ traits }: Correction, asked: JsonObject): boolean {
  return Object.keys(traits).some((trait) => {
    const members: readonly string[] | undefined = Reflect.get(writtenFrom, trait);
    return members?.some((member) => asked[member] !== undefined) ?? true;
  });
}

interface Seen {
  readonly text: string;
  readonly paths?: readonly string[];
  /** The body that was refused. */
  readonly sent: JsonObject;
  readonly traits: UpstreamTraits;
}

/** The rows are tried in order: the first one that fits a refused member decides. */
interface Repair {
  /** Names that vendors give the refused member, in snake case and without indexes. */
  readonly field: readonly string[];
  /** The request must have had this member. */
  readonly sent?: string;
  /** Words that the refusal must have, all of them. */
  readonly match?: RegExp | readonly RegExp[];
  /** Words that it must not have. */
  readonly unless?: RegExp;
  /** A further condition. */
  readonly when?: (seen: Seen) => boolean;
  /** The traits with which the request is written again; undefined = no other way is known. */
  readonly repair: Changes | ((seen: Seen) => Changes | undefined);
  /**
   * Words of a complaint about the value that one client sent. Remembered for the model, it would take the member from
   * all calls: one bad schema would end structured output for every client.
   */
  readonly value?: RegExp;
}

const range =
  /\b(greater|less|larger|smaller|between|range|at (least|most))\b|[<>]|\bwhen (using|temperature|top_p|thinking)\b/i;
const schema = /\binvalid (json )?schema|\bin context=|\bschema (for|contains|has|must)\b/i;
const tooLong = /string (is )?too long/i;
const thinkingBlocks = /signature|cannot be modified/i;
/** Too many cache marks, or a mark in a wrong position, say nothing about the model. */
const unknownMember =
  /unknown|unrecogni[sz]ed|extra (inputs|fields)|unsupported|not (supported|permitted|allowed)|unavailable/i;

const effort = ['reasoning_effort', 'reasoning.effort', 'output_config.effort', 'effort'];
const sampling = ['temperature', 'top_p'];
const stops = ['stop', 'stop_sequences'];
const thinking = [
  'thinking',
  'thinking.type',
  'thinking.type.enabled',
  'thinking.type.adaptive',
  'thinking.budget_tokens',
];
const role = ['role', 'developer'];

export const repairs: readonly Repair[] = [
  // The model's own limit: only the gateway's default may be lowered, never a client's cap.
  { field: ['max_tokens'], match: /max_tokens: \d+ > \d+/, repair: lowerDefaultCap },
  {
    field: ['max_tokens'],
    sent: 'max_tokens',
    unless: /\buse ['"`]?max_tokens\b/i,
    repair: { maxTokensField: 'max_completion_tokens', oneCapField: true },
  },
  {
    field: ['max_completion_tokens'],
    sent: 'max_completion_tokens',
    unless: /\buse ['"`]?max_completion_tokens\b/i,
    repair: { maxTokensField: 'max_tokens', oneCapField: true },
  },
  {
    field: effort,
    sent: 'tools',
    match: /tools?\b[^]{0,300}(not supported|cannot|are not)/i,
    when: ({ sent }) => sentEffort(sent) !== undefined,
    repair: { toolsExcludeReasoning: true },
  },
  { field: effort, repair: knownEfforts },
  {
    field: sampling,
    match: [/temperature/, /top_p/, /both|only one|together|either/i],
    when: ({ sent }) => sent['temperature'] !== undefined && sent['top_p'] !== undefined,
    repair: { temperatureExcludesTopP: true },
    value: range,
  },
  {
    field: sampling,
    when: ({ sent }) => sent['temperature'] !== undefined || sent['top_p'] !== undefined,
    repair: { samplingAllowed: false },
    value: range,
  },
  { field: ['top_k'], sent: 'top_k', repair: { topK: false }, value: range },
  { field: ['seed'], sent: 'seed', repair: { seed: false }, value: range },
  {
    field: stops,
    match: /white ?space/i,
    when: ({ sent }) => sentStops(sent) !== undefined,
    repair: { refusesBlankStops: true },
    value: tooLong,
  },
  { field: stops, repair: fewerStops, value: tooLong },
  {
    field: ['stream_options', 'include_usage'],
    sent: 'stream_options',
    repair: { usageOption: false },
  },
  {
    field: ['parallel_tool_calls'],
    sent: 'parallel_tool_calls',
    repair: { parallelFlag: false },
  },
  {
    field: ['response_format', 'json_schema'],
    when: ({ sent }) => formatType(sent) === 'json_schema',
    repair: { responseFormat: 'object' },
    value: schema,
  },
  {
    field: ['response_format', 'json_schema'],
    when: ({ sent }) => isObject(sent['response_format']),
    repair: { responseFormat: 'none' },
    value: schema,
  },
  {
    field: ['output_config.format', 'output_config'],
    sent: 'output_config',
    repair: { responseFormat: 'none' },
    value: schema,
  },
  // A forced tool that is refused because of thinking says nothing about the model.
  {
    field: ['tool_choice'],
    sent: 'tool_choice',
    unless: /thinking/i,
    repair: { toolChoice: false },
  },
  {
    field: role,
    match: /developer/,
    when: ({ traits }) =>
      traits.refusesSystemRole !== true &&
      (traits.systemRole === 'developer' || traits.developerRole === true),
    repair: { systemRole: 'system', developerRole: false },
  },
  {
    field: role,
    sent: 'messages',
    match: /does not support 'system'/,
    repair: { systemRole: 'developer', developerRole: true, refusesSystemRole: true },
  },
  // Templates that take one system message, as the first one.
  {
    field: ['system_position'],
    when: ({ traits }) => traits.systemAnywhere,
    repair: { systemAnywhere: false },
  },
  {
    field: ['reasoning_items'],
    sent: 'input',
    repair: { historyReasoning: false },
    value: /./,
  },
  {
    field: ['thought_signatures'],
    sent: 'contents',
    repair: { historyReasoning: false },
    value: /./,
  },
  {
    field: ['parameters_json_schema', 'response_json_schema'],
    match: unknownMember,
    when: ({ traits }) => traits.jsonSchemas === true,
    repair: { jsonSchemas: false },
  },
  // Accounts that are not verified may not see summaries.
  {
    field: ['reasoning.summary'],
    when: ({ traits }) => traits.reasoningSummary === true,
    repair: { reasoningSummary: false },
  },
  {
    field: ['anthropic_beta'],
    sent: 'anthropic_beta',
    repair: ({ traits: { refuses = [] } }) => ({ refuses: [...refuses, 'anthropic_beta'] }),
  },
  { field: ['include'], sent: 'include', repair: refusedIncludes },
  // Models behind Converse.
  {
    field: ['cache_point'],
    match: /toolConfig/,
    when: ({ traits }) => traits.toolCacheMarks !== false,
    repair: { toolCacheMarks: false },
  },
  {
    field: ['cache_point'],
    when: ({ traits }) => traits.cacheMarks,
    repair: { cacheMarks: false },
  },
  { field: ['forced_choice'], sent: 'tool_choice', repair: { refusesForcedTools: true } },
  { field: ['calls_in_streams'], sent: 'tools', repair: { streams: 'never' } },
  { field: ['instructions'], sent: 'system', repair: { instructions: false } },
  { field: ['model_cap'], repair: lowerDefaultCap },
  // Thoughts of earlier turns that were changed, or that this provider never signed.
  {
    field: [...thinking, 'signature'],
    sent: 'messages',
    match: thinkingBlocks,
    repair: { historyReasoning: false },
    value: thinkingBlocks,
  },
  {
    field: thinking,
    match: /adaptive/,
    unless: thinkingBlocks,
    when: ({ sent }) => thinkingType(sent) === 'enabled',
    repair: { thinking: 'adaptive', refusesBudgets: true },
  },
  {
    field: thinking,
    unless: thinkingBlocks,
    when: ({ sent }) => thinkingType(sent) === 'enabled',
    repair: { thinking: 'none' },
  },
  {
    field: thinking,
    match: [/thinking[^.]{0,200}not supported|enabled|budget/, /adaptive|enabled|budget/],
    unless: thinkingBlocks,
    when: ({ sent }) => thinkingType(sent) === 'adaptive',
    repair: { thinking: 'budget' },
  },
  {
    field: thinking,
    match: /thinking[^.]{0,200}not supported/,
    unless: thinkingBlocks,
    when: ({ sent }) => thinkingType(sent) === 'adaptive',
    repair: { thinking: 'none' },
  },
  {
    field: thinking,
    unless: thinkingBlocks,
    when: ({ sent }) => thinkingType(sent) === 'disabled',
    repair: { thinkingOff: 'never' },
  },
  {
    field: ['prompt_cache_breakpoint'],
    match: unknownMember,
    when: ({ traits }) => traits.cacheBreakpoints === true,
    repair: { cacheBreakpoints: false },
  },
  {
    field: ['cache_control'],
    match: unknownMember,
    when: ({ traits }) => traits.cacheMarks,
    repair: { cacheMarks: false },
  },
  {
    field: ['safety_identifier'],
    sent: 'safety_identifier',
    repair: { endUserField: 'user' },
  },
  { field: ['user'], sent: 'user', repair: { endUserField: undefined } },
  // Targets that take any schema unchanged can enforce strict schemas.
  {
    field: ['strict'],
    sent: 'tools',
    when: ({ sent, traits }) => sent['max_tokens'] !== undefined && traits.thinking !== 'none',
    repair: { responseFormat: 'none' },
    value: schema,
  },
  {
    field: ['strict'],
    sent: 'tools',
    repair: ({ traits }) => ({
      schemaRules: traits.schemaRules ?? 'resolved',
      strictSchemas: false,
    }),
    value: schema,
  },
  {
    field: ['stream'],
    match: /must be (set to )?true|only.{0,200}stream/i,
    when: ({ sent }) => sent['stream'] !== true,
    repair: { streams: 'only' },
  },
  {
    field: ['stream'],
    unless: /stream_options/,
    when: ({ sent }) => sent['stream'] === true,
    repair: { streams: 'never' },
  },
];

const repairsByField = new Map<string, readonly Repair[]>();
for (const row of repairs) {
  for (const field of row.field) {
    repairsByField.set(field, [...(repairsByField.get(field) ?? []), row]);
  }
}

/** Of Gemini, and of Converse. */
const configurations = [
  'generationConfig',
  'inferenceConfig',
  'toolConfig',
  'additionalModelRequestFields',
];

/** The members of nested configurations in snake case, and those of the top level. */
function withConfiguration(sent: JsonObject): JsonObject {
  const named: JsonMembers = {};
  for (const key of configurations) {
    const config = sent[key];
    if (!isObject(config)) continue;
    for (const [name, value] of Object.entries(config)) named[normal(name)] = value;
  }
  const { outputConfig } = sent;
  return {
    ...named,
    ...(outputConfig === undefined ? {} : { output_config: outputConfig }),
    ...sent,
  };
}

function fits({ sent: member, match = [], unless, when }: Repair, seen: Seen): boolean {
  const { text, sent } = seen;
  const words = match instanceof RegExp ? [match] : match;
  return (
    (member === undefined || sent[member] !== undefined) &&
    words.every((word) => word.test(text)) &&
    unless?.test(text) !== true &&
    (when === undefined || when(seen))
  );
}

/** A row that fits a refused member, and what it changes. */
interface FoundRepair {
  readonly member: string;
  readonly row: Repair;
  readonly wanted: Changes;
}

/** The repairs of a refusal, one for each name that the table knows. */
export function repairsOf(
  { names, paths = [], text }: Complaint,
  request: Omit<Seen, 'text' | 'paths'>,
): readonly FoundRepair[] {
  const seen = { ...request, sent: withConfiguration(request.sent), paths, text };
  const found: FoundRepair[] = [];
  for (const name of names) {
    // `messages.content.prompt_cache_breakpoint`, `tools.function.strict`: the member itself.
    const member = repairsByField.has(name) ? name : name.slice(name.lastIndexOf('.') + 1);
    const row = repairsByField.get(member)?.find((each) => fits(each, seen));
    const wanted = typeof row?.repair === 'function' ? row.repair(seen) : row?.repair;
    if (row !== undefined && wanted !== undefined) found.push({ member, row, wanted });
  }
  return found;
}

/** Undefined when nothing that the gateway wrote is refused, or it knows no other way. */
export function correctionOf(
  complaint: Complaint,
  request: Omit<Seen, 'text' | 'paths'>,
): Correction | undefined {
  const found = repairsOf(complaint, request);
  const wanted: Changes = Object.assign({}, ...found.map((each) => each.wanted));
  // Only new traits; undefined if there are none.
  const fresh = Object.entries(wanted).filter(
    ([key, value]) => JSON.stringify(Reflect.get(request.traits, key)) !== JSON.stringify(value),
  );
  const traits = fresh.length === 0 ? undefined : Object.fromEntries(fresh);
  if (traits === undefined) {
    // Members of the request that are not known, where no trait has another form for them: they are omitted.
    if (!unknownMember.test(complaint.text)) return undefined;
    const { refuses = [] } = request.traits;
    const members = [...complaint.names].filter(
      (name) => request.sent[name] !== undefined && !needed.has(name) && !refuses.includes(name),
    );
    if (members.length === 0) return undefined;
    return { traits: { refuses: [...refuses, ...members] }, members, lasting: true };
  }
  return {
    traits,
    members: [...new Set(found.map(({ member }) => member))],
    lasting: !found.some(({ row }) => row.value?.test(complaint.text) === true),
  };
}

/** Without these there is no request. */
const needed: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'tools',
  'functions',
  'max_tokens',
]);

function lowerDefaultCap({ text, sent, traits }: Seen): Changes | undefined {
  const limit = /(?:max_tokens: \d+ >|model limit of) (\d+)/.exec(text)?.[1];
  return limit !== undefined && sent['max_tokens'] === traits.defaultMaxOutputTokens
    ? { defaultMaxOutputTokens: Number(limit) }
    : undefined;
}

/** The words that the server lists as known; else all but the refused one. */
function knownEfforts({ text, sent, traits }: Seen): Changes | undefined {
  const refused = sentEffort(sent);
  if (refused === undefined) return undefined;
  const listed = allEfforts.filter(
    (each) => each !== refused && new RegExp(`["'\`]${each}["'\`]`).test(text),
  );
  if (listed.length > 0) return { efforts: listed };
  // Without a word about the value the member itself is unknown.
  if (!new RegExp(`\\b${refused}\\b`).test(text)) return { efforts: [] };
  return { efforts: traits.efforts.filter((each) => each !== refused) };
}

/** As `allowedValues`, of values with dots in them. */
const allowedIncludes =
  /\b(?:one of|should be|(?:supported|allowed|valid|possible) (?:values|options)(?: are| include)?)\b:?(?:[^.;]|\.(?=\w)){0,1000}/gi;

/** What the server names of what was to be included, by its value, else its index, else its words; else all of it. */
function refusedIncludes({ text, paths = [], sent, traits }: Seen): Changes | undefined {
  const { include } = sent;
  const list = isArray(include) ? include : [];
  const values = list.filter((each) => typeof each === 'string');
  const complaint = text.replace(allowedIncludes, '').toLowerCase();
  const indexes = [...paths, text].flatMap((path) => /\binclude(?:\[|\.)(\d{1,6})/.exec(path)?.[1]);
  const ways: readonly ((value: string) => boolean)[] = [
    (value) => complaint.includes(value.toLowerCase()),
    (value) => indexes.some((index) => index !== undefined && list[Number(index)] === value),
    // `Encrypted content is not supported with this model.`
    (value) => complaint.includes(value.slice(value.lastIndexOf('.') + 1).replaceAll('_', ' ')),
  ];
  const found = ways.map((isNamed) => values.filter(isNamed));
  const refused = found.find((named) => named.length > 0) ?? values;
  return { refusedIncludes: [...new Set([...(traits.refusedIncludes ?? []), ...refused])] };
}

function sentEffort(sent: JsonObject): Effort | undefined {
  const { reasoning, output_config: config } = sent;
  const word =
    sent['reasoning_effort'] ??
    (isObject(reasoning) ? reasoning['effort'] : undefined) ??
    (isObject(config) ? config['effort'] : undefined);
  return allEfforts.find((each) => each === word);
}

function sentStops(sent: JsonObject): readonly Json[] | undefined {
  const stop = sent['stop'] ?? sent['stop_sequences'];
  return Array.isArray(stop) ? stop : undefined;
}

function fewerStops({ text, sent }: Seen): Changes | undefined {
  const stop = sentStops(sent);
  if (stop === undefined) return undefined;
  const limit =
    /(?:at most|maximum(?: \w{1,20}){0,3}|max(?:imum)? length|up to|more than) (\d{1,6})/i.exec(
      text,
    )?.[1];
  const known = limit === undefined ? 0 : Number(limit);
  return { stopMax: known < stop.length ? known : 0 };
}

function formatType(sent: JsonObject): Json | undefined {
  const { response_format: format } = sent;
  return isObject(format) ? format['type'] : undefined;
}

function thinkingType(sent: JsonObject): Json | undefined {
  const { thinking: asked } = sent;
  return isObject(asked) ? asked['type'] : undefined;
}
