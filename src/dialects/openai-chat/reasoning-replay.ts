/**
 * Reasoning of earlier turns on its way back (wire/translation.md §5). It never becomes text that the
 * user seems to have seen (D7), and nobody is sent what another provider sealed.
 */
import type { JsonObject, Origin, ReasoningPart, ToolCallPart } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { fillerNote, missingSignatures } from './call-signatures.ts';
import type { JsonMembers } from './fields.ts';
import { hasProof, writeDetail } from './reasoning-write.ts';
import { readCall } from './tool-call-read.ts';

export interface Replaying {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** Who is asked; undefined = whoever made it. */
  readonly provider: string | undefined;
}

/** Writes what the turns of one request bring back; state is what was noted already. */
export class ReasoningReplay {
  readonly #replaying: Replaying;
  #noted = false;
  #notedFiller = false;

  constructor(replaying: Replaying) {
    this.#replaying = replaying;
  }

  /**
   * Some servers want text back on every assistant message, and have a word for none (D6); others want
   * what they sealed, as they sent it (D1).
   */
  members(reasoning: readonly ReasoningPart[], path: FieldPath): JsonMembers {
    const { traits } = this.#replaying;
    const kept = reasoning.filter((part) => this.#mayBeSent(part, path));
    if (traits.reasoningDetails === true) {
      const sealed = kept.filter((part) => this.#isOwn(part.origin) && isSealedPart(part));
      if (sealed.length > 0) return { reasoning_details: sealed.map(writeDetail) };
    }
    if (traits.reasoningReplay) {
      const text = joined(kept) || traits.reasoningFiller;
      return text === undefined ? {} : { reasoning_content: text };
    }
    if (traits.reasoningField === undefined) return {};
    const text = joined(kept.filter((part) => part.origin !== undefined));
    return text === '' ? {} : { [traits.reasoningField]: text };
  }

  /** What its own provider said of a call (D5). */
  callMembers(part: ToolCallPart, path: FieldPath): JsonObject {
    const extras = part.extras?.['openai-chat'];
    if (extras === undefined) return {};
    if (part.origin !== undefined && !this.#isOwn(part.origin)) {
      this.#note(path, 'what another provider sealed is not sent to this one');
      return {};
    }
    return extras;
  }

  /** The calls of a turn as they may be sent: signed where the server insists. */
  signed(calls: readonly JsonObject[], path: FieldPath): readonly JsonObject[] {
    const { traits, notes } = this.#replaying;
    const missing = missingSignatures(calls.map(readCall), traits);
    if (missing === undefined) return calls;
    if (!this.#notedFiller) notes.changed(path, fillerNote);
    this.#notedFiller = true;
    return calls.map((call, i) => ({ ...call, ...missing.members[i] }));
  }

  #mayBeSent(part: ReasoningPart, path: FieldPath): boolean {
    const { traits } = this.#replaying;
    if (part.broken === true) {
      this.#note(path, 'reasoning came back changed or incomplete');
      return false;
    }
    if (part.origin === undefined) {
      // A client's own spelling of it: signed by a messages server, or plain text.
      const taken =
        traits.reasoningDetails === true || (traits.reasoningReplay && part.text !== '');
      if (!taken && hasProof(part)) this.#note(path, foreign);
      return true;
    }
    const plain = traits.reasoningReplay && !isSealedPart(part);
    if (this.#isOwn(part.origin) || plain) return true;
    this.#note(path, foreign);
    return false;
  }

  #isOwn(origin: Origin | undefined): boolean {
    const { provider } = this.#replaying;
    if (origin === undefined) return true;
    return (
      origin.dialect === 'openai-chat' && (provider === undefined || origin.provider === provider)
    );
  }

  /** Once a request: a history may hold hundreds of them. */
  #note(path: FieldPath, why: string): void {
    if (this.#noted) return;
    this.#noted = true;
    this.#replaying.notes.lost(path, why);
  }
}

const foreign = 'reasoning of another provider is not shown to this one';

function joined(reasoning: readonly ReasoningPart[]): string {
  return reasoning
    .map((part) => part.text)
    .filter((text) => text !== '')
    .join('\n\n');
}

/** More than text: something that only its maker understands. */
function isSealedPart(part: ReasoningPart): boolean {
  return hasProof(part) || part.extras?.['openai-chat'] !== undefined;
}
