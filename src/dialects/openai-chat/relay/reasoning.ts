/**
 * How much the model may reason, in relayed requests. A client uses the members of one vendor, and each vendor has
 * its own. Translated and relayed requests are written by the same rules (`request/write.ts`).
 */
import type { Reasoning } from '../../../core/conversation.ts';
import type { Notes } from '../../../core/notes.ts';
import {
  type ReasoningControl,
  type UpstreamTraits,
  allEfforts,
  chatTraits,
} from '../../../core/traits.ts';
import { type Json, type JsonObject, isObject, isArray } from '../../../json/value.ts';
import type { Relayed } from './edits.ts';
import { readReasoningControl } from '../request/read.ts';
import { writeReasoning } from '../request/write.ts';

/** The members with which vendors control reasoning. */
export const reasoningMembers = [
  'reasoning_effort',
  'reasoning',
  'thinking',
  'enable_thinking',
  'thinking_budget',
  'chat_template_kwargs',
] as const;

type Member = (typeof reasoningMembers)[number];

/** Those that a vendor with a control reads. */
const read: { readonly [C in ReasoningControl]: readonly Member[] } = {
  effort: ['reasoning_effort'],
  openrouter: ['reasoning', 'reasoning_effort'],
  'thinking-type': ['thinking', 'reasoning_effort'],
  template: ['chat_template_kwargs', 'reasoning_effort'],
  qwen: ['enable_thinking', 'thinking_budget', 'reasoning_effort'],
  gemini: ['reasoning_effort'],
  none: [],
};

export function relayReasoning(request: Relayed): void {
  const { traits } = request;
  dropTemplateArguments(request);
  const asked = reasoningMembers.filter((member) => hasEffect(member, request));
  const tools = request.value('tools');
  const offersTools = isArray(tools) && tools.length > 0;
  const excluded = offersTools && traits.toolsExcludeReasoning === true;
  if (excluded ? request.value('reasoning_effort') === 'none' : fits(asked, request)) return;
  const [first = 'tools'] = asked;
  const notes = new NotesOn(first, request.notes);
  const reasoning = readAsked(request, asked);
  const written = writeReasoning({ reasoning, traits, notes, offersTools, continues: false });
  replace(request, asked, written);
  const names = Object.keys(written);
  const said = names.length === 0 ? 'the model has no such control' : `sent as ${names.join(', ')}`;
  const why = excluded ? 'the model does not reason where tools are offered' : said;
  const changed = asked.filter((member) => written[member] === undefined);
  for (const member of new Set([first, ...changed])) {
    if (member !== first || !notes.any) request.notes.changed([member], why);
  }
}

/** Template arguments that do not control reasoning, for vendors without a template. */
function dropTemplateArguments(request: Relayed): void {
  const member = 'chat_template_kwargs';
  const { known, reasoningControl } = request.traits;
  if (known !== true || read[reasoningControl].includes(member)) return;
  if (!hasEffect(member, request)) request.drop(member, 'the model does not take it');
}

/** Whether the upstream reads the client's members. It is assumed for unknown servers. */
function fits(asked: readonly Member[], request: Relayed): boolean {
  const { traits } = request;
  const effort = request.value('reasoning_effort');
  if (asked.includes('reasoning_effort') && !takesEffort(effort, traits)) return false;
  // Vendors with this switch know on and off.
  if (traits.known === true && isAdaptive(request.value('thinking'))) return false;
  return (
    traits.known !== true || asked.every((member) => read[traits.reasoningControl].includes(member))
  );
}

function isAdaptive(thinking: Json | undefined): boolean {
  return isObject(thinking) && thinking['type'] === 'adaptive';
}

/** A value that no known vendor has is passed on. */
function takesEffort(
  effort: Json | undefined,
  { efforts, reasoningControl, known }: UpstreamTraits,
): boolean {
  const word = allEfforts.find((each) => each === effort);
  if (word === undefined) return reasoningControl !== 'none';
  // Values that all servers know are a guess, so they do not decide about other values.
  if (known !== true && efforts === chatTraits.efforts) return true;
  return efforts.includes(word);
}

/** Of the arguments of a template only the switch of the reasoning counts. */
function hasEffect(member: Member, request: Relayed): boolean {
  const value = request.value(member);
  if (member !== 'chat_template_kwargs') return value !== undefined;
  return isObject(value) && typeof value['enable_thinking'] === 'boolean';
}

function readAsked({ skeleton }: Relayed, asked: readonly Member[]): Reasoning | undefined {
  const {
    enable_thinking: enabled,
    thinking_budget: budget,
    chat_template_kwargs: kwargs,
  } = skeleton;
  const known = asked.filter(
    (member) => member !== 'reasoning_effort' || isEffort(skeleton[member]),
  );
  const body = Object.fromEntries(known.map((member) => [member, skeleton[member]]));
  const said = readReasoningControl(body);
  if (said !== undefined) return said;
  const on = isObject(kwargs) ? (kwargs['enable_thinking'] ?? enabled) : enabled;
  if (on === false) return { effort: 'none' };
  if (typeof budget === 'number') return { budgetTokens: budget };
  return on === true ? { effort: 'medium' } : undefined;
}

function isEffort(value: Json | undefined): boolean {
  return allEfforts.some((effort) => effort === value);
}

/** What the client wrote goes, and what was written instead comes. */
function replace(request: Relayed, asked: readonly Member[], written: JsonObject): void {
  const { skeleton } = request;
  for (const member of asked) {
    if (written[member] === undefined) request.edits.push({ path: [member], text: undefined });
  }
  for (const [member, value] of Object.entries(written)) {
    if (value === undefined || JSON.stringify(value) === JSON.stringify(skeleton[member])) continue;
    const before = skeleton[member];
    // Other arguments of a template and other extras stay.
    const both = isObject(value) && isObject(before) ? { ...before, ...value } : value;
    request.put(
      [member],
      member === 'chat_template_kwargs' || member === 'extra_body' ? both : value,
    );
  }
}

/** Notes under the name of the member that the client wrote. */
class NotesOn implements Notes {
  any = false;
  readonly #member: string;
  readonly #notes: Notes;

  constructor(member: string, notes: Notes) {
    this.#member = member;
    this.#notes = notes;
  }

  lost(_path: unknown, why: string): void {
    this.any = true;
    this.#notes.lost([this.#member], why);
  }

  changed(_path: unknown, why: string): void {
    this.any = true;
    this.#notes.changed([this.#member], why);
  }
}
