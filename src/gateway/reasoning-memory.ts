/** Remembers reasoning of answers for clients that do not send it back. */
import { createHash } from 'node:crypto';
import type { Call } from '../core/call.ts';
import type {
  Conversation,
  Origin,
  Part,
  ReasoningPart,
  ToolCallPart,
  Turn,
} from '../core/conversation.ts';
import type { DescribedSource } from '../core/description.ts';
import type { ClientDialect, Sealing } from '../core/dialect.ts';
import type { GenerationEvent } from '../core/generation.ts';
import {
  type RecalledTurn,
  type KnownCall,
  type PositionedReasoning,
  PromptTrail,
  type Recall,
  withReasoning,
} from '../core/recall.ts';
import { withPathOf } from '../core/notes.ts';
import type { Provider, Target } from '../core/provider.ts';
import type { Clock } from '../core/runtime.ts';
import type { Sealer } from '../core/secret.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import { tryParseInnerObject } from '../json/parse.ts';
import type { JsonObject } from '../json/value.ts';

/** Makes the digest of what the users said where it is needed. */
type LateDigest = () => Promise<string>;

/** The watch over one answer. */
export interface TurnWatch {
  see(event: GenerationEvent): void;
  /** Present when the answer is translated. */
  readonly sealing: Sealing | undefined;
  /** The client has the whole answer. */
  keep(): void;
}

export class ReasoningMemory {
  readonly sealer: Sealer;
  readonly #store: ReasoningStore;

  constructor(sealer: Sealer, store: ReasoningStore) {
    this.sealer = sealer;
    this.#store = store;
  }

  /** The remembered turns of this key. */
  recallFor(keyId: string): Recall {
    return (call, asked) => this.#store.recall(keyId, call, asked);
  }

  /** The origin of reasoning by its text, for this key. */
  originFor(keyId: string): (reasoning: string) => Origin | undefined {
    return (reasoning) => this.#store.origin(keyId, reasoning);
  }

  /** No turn is kept. */
  get empty(): boolean {
    return this.#store.size === 0;
  }

  /** The kept turns of these keys (`recallKey`, `originKey`). */
  turnsOf(keys: readonly string[]): ReadonlyMap<string, RecalledTurn> {
    return this.#store.turnsOf(keys);
  }

  /**
   * A watch over the answer to a call; undefined where nothing of it is of use later: a relayed answer
   * of a messages upstream, whose reasoning is signed. Reasoning of chat upstreams does not name its origin.
   * @param conversation of a translated call; `digest` of what the users said: a long body is not read here
   */
  watch(
    call: AskingCall & { readonly caller: Pick<Call['caller'], 'keyId'> },
    { provider, model }: Pick<Target, 'provider' | 'model'>,
    {
      conversation,
      digest,
    }: { conversation: Conversation | undefined; digest?: string | LateDigest | undefined },
  ): TurnWatch | undefined {
    const traits = provider.traits(model);
    const relayed = conversation === undefined;
    if (relayed && provider.dialect.signsReasoning === true) return undefined;
    const origin: Origin = { provider: provider.id, dialect: provider.dialect.id };
    const keep = (turn: StoredTurn): void => {
      const store = (asked: Asked): void => this.#store.keep(call.caller.keyId, turn, asked);
      if (digest === undefined) {
        store(new PromptTrail((trail) => addAsked(trail, call, conversation)));
      } else if (typeof digest === 'string') store({ digest: () => digest });
      else if (turn.known.every(({ id, name }) => isRandom(id, name))) {
        store({ digest: () => '' });
      } else {
        // Without the digest the turn cannot be found again.
        const lost = (): void => undefined;
        void digest()
          .then((known) => store({ digest: () => known }))
          .catch(lost);
      }
    };
    return new TurnRecorder({ origin, traits, keep, sealer: relayed ? undefined : this.sealer });
  }
}

interface AskingCall {
  readonly dialect: Pick<ClientDialect, 'describe'>;
  readonly source: DescribedSource;
}

/** The user's texts, for ids that are unique only together with them. */
export function addAsked(
  trail: PromptTrail,
  call: AskingCall,
  conversation: Conversation | undefined,
): void {
  if (conversation !== undefined) {
    for (const turn of conversation.turns) trail.addTurn(turn);
    return;
  }
  for (const text of call.dialect.describe(call.source).userTexts()) trail.add(text);
}

interface OpenReasoning {
  readonly callsBefore: number;
  part: ReasoningPart;
}

interface OpenCall {
  readonly id: string;
  readonly name: string;
  readonly extras: JsonObject | undefined;
  argumentsJson: string;
}

