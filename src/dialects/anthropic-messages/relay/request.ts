/**
 * Same-dialect requests: the client's bytes, changed only where this upstream would not take them as they
 * are. The top level is decided by the members that stand
 * there; messages are examined only where the traits or a mark in the bytes require it.
 */
import type { Effort } from '../../../core/conversation.ts';
import type { Ask } from '../../../core/dialect.ts';
import { unsupported } from '../../../core/errors.ts';
import { NoteList, type Notes } from '../../../core/notes.ts';
import { allEfforts, type UpstreamTraits } from '../../../core/traits.ts';
import { type JsonEdit, editJson } from '../../../json/edit.ts';
import type { JsonSource } from '../../../core/client-body.ts';
import type { Pieces } from '../../../json/pieces.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import { publishedTool } from '../../shared/request/tools.ts';
import { autoMarkEdits } from '../../shared/request/auto-marks.ts';
import { canDemandCalls } from '../../shared/request/demanded-call.ts';
import { isPresent } from '../fields.ts';
import { isClientTool } from '../head.ts';
import { markEdits, mayHaveScopes, messageEdits } from './messages.ts';
import { budgetOf, minBudget } from '../../shared/request/effort.ts';
import { effortOfBudget, knownEffort } from '../request/thinking.ts';
import { formatInstruction } from '../request/write.ts';

const billingLine = 'x-anthropic-billing-header:';

/** The client's bytes, asking for this target's model. @throws GatewayError for what this upstream cannot honour. */
export function relayRequest(source: JsonSource, ask: Ask, notes: Notes = new NoteList()): Pieces {
  const { skeleton } = source;
  const { traits } = ask;
  const own = ownEdits(skeleton, ask, notes);
  const messages = messageEdits(source, ask, notes);
  const thinking = thinkingEdits({ skeleton, traits, ...own, ...messages }, notes);
  const options = optionEdits(skeleton, { traits, thinks: thinking.on }, notes);
  const tools = toolEdits(source, traits, notes);
  const changes = [own, messages, thinking, options, tools].flatMap((each) => each.edits);
  // Once a request: an agent marks several blocks.
  const scope = changes.find(({ path }) => path.at(-2) === 'cache_control')?.path;
  if (scope !== undefined) notes.lost(scope, 'the provider has no caches of that scope');
  const edits = [...autoMarkEdits(source, ask), ...changes];
  return editJson(source, withoutEmptyConfig(edits, skeleton));
}

/** Where every member of `output_config` goes, it goes itself: older models do not know it. */
function withoutEmptyConfig(
  edits: readonly JsonEdit[],
  { output_config: config }: JsonObject,
): readonly JsonEdit[] {
  if (!isObject(config)) return edits;
  const gone = new Set(
    edits.flatMap(({ path, text }) =>
      path[0] === 'output_config' && text === undefined ? path.slice(1) : [],
    ),
  );
  if (gone.size === 0 || Object.keys(config).some((key) => !gone.has(key))) return edits;
  return [...edits, { path: ['output_config'], text: undefined }];
}

/** Members that the gateway decides on: model, stream, cap and the line that Claude Code puts first. */
function ownEdits(
  skeleton: JsonObject,
  ask: Ask,
  notes: Notes,
): { readonly edits: readonly JsonEdit[]; readonly cap: number } {
  const { traits } = ask;
  const edits: JsonEdit[] = [];
  const said = (member: 'model' | 'stream'): boolean => ask.inAddress?.includes(member) === true;
  if (said('model')) edits.push(removed('model'));
  else if (skeleton['model'] !== ask.model) edits.push(set(['model'], ask.model));
  if (said('stream')) edits.push(removed('stream'));
  // If the upstream refuses documents, a stream is requested instead.
  else if (traits.streams === 'only' && skeleton['stream'] !== true) {
    edits.push(set(['stream'], true));
  }
  edits.push(...addedEdits(ask, notes));
  if (traits.dropsBillingHeader === true && hasBilling(skeleton)) {
    edits.push({ path: ['system', 0], text: undefined });
  }
  const wanted = Number(skeleton['max_tokens']);
  const { maxOutputTokens: most = Infinity } = traits;
  const allowed = ask.maxOutputTokens ?? wanted;
  const cap = Math.min(allowed, most);
  if (cap < allowed) notes.changed(['max_tokens'], `the model writes at most ${most} tokens`);
  if (ask.maxOutputTokens !== undefined || cap < wanted) edits.push(set(['max_tokens'], cap));
  return { edits, cap };
}

