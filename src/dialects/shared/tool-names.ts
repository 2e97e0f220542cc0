/**
 * Ids of tool calls and names of tools that the other side accepts: those of a request for its upstream, those of an
 * answer for its client. The former are a pure function of the request: the same history always renders to the same
 * bytes, and a result finds its call again without state in the gateway.
 */
import { createHash } from 'node:crypto';
import type { AnswerContext } from '../../core/dialect.ts';
import type { Json } from '../../json/value.ts';

const allowedId = /^[a-zA-Z0-9_-]{1,64}$/;
const allowedName = /^[a-zA-Z0-9_-]+$/;
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 24 base62 characters keep 142 bits: two different ids do not meet. */
const hashLength = 24;
/** The shortest limit on tool names among the wire formats (chat, Bedrock). */
const shortNameLength = 64;

/**
 * The id itself when it is 1…64 ASCII letters, digits, `_` and `-` and is new in the conversation, else a hash of the
 * whole id and its occurrence. A shared prefix never makes two ids equal.
 * @param occurrence how many calls of this conversation had the same id before, from 0.
 */
export function allowedToolId(id: string, occurrence: number): string {
  if (occurrence === 0 && allowedId.test(id)) return id;
  return `call_${hashText(`${occurrence}:${id}`, hashLength)}`;
}

/**
 * The ids of one conversation, in order. Engines reuse `call_0` each turn, so calls are numbered per
 * id, and a result belongs to the latest call before it that has its id.
 */
export class ToolIdMap {
  readonly #calls = new Map<string, number>();
  readonly #spell: (id: string, occurrence: number) => string;

  /** @param spell the rule of the target, where it is stricter than `allowedToolId`. */
  constructor(spell: (id: string, occurrence: number) => string = allowedToolId) {
    this.#spell = spell;
  }

  /** The outgoing id of the next call with this id. */
  call(id: string): string {
    const occurrence = (this.#calls.get(id) ?? -1) + 1;
    this.#calls.set(id, occurrence);
    return this.#spell(id, occurrence);
  }

  /** The outgoing id of the call that a result with this id answers. */
  result(id: string): string {
    return this.#spell(id, this.#calls.get(id) ?? 0);
  }
}

/** The rule of a target that is stricter than the dialect's; undefined = any id is sent unchanged. */
export function toolIdMapFor(traits: ToolIdTraits): ToolIdMap | undefined {
  if (traits.nineCharacterToolIds === true) return new ToolIdMap(nineCharacterToolId);
  const { toolIdMax } = traits;
  if (toolIdMax === undefined) return undefined;
  return new ToolIdMap((id, occurrence) => {
    return id.length <= toolIdMax ? id : allowedToolId(`${id} `, occurrence);
  });
}

interface ToolIdTraits {
  readonly nineCharacterToolIds?: boolean;
  readonly toolIdMax?: number;
}

/** Servers of the Mistral kind take ids of exactly nine letters and digits. */
export function nineCharacterToolId(id: string, occurrence: number): string {
  if (occurrence === 0 && /^[a-zA-Z0-9]{9}$/.test(id)) return id;
  return hashText(`${occurrence}:${id}`, 9);
}

interface Named {
  readonly name: string;
}

/**
 * The name itself when the target takes it, else its start, `_` and a hash of the whole, so that two
 * long names with a common prefix stay different. `originalToolName` undoes it.
 */
export function allowedToolName(name: string, maxLength: number): string {
  if (name.length <= maxLength && allowedName.test(name)) return name;
  return shortened(name, 0);
}

/** The same, but never the name of another tool of the request: names may look like short forms. */
export function sentToolName(name: string, maxLength: number, tools: readonly Named[]): string {
  let sent = allowedToolName(name, maxLength);
  if (sent === name) return name;
  for (let turn = 1; isNamed(tools, sent); turn++) sent = shortened(name, turn);
  return sent;
}

/** The client's own name for the one that the model used, by the tools of the request. */
export function originalToolName(name: string, tools: readonly Named[]): string {
  if (isNamed(tools, name)) return name;
  return tools.find((tool) => sentToolName(tool.name, 0, tools) === name)?.name ?? name;
}

function shortened(name: string, turn: number): string {
  const start = name.slice(0, shortNameLength - 11).replace(/[^a-zA-Z0-9_-]/g, '_');
  return `${start}_${hashText(turn === 0 ? name : `${turn}:${name}`, 10)}`;
}

function isNamed(tools: readonly Named[], name: string): boolean {
  return tools.some((tool) => tool.name === name);
}

/** The first `length` base62 digits of the SHA-256 of the text. */
function hashText(text: string, length: number): string {
  let value = BigInt(`0x${createHash('sha256').update(text).digest('hex')}`);
  let digits = '';
  while (digits.length < length) {
    digits += base62[Number(value % 62n)];
    value /= 62n;
  }
  return digits;
}

interface CallIdRule {
  /** The prefix of ids for calls without one. */
  readonly prefix: 'call_' | 'toolu_';
  /** The client takes any text as an id. */
  readonly anyText: boolean;
}

/** Engines start from `call_0` in each answer; the client's next request must hold each id once. */
export class AnswerCallIds {
  readonly #context: AnswerContext;
  readonly #rule: CallIdRule;
  #used: Set<string> | undefined;

  constructor(context: AnswerContext, rule: CallIdRule) {
    this.#context = context;
    this.#rule = rule;
  }

  /** The id to show for the upstream's; `''` when it sent none. */
  show(id: string): string {
    const used = (this.#used ??= this.#earlierIds());
    let shown = this.#first(id);
    for (let occurrence = 1; used.has(shown); occurrence++) shown = allowedToolId(id, occurrence);
    used.add(shown);
    if (shown !== id) this.#context.sealing?.callShown?.(id, shown);
    return shown;
  }

  #first(id: string): string {
    if (id === '') return this.#context.newId(this.#rule.prefix);
    return this.#rule.anyText ? id : allowedToolId(id, 0);
  }

  #earlierIds(): Set<string> {
    const ids = new Set<string>();
    for (const turn of this.#context.conversation?.turns ?? []) {
      for (const part of turn.parts) if (part.type === 'tool-call') ids.add(part.id);
    }
    return ids;
  }
}

/** The data that distinguishes the calls of an answer from those of other answers. */
export interface AnswerIdentity {
  readonly id: Json | undefined;
  readonly created: Json | undefined;
}

/**
 * An id for a call without one: the same for the same answer, another one for every other
 * answer and position.
 */
export function derivedCallId(answer: AnswerIdentity, index: number): string {
  const seed = JSON.stringify([answer.id ?? null, answer.created ?? null, index]);
  return `call_${createHash('sha256').update(seed).digest('hex').slice(0, 24)}`;
}