interface Recording {
  readonly origin: Origin;
  readonly traits: UpstreamTraits;
  /** Present when the answer is translated. */
  readonly sealer: Sealer | undefined;
  /** Gets the turn when the client has it. */
  readonly keep: (turn: StoredTurn) => void;
}

/** Records what the upstream of one answer wants back with the next request. Its lists are made for what comes. */
class TurnRecorder implements TurnWatch {
  readonly #origin: Origin;
  readonly #traits: UpstreamTraits;
  readonly #keep: (turn: StoredTurn) => void;
  readonly sealing: Sealing | undefined;
  #reasoning: Map<number, OpenReasoning> | undefined;
  #calls: Map<number, OpenCall> | undefined;
  #shown: Map<string, string> | undefined;
  #finished = false;

  constructor({ origin, traits, sealer, keep }: Recording) {
    this.#origin = origin;
    this.#traits = traits;
    this.#keep = keep;
    this.sealing =
      sealer === undefined
        ? undefined
        : {
            sealer,
            upstream: origin,
            callShown: (id, shown) => (this.#shown ??= new Map()).set(id, shown),
          };
  }

  keep(): void {
    const turn = this.#result();
    if (turn !== undefined) this.#keep(turn);
  }

  see(event: GenerationEvent): void {
    if (event.type === 'part-start') {
      const index = event.index;
      const part = event.part;
      if (part.type === 'reasoning') {
        this.#reasoning ??= new Map();
        this.#reasoning.set(index, { callsBefore: this.#calls?.size ?? 0, part });
      } else if (part.type === 'tool-call') {
        const { id, name, argumentsJson } = part;
        const extras = part.extras?.[this.#origin.dialect];
        this.#calls ??= new Map();
        this.#calls.set(index, { id, name, argumentsJson, extras });
      }
    } else if (event.type === 'part-delta') this.#add(event);
    else if (event.type === 'finish') this.#finished = true;
  }

  /** The turn, if it ended and holds reasoning or something that its upstream wants back. */
  #result(): StoredTurn | undefined {
    if (!this.#finished || (this.#calls ?? this.#reasoning) === undefined) return undefined;
    const { known, calls } = this.#madeCalls();
    const reasoning: PositionedReasoning[] = [];
    let said = '';
    for (const { callsBefore, part } of this.#reasoning?.values() ?? []) {
      said += part.text;
      if (known.length > 0 && this.#isWanted(part)) {
        reasoning.push({ callsBefore, part: { ...part, origin: this.#origin } });
      }
    }
    if (said === '' && reasoning.length + calls.size === 0) return undefined;
    return { origin: this.#origin, reasoning, calls, known, said };
  }

  /** The calls of the turn as the client knows them, and their extras. */
  #madeCalls(): Pick<StoredTurn, 'known' | 'calls'> {
    const calls = new Map<string, JsonObject>();
    const known: KnownCall[] = [];
    for (const { id, name, argumentsJson, extras } of this.#calls?.values() ?? []) {
      const shown = this.#shown?.get(id) ?? id;
      known.push({ id: shown, name, argumentsJson });
      if (extras !== undefined) calls.set(shown, extras);
    }
    return { known, calls };
  }

  #add({ index, field, delta }: Extract<GenerationEvent, { type: 'part-delta' }>): void {
    const open = this.#reasoning?.get(index);
    if (open !== undefined) {
      const { part } = open;
      if (field === 'text') open.part = { ...part, text: part.text + delta };
      else open.part = { ...part, signature: (part.signature ?? '') + delta };
    } else if (field === 'arguments') {
      const call = this.#calls?.get(index);
      if (call !== undefined) call.argumentsJson += delta;
    }
  }

  #isWanted({ text, signature, encrypted, extras }: ReasoningPart): boolean {
    if ((signature ?? '') !== '' || encrypted !== undefined || extras !== undefined) return true;
    const { reasoningReplay, reasoningField } = this.#traits;
    return text !== '' && (reasoningReplay || reasoningField !== undefined);
  }
}

type Upstream = Pick<Provider, 'id' | 'dialect'>;

/**
 * Restores in the turns of a translated conversation what their upstream wrote and the client did not send
 * back. Turns without a stored entry stay unchanged.
 * @param upstream the target of this request: reasoning that another provider sealed is omitted.
 */
export function restoreReasoning(
  conversation: Conversation,
  upstream: Upstream,
  recall: Recall,
): Conversation {
  const asked = new PromptTrail();
  let changed = false;
  const turns = conversation.turns.map((turn) => {
    asked.addTurn(turn);
    const restored = turn.role === 'assistant' ? restoreTurn(turn) : turn;
    if (restored !== turn) changed = true;
    return restored;
  });
  return changed ? { ...conversation, turns } : conversation;

  function restoreTurn(turn: Turn): Turn {
    const call = turn.parts.find((part) => part.type === 'tool-call');
    if (call === undefined) return turn;
    const recalled = recall(call, asked);
    if (recalled === undefined || recalled.origin.dialect !== upstream.dialect.id) return turn;
    const parts = withCallExtras(withRecalled(turn.parts, recalled, upstream), recalled, upstream);
    return parts === turn.parts ? turn : { ...turn, parts };
  }
}

/** The last resort, where an upstream refuses what it or another one is said to have thought. */
export function withoutReasoning(conversation: Conversation): Conversation {
  const turns = conversation.turns.map((turn) =>
    turn.role === 'assistant'
      ? withPathOf(turn, { ...turn, parts: turn.parts.filter(({ type }) => type !== 'reasoning') })
      : turn,
  );
  return { ...conversation, turns };
}

/** The turn with the kept reasoning, unless it brings its own. */
function withRecalled(
  parts: readonly Part[],
  recalled: RecalledTurn,
  upstream: Upstream,
): readonly Part[] {
  const usable = recalled.reasoning.filter(
    (placed) =>
      upstream.dialect.signsReasoning === true || placed.part.origin?.provider === upstream.id,
  );
  if (usable.length === 0) return parts;
  const brought = parts.filter((part) => part.type === 'reasoning' && part.broken !== true);
  const sealed = usable.some(({ part }) => isSealedPart(part));
  if (brought.some((part) => !sealed || isSealedPart(part))) return parts;
  const others = parts.filter((part) => part.type !== 'reasoning');
  return withReasoning(others, usable);
}

function isSealedPart(part: Part): boolean {
  if (part.type !== 'reasoning') return false;
  const { signature, encrypted, extras } = part;
  return signature !== undefined || encrypted !== undefined || extras !== undefined;
}

function withCallExtras(
  parts: readonly Part[],
  recalled: RecalledTurn,
  upstream: Upstream,
): readonly Part[] {
  const { origin, calls } = recalled;
  if (calls.size === 0 || origin.provider !== upstream.id) return parts;
  const lacking = (part: Part): part is ToolCallPart =>
    part.type === 'tool-call' && calls.has(part.id) && part.extras?.[origin.dialect] === undefined;
  if (!parts.some(lacking)) return parts;
  return parts.map((part) =>
    lacking(part)
      ? { ...part, extras: { ...part.extras, [origin.dialect]: calls.get(part.id) }, origin }
      : part,
  );
}

// Turns that an upstream wants back as it wrote them, for clients that drop what they do not know.
// Bounded in bytes, number and time; what is gone is not made
// up. In memory only: it is of no use after the conversation, and it is other people's text.

interface ReasoningStoreOptions {
  readonly clock: Clock;
  readonly ttlMs?: number;
  readonly maxBytes?: number;
  readonly maxTurns?: number;
  /** Called with each remembered turn, so that other processes can remember it, too. */
  readonly share?: (turn: SharedTurn) => void;
}

/** A turn under all names by which it is found. */
export interface SharedTurn {
  readonly turn: RecalledTurn;
  readonly keys: readonly string[];
  readonly bytes: number;
}

export interface StoredTurn extends RecalledTurn {
  readonly known: readonly KnownCall[];
  /** All of its reasoning as one text: who made it is known again by that. */
  readonly said?: string;
}

/** A digest of the user's texts up to a turn (`PromptTrail`). */
interface Asked {
  digest(): string;
}

interface Entry {
  readonly turn: RecalledTurn;
  readonly keys: readonly string[];
  readonly bytes: number;
  readonly storedAt: number;
}

const hourMs = 3_600_000;
const defaultMaxBytes = 64 * 1024 * 1024;
const defaultMaxTurns = 50_000;
/** The approximate size of an entry without its texts. */
const overheadBytes = 512;

export class ReasoningStore {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #maxBytes: number;
  readonly #maxTurns: number;
  readonly #share: ReasoningStoreOptions['share'];
  /** In the order of storing, so that the oldest is first. */
  readonly #entries = new Set<Entry>();
  readonly #byKey = new Map<string, Entry>();
  #bytes = 0;

  constructor({ clock, ttlMs, maxBytes, maxTurns, share }: ReasoningStoreOptions) {
    this.#clock = clock;
    this.#ttlMs = ttlMs ?? hourMs;
    this.#maxBytes = maxBytes ?? defaultMaxBytes;
    this.#maxTurns = maxTurns ?? defaultMaxTurns;
    this.#share = share;
  }

  /** Held bytes, by estimate. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** @param keyId of the API key that owns the turn; it is returned to no other key. */
  keep(keyId: string, turn: StoredTurn, asked: Asked): void {
    let length = 0;
    for (const { part } of turn.reasoning) {
      length += part.text.length + (part.signature?.length ?? 0) + (part.encrypted?.length ?? 0);
      if (part.extras !== undefined) length += JSON.stringify(part.extras).length;
    }
    for (const members of turn.calls.values()) length += JSON.stringify(members).length;
    for (const { id } of turn.known) length += id.length;
    const bytes = overheadBytes + 2 * length;
    if (bytes > this.#maxBytes) return;
    const keys = turn.known.map((call) => recallKey(keyId, call, asked));
    const { origin, reasoning, calls, said = '' } = turn;
    if (keys.length > 0) this.#keepAs({ turn: { origin, reasoning, calls }, keys, bytes });
    if (said === '') return;
    // An entry of its own: another turn with the same words is to be found by its calls all the same.
    const author = { origin, reasoning: [], calls: new Map<string, never>() };
    this.#keepAs({ turn: author, keys: [originKey(keyId, said)], bytes: overheadBytes });
  }

  #keepAs(turn: SharedTurn): void {
    this.adopt(turn);
    this.#share?.(turn);
  }

  /** Keeps a turn that another process has kept. */
  adopt({ turn, keys, bytes }: SharedTurn): void {
    const entry: Entry = { turn, keys, bytes, storedAt: this.#clock.now() };
    for (const key of keys) {
      const earlier = this.#byKey.get(key);
      if (earlier !== undefined) this.#drop(earlier);
    }
    for (const key of keys) this.#byKey.set(key, entry);
    this.#entries.add(entry);
    this.#bytes += bytes;
    this.#shrink();
  }

  recall(keyId: string, call: KnownCall, asked: Asked): RecalledTurn | undefined {
    return this.#entries.size === 0 ? undefined : this.#find(recallKey(keyId, call, asked));
  }

  /** The origin of reasoning with this text. */
  origin(keyId: string, said: string): Origin | undefined {
    return this.#entries.size === 0 ? undefined : this.#find(originKey(keyId, said))?.origin;
  }

  /** The remembered turns of the given keys. */
  turnsOf(keys: readonly string[]): ReadonlyMap<string, RecalledTurn> {
    const found = new Map<string, RecalledTurn>();
    for (const key of keys) {
      const turn = this.#find(key);
      if (turn !== undefined) found.set(key, turn);
    }
    return found;
  }

  #find(key: string): RecalledTurn | undefined {
    const entry = this.#byKey.get(key);
    if (entry === undefined) return undefined;
    if (!this.#isOld(entry)) return entry.turn;
    this.#drop(entry);
    return undefined;
  }

  #isOld(entry: Entry): boolean {
    return this.#clock.now() - entry.storedAt > this.#ttlMs;
  }

  /** The oldest go first: those beyond their time, and as many more as the limits ask. */
  #shrink(): void {
    for (const entry of this.#entries) {
      const over = this.#bytes > this.#maxBytes || this.#entries.size > this.#maxTurns;
      if (!over && !this.#isOld(entry)) return;
      this.#drop(entry);
    }
  }

  #drop(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    this.#bytes -= entry.bytes;
    for (const key of entry.keys) if (this.#byKey.get(key) === entry) this.#byKey.delete(key);
  }
}

/**
 * Random ids are their own proof. Others come again in every conversation (`call_0`, `get_time:1`):
 * there the call and all that the user said before it must be the same.
 */
export function recallKey(keyId: string, call: KnownCall, asked: Asked): string {
  const { id, name, argumentsJson } = call;
  if (isRandom(id, name)) return `${keyId}\n${id}`;
  const context = createHash('sha256')
    .update(`${name}\n${canonicalJson(argumentsJson)}\n${asked.digest()}`)
    .digest('base64url');
  return `${keyId}\n${id}\n${context}`;
}

/** Of reasoning with this text. */
export function originKey(keyId: string, said: string): string {
  return `${keyId}\nsaid ${createHash('sha256').update(said).digest('base64url')}`;
}

/** Clients send arguments back parsed and written again. */
function canonicalJson(text: string): string {
  const value = tryParseInnerObject(text.trim() === '' ? '{}' : text);
  return value === undefined ? text : JSON.stringify(value);
}

function isRandom(id: string, name: string): boolean {
  const runs = id.replaceAll(name, ' ').match(/[A-Za-z0-9]{9,}/g) ?? [];
  return runs.some((run) => /[0-9]/.test(run) && /[A-Za-z]/.test(run));
}