/** What the server wants in the body besides the members of the dialect. */
function addedEdits({ added = {}, traits: { refuses } }: Ask, notes: Notes): readonly JsonEdit[] {
  return Object.entries(added).flatMap(([name, value]): readonly JsonEdit[] => {
    if (refuses?.includes(name) !== true) return [{ path: [name], text: JSON.stringify(value) }];
    notes.lost([name], 'the model does not take it');
    return [];
  });
}

/** It changes with each call and would defeat the caches of servers to which it means nothing. */
function hasBilling({ system }: JsonObject): boolean {
  const first = isArray(system) ? system[0] : undefined;
  return isObject(first) && textOf(first['text']).startsWith(billingLine);
}

function set(path: JsonEdit['path'], value: string | number | boolean): JsonEdit {
  return { path, text: JSON.stringify(value) };
}

// Sampling, stop sequences, output format and members that this upstream does not read.

interface OptionsInput {
  readonly traits: UpstreamTraits;
  /** Thinking is on. */
  readonly thinks: boolean;
}

interface Edits {
  readonly edits: readonly JsonEdit[];
}

/** @throws GatewayError for a member whose loss would be a false promise. */
function optionEdits(skeleton: JsonObject, input: OptionsInput, notes: Notes): Edits {
  const { traits } = input;
  const skipped = skippedEdits(skeleton, traits, notes);
  const gone = new Set(skipped.map(({ path }) => path[0]));
  const rest = [
    ...samplingEdits(skeleton, input, notes),
    ...stopEdits(skeleton, traits, notes),
    ...formatEdits(skeleton, traits, notes),
  ];
  return { edits: [...skipped, ...rest.filter(({ path }) => !gone.has(path[0]))] };
}

function removed(...path: JsonEdit['path']): JsonEdit {
  return { path, text: undefined };
}

const refused: ReadonlyMap<string, string> = new Map([
  ['container', 'This model has no container to run code in.'],
  ['mcp_servers', 'This model does not call MCP servers by itself.'],
  ['inference_geo', 'The region in which this model runs is not guaranteed.'],
  ['thread', 'This model keeps no threads; send the whole conversation.'],
]);

function skippedEdits(
  skeleton: JsonObject,
  { skippedFields = [] }: UpstreamTraits,
  notes: Notes,
): readonly JsonEdit[] {
  return skippedFields.flatMap((key) => {
    const value = skeleton[key];
    if (!isPresent(value) || requestsNothing(key, value)) return [];
    const why = refused.get(key);
    if (why !== undefined) throw unsupported([key], why);
    notes.lost([key], 'the model knows no such field');
    return [removed(key)];
  });
}

