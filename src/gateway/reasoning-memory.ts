/** What the gateway remembers of answers so that reasoning finds its way back (§5.3, §5.4). */
import type { Conversation, Origin } from '../core/conversation.ts';
import type { Sealing } from '../core/dialect.ts';
import type { GenerationEvent } from '../core/generation.ts';
import { isObject } from '../core/json.ts';
import { PromptTrail, type Recall } from '../core/kept-turn.ts';
import type { Target } from '../core/provider.ts';
import type { Sealer } from '../core/sealer.ts';
import type { UpstreamTraits } from '../core/traits.ts';
import type { Call } from './call.ts';
import type { ReasoningStore } from './reasoning-store.ts';
import { TurnRecorder } from './turn-recorder.ts';

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

  /** What answers to this key's earlier calls left. */
  recallFor(keyId: string): Recall {
    return (call, asked) => this.#store.recall(keyId, call, asked);
  }

  /**
   * A watch over the answer to a call; undefined where nothing of it can be missing later: a relayed
   * answer of an upstream that wants nothing back.
   * @param conversation of a translated call.
   */
  watch(call: Call, target: Target, conversation: Conversation | undefined): TurnWatch | undefined {
    const { provider, model } = target;
    const traits = provider.traits(model);
    if (conversation === undefined && !wantsHistoryBack(traits)) return undefined;
    const origin: Origin = { provider: provider.id, dialect: provider.dialect.id };
    const recorder = new TurnRecorder(origin, traits);
    const keep = (): void => {
      const turn = recorder.result();
      if (turn === undefined) return;
      this.#store.keep(call.caller.keyId, turn, askedIn(call, conversation));
    };
    return {
      see: (event) => recorder.see(event),
      sealing:
        conversation === undefined
          ? undefined
          : {
              sealer: this.sealer,
              upstream: origin,
              callShown: (id, shown) => recorder.callShown(id, shown),
            },
      keep,
    };
  }
}

/** Whether an upstream of the client's own dialect wants back what standard clients drop. */
function wantsHistoryBack(traits: UpstreamTraits): boolean {
  return (
    traits.reasoningReplay || traits.callSignatures === true || traits.reasoningDetails === true
  );
}

function askedIn(call: Call, conversation: Conversation | undefined): PromptTrail {
  const asked = new PromptTrail();
  if (conversation !== undefined) {
    for (const turn of conversation.turns) asked.addTurn(turn);
    return asked;
  }
  const { messages } = call.source.value;
  if (Array.isArray(messages))
    for (const each of messages) if (isObject(each)) asked.addMessage(each);
  return asked;
}