function requestsNothing(key: string, value: Json): boolean {
  if (isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.values(value).every((each) => !isPresent(each));
  if (key === 'inference_geo') return value === 'global';
  return key === 'service_tier' && value === 'auto';
}

/** What models with fixed sampling take all the same. */
const minTopP = 0.99;
/** The same of models that think. */
const minThinkingTopP = 0.95;

interface Loss {
  readonly key: string;
  readonly why: string;
}

function samplingEdits(
  skeleton: JsonObject,
  { traits, thinks }: OptionsInput,
  notes: Notes,
): readonly JsonEdit[] {
  const fixed = !traits.samplingAllowed || (thinks && traits.strictThinking === true);
  const lost = fixed ? fixedLosses(skeleton, traits) : freeLosses(skeleton, traits);
  for (const { key, why } of lost) notes.lost([key], why);
  const gone = lost.map(({ key }) => removed(key));
  const { temperature } = skeleton;
  const { minTemperature: min = 0 } = traits;
  if (fixed || typeof temperature !== 'number' || temperature >= min) return gone;
  notes.changed(['temperature'], `at least ${min} for this model`);
  return [...gone, { path: ['temperature'], text: String(min) }];
}

/** Of a model that takes its defaults only, or while it thinks. */
function fixedLosses(
  { temperature, top_p: topP, top_k: topK }: JsonObject,
  { samplingAllowed }: UpstreamTraits,
): readonly Loss[] {
  const why = samplingAllowed ? 'thinking is on' : 'the model takes no sampling parameters';
  const least = samplingAllowed ? minThinkingTopP : minTopP;
  const lost = [
    ...(isPresent(temperature) && temperature !== 1 ? ['temperature'] : []),
    ...(isPresent(topP) && Number(topP) < least ? ['top_p'] : []),
    ...(isPresent(topK) ? ['top_k'] : []),
  ];
  return lost.map((key) => ({ key, why }));
}

function freeLosses(
  { temperature, top_p: topP, top_k: topK }: JsonObject,
  traits: UpstreamTraits,
): readonly Loss[] {
  const lost: Loss[] = [];
  if (isPresent(topK) && !traits.topK) lost.push({ key: 'top_k', why: 'not known to the model' });
  if (traits.temperatureExcludesTopP === true && isPresent(temperature) && isPresent(topP)) {
    const key = temperature === 1 && topP !== 1 ? 'temperature' : 'top_p';
    lost.push({ key, why: 'the model takes temperature or top_p, not both' });
  }
  return lost;
}

/** A relayed answer is not looked through, so that what the upstream does not look for is lost. */
function stopEdits(
  { stop_sequences: stops }: JsonObject,
  { stopMax, refusesBlankStops }: UpstreamTraits,
  notes: Notes,
): readonly JsonEdit[] {
  if (!isArray(stops) || stops.length === 0) return [];
  const path = ['stop_sequences'];
  if (stopMax !== undefined && stops.length > stopMax) {
    const most = stopMax === 0 ? 'no stop sequences' : `at most ${stopMax} stop sequences`;
    notes.lost(path, `the model knows ${most}`);
    return [removed(...path)];
  }
  const usable = stops.filter((stop) => typeof stop !== 'string' || stop.trim() !== '');
  if (refusesBlankStops !== true || usable.length === stops.length) return [];
  notes.lost(path, 'the model takes no stop sequence of white space alone');
  return [{ path, text: usable.length === 0 ? undefined : JSON.stringify(usable) }];
}

/** Requested in words where nothing enforces it, as in translation. */
function formatEdits(
  { output_config: config, output_format: older, system }: JsonObject,
  { responseFormat }: UpstreamTraits,
  notes: Notes,
): readonly JsonEdit[] {
  if (responseFormat === 'schema') return [];
  const current = isObject(config) && isPresent(config['format']) ? config['format'] : undefined;
  const format = current ?? older;
  if (!isObject(format)) return [];
  const path = current === undefined ? ['output_format'] : ['output_config', 'format'];
  notes.changed(path, 'asked for in the prompt, not enforced by the model');
  const text = formatInstruction(format['schema'] ?? {});
  return [removed(...path), instruction(system, text)];
}

/** The text after all other instructions. */
function instruction(system: Json | undefined, text: string): JsonEdit {
  if (isArray(system)) {
    const block = JSON.stringify({ type: 'text', text });
    return { path: ['system', system.length], text: block, insert: true };
  }
  const before = typeof system === 'string' && system !== '' ? `${system}\n\n` : '';
  return { path: ['system'], text: JSON.stringify(before + text) };
}

// How much a relayed request may think, in the form that this model knows.

interface ThinkingInput {
  readonly skeleton: JsonObject;
  readonly traits: UpstreamTraits;
  /** Tokens of the answer at most, thinking included. */
  readonly cap: number;
  /** The last message is an assistant's, to be continued. */
  readonly continues: boolean;
  /** The calls that are being answered do not stand after signed thinking. */
  readonly lacksThinking: boolean;
}

interface ThinkingEdits {
  readonly edits: readonly JsonEdit[];
  /** Thinking is on, by the request or by the model's default. */
  readonly on: boolean;
}

/** What becomes of `thinking` and `output_config.effort`. */
function thinkingEdits(input: ThinkingInput, notes: Notes): ThinkingEdits {
  return new ThinkingPlan(input, notes).made();
}

class ThinkingPlan {
  readonly #input: ThinkingInput;
  readonly #notes: Notes;
  readonly #asked: JsonObject | undefined;
  readonly #requestedEffort: Json | undefined;
  #thinking: JsonObject | undefined;
  #effort: Json | undefined;

  constructor(input: ThinkingInput, notes: Notes) {
    this.#input = input;
    this.#notes = notes;
    const { thinking, output_config: config } = input.skeleton;
    this.#asked = isObject(thinking) ? thinking : undefined;
    this.#requestedEffort = isObject(config) ? config['effort'] : undefined;
    this.#thinking = this.#asked;
    this.#effort = this.#requestedEffort;
  }

  made(): ThinkingEdits {
    if (this.#asked !== undefined) this.#form(this.#asked);
    this.#resolveConflicts();
    this.#nameEffort();
    const { traits } = this.#input;
    const on =
      this.#thinking === undefined
        ? traits.strictThinking === true && traits.thinksByDefault === true
        : !isOff(this.#thinking);
    return { edits: this.#edits(), on };
  }

  #form(asked: JsonObject): void {
    const { traits, cap } = this.#input;
    const { type } = asked;
    if (isOff(asked)) return this.#off(asked, traits);
    if (traits.thinking === 'none') {
      this.#notes.lost(['thinking'], 'the model does not think');
      this.#thinking = undefined;
    } else if (type === 'adaptive' && traits.thinking === 'budget') {
      this.#budgeted(asked);
    } else if (type === 'enabled' && traits.refusesBudgets === true) {
      this.#adaptive(asked);
    } else if (type === 'enabled' && Number(asked['budget_tokens']) >= cap && cap > minBudget) {
      this.#notes.changed(['thinking', 'budget_tokens'], 'the budget must be below the output cap');
      this.#thinking = { ...asked, budget_tokens: cap - 1 };
    }
  }

  /** As far off as the model lets itself be switched. */
  #off(asked: JsonObject, { thinkingOff = 'disabled', efforts, thinking }: UpstreamTraits): void {
    const { strictThinking, nativeTools } = this.#input.traits;
    if (thinking === 'none') {
      if (asked['type'] !== 'between_tools') return;
      this.#notes.changed(['thinking'], 'the model does not think');
      this.#thinking = undefined;
      return;
    }
    // Of a server that nothing is known of, a new word may be known.
    const known = strictThinking === true || nativeTools === false || thinkingOff === 'never';
    if (!known || asked['type'] === thinkingOff) return;
    if (thinkingOff !== 'never') {
      this.#notes.changed(['thinking', 'type'], `the model knows ${thinkingOff} instead`);
      this.#thinking = { type: thinkingOff };
      return;
    }
    this.#notes.changed(['thinking'], 'the model always thinks, as little as it can');
    this.#thinking = undefined;
    if (efforts.includes('low')) this.#effort = 'low';
  }

  #budgeted(asked: JsonObject): void {
    const { cap } = this.#input;
    if (cap <= minBudget) {
      this.#notes.lost(['thinking'], `thinking needs an output cap above ${minBudget} tokens`);
      this.#thinking = undefined;
      return;
    }
    const wanted = budgetOf(effortIn(this.#effort) ?? 'high', cap);
    const budget = Math.min(Math.max(wanted, minBudget), cap - 1);
    this.#notes.changed(
      ['thinking', 'type'],
      'the model takes a budget, by the effort and the cap',
    );
    this.#thinking = { ...asked, type: 'enabled', budget_tokens: budget };
  }

  #adaptive({ budget_tokens: budget, ...asked }: JsonObject): void {
    this.#notes.changed(
      ['thinking', 'budget_tokens'],
      'the model takes an effort instead of a budget',
    );
    this.#thinking = { ...asked, type: 'adaptive' };
    this.#effort ??= effortOfBudget(Number(budget));
  }

  /** What is refused together with thinking: the harder promise wins, as in translation. */
  #resolveConflicts(): void {
    const { traits, skeleton } = this.#input;
    const { thinkingOff = 'disabled', thinksByDefault } = traits;
    if (this.#thinking === undefined) {
      const must =
        traits.strictThinking === true && thinksByDefault === true && thinkingOff !== 'never';
      if (!must || !demands(skeleton) || !canDemandCalls(traits)) return;
      this.#notes.changed(['tool_choice'], 'thinking is off: a tool call is required');
      this.#thinking = { type: thinkingOff };
      return;
    }
    const why = isOff(this.#thinking) ? undefined : this.#obstacle(this.#thinking);
    if (why === undefined) return;
    this.#notes.changed(['thinking'], `thinking is off: ${why}`);
    this.#thinking = thinkingOff === 'never' ? undefined : { type: thinkingOff };
  }

  #obstacle({ type }: JsonObject): string | undefined {
    const { traits, skeleton, continues, lacksThinking } = this.#input;
    if (type === 'enabled' && lacksThinking) {
      return 'the open tool turn does not begin with signed thinking';
    }
    if (traits.strictThinking !== true) return undefined;
    if (demands(skeleton) && canDemandCalls(traits)) return 'a tool call is required';
    return continues && traits.prefill
      ? 'the last assistant message is to be continued'
      : undefined;
  }

  #nameEffort(): void {
    const { efforts, thinksByDefault, strictThinking } = this.#input.traits;
    const path = ['output_config', 'effort'];
    const effort = this.#effort;
    if (typeof effort !== 'string') return;
    const off = this.#thinking !== undefined && isOff(this.#thinking);
    const bounded = off && strictThinking === true && thinksByDefault === true;
    if (bounded && (effort === 'xhigh' || effort === 'max')) {
      this.#notes.changed(path, 'the model knows high instead, while it does not think');
      this.#effort = 'high';
      return;
    }
    const known = effortIn(effort);
    // A word that is not known here is the upstream's business.
    if (known === undefined || efforts.includes(known)) return;
    const nearest = knownEffort(known, efforts);
    this.#effort = nearest;
    if (this.#requestedEffort === undefined) return;
    if (nearest === undefined) this.#notes.lost(path, 'the model has no control over its effort');
    else this.#notes.changed(path, `the model knows ${nearest} instead`);
  }

  #edits(): readonly JsonEdit[] {
    const edits: JsonEdit[] = [];
    if (this.#thinking !== this.#asked) {
      edits.push({ path: ['thinking'], text: jsonOf(this.#thinking) });
    }
    if (this.#effort !== this.#requestedEffort) {
      const { output_config: config } = this.#input.skeleton;
      edits.push(
        isObject(config)
          ? { path: ['output_config', 'effort'], text: jsonOf(this.#effort) }
          : { path: ['output_config'], text: jsonOf({ effort: this.#effort }) },
      );
    }
    return edits;
  }
}

function isOff({ type }: JsonObject): boolean {
  return type === 'disabled' || type === 'between_tools';
}

function effortIn(value: Json | undefined): Effort | undefined {
  return allEfforts.find((effort) => effort === value);
}

/** Whether a call of a tool is demanded. */
function demands({ tool_choice: choice }: JsonObject): boolean {
  const type = isObject(choice) ? textOf(choice['type']) : '';
  return type === 'any' || type === 'tool';
}

function jsonOf(value: Json | undefined): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

// Tools of a relayed request and the choice among them, as this upstream takes them.

/** @throws GatewayError for tools that only Anthropic's service defines or runs. */
function toolEdits(source: JsonSource, traits: UpstreamTraits, notes: Notes): Edits {
  const { skeleton } = source;
  const choice = choiceEdits(skeleton, traits, notes);
  const isMarked = !traits.cacheMarks || mayHaveScopes(source, traits);
  const marks = isMarked ? outerMarkEdits(skeleton, traits) : [];
  const { tools } = skeleton;
  if (!isArray(tools) || choice.some(({ path }) => path[0] === 'tools')) {
    return { edits: [...marks, ...choice] };
  }
  // Versioned tools: functions where the client runs them; what the service would run is refused.
  return {
    edits: [
      ...marks,
      ...choice,
      ...(traits.nativeTools === false
        ? tools.flatMap((tool, i): readonly JsonEdit[] => {
            if (!isObject(tool) || isClientTool(tool)) return [];
            const path = ['tools', i];
            const type = textOf(tool['type']);
            const published = publishedTool(type);
            if (published !== undefined) {
              notes.changed([...path, 'type'], 'offered as an ordinary function tool');
              const { name = type, cache_control: mark } = tool;
              const { description, schema } = published;
              const written = { name, description, input_schema: schema, cache_control: mark };
              return [{ path, text: JSON.stringify(written) }];
            }
            if (type.startsWith('tool_search_tool_')) {
              notes.changed(
                [...path, 'type'],
                'tools to be loaded on demand are all offered at once',
              );
              return [{ path, text: undefined }];
            }
            if (!type.startsWith('web_search_') || !isOptional(tool, tools, skeleton)) {
              throw unsupported([...path, 'type'], `This model has no tool of the type '${type}'.`);
            }
            notes.lost([...path, 'type'], 'the model has no web search');
            return [{ path, text: undefined }];
          })
        : []),
      ...(traits.responseFormat === 'none' ? strictEdits(tools, notes) : []),
    ],
  };
}

function choiceEdits(
  skeleton: JsonObject,
  traits: UpstreamTraits,
  notes: Notes,
): readonly JsonEdit[] {
  const { tool_choice: choice } = skeleton;
  if (!isObject(choice)) return [];
  const path = ['tool_choice'];
  if (!traits.toolChoice) {
    if (choice['type'] === 'none') {
      notes.changed(path, 'the tools are not sent: the model does not support tool_choice none');
      return [
        { path, text: undefined },
        { path: ['tools'], text: undefined },
      ];
    }
    if (!demands(skeleton)) return [];
    notes.lost(path, 'the model chooses by itself');
    return [{ path, text: undefined }];
  }
  const single = choice['disable_parallel_tool_use'] === true;
  const edits: JsonEdit[] = [];
  if (demands(skeleton) && !canDemandCalls(traits)) {
    notes.lost(path, 'the model cannot be made to call a tool');
    const free = { type: 'auto', ...(single ? { disable_parallel_tool_use: true } : {}) };
    edits.push({ path, text: JSON.stringify(free) });
  }
  if (single && !traits.parallelFlag) {
    notes.lost([...path, 'disable_parallel_tool_use'], 'the model may call several tools at once');
    edits.push({ path: [...path, 'disable_parallel_tool_use'], text: undefined });
  }
  return edits;
}

/** Some agents always list web search among their own tools; they work without it. */
function isOptional(
  { name }: JsonObject,
  tools: readonly Json[],
  { tool_choice: choice }: JsonObject,
): boolean {
  if (isObject(choice) && choice['type'] === 'tool' && choice['name'] === name) return false;
  return tools.some((other) => isObject(other) && isClientTool(other));
}

function strictEdits(tools: readonly Json[], notes: Notes): readonly JsonEdit[] {
  const edits: JsonEdit[] = [];
  for (const [i, tool] of tools.entries()) {
    if (!isObject(tool) || tool['strict'] !== true) continue;
    const path = ['tools', i, 'strict'];
    notes.lost(path, 'the model does not enforce schemas');
    edits.push({ path, text: undefined });
  }
  return edits;
}

/** Marks outside the messages. */
function outerMarkEdits(skeleton: JsonObject, traits: UpstreamTraits): readonly JsonEdit[] {
  const { tools, system } = skeleton;
  const marksIn = (list: Json | undefined, name: string): readonly JsonEdit[] =>
    (isArray(list) ? list : []).flatMap((each, i) =>
      isObject(each) ? markEdits(each, [name, i], traits) : [],
    );
  return [
    ...marksIn(tools, 'tools'),
    ...marksIn(system, 'system'),
    ...markEdits(skeleton, [], traits),
  ];
}
