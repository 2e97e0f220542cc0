/**
 * What a span shows of a prompt: its instructions from their beginning and its turns from their end, under limits. A copy
 * of it that is small is all that is kept of a long body, which is not read on the event loop.
 */
import type { Conversation, MediaPart, Part, Turn } from './conversation.ts';

/** Characters of one part; the rest of it is left out. */
export const maxPartLength = 8192;
/** Characters of each attribute, as JSON: of a prompt the end is kept, of an answer the beginning. */
export const maxAttributeLength = 65_536;
/** So much more of a text is looked at for keys, so that none is cut in two. */
export const keyMargin = 512;
/** What a part costs besides its texts. */
const partCost = 32;

export interface PromptExcerpt extends Pick<Conversation, 'system' | 'turns'> {
  /** Parts were left out. */
  readonly cut: boolean;
}

/** At least what a span has room for, and not much more. */
export function excerptOf({
  system,
  turns,
}: Pick<Conversation, 'system' | 'turns'>): PromptExcerpt {
  const instructions = new Room(maxAttributeLength);
  const first = instructions.fill(system);
  const room = new Room(maxAttributeLength);
  const last: Turn[] = [];
  for (const { role, parts } of turns.toReversed()) {
    const own = room.fill(parts.toReversed()).toReversed();
    if (own.length > 0) last.unshift({ role, parts: own });
    if (room.cut) break;
  }
  return { system: first, turns: last, cut: instructions.cut || room.cut };
}

class Room {
  /** A part was left out. */
  cut = false;
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  /** The first ones, each of them short, up to the one that does not fit whole. */
  fill(parts: readonly Part[]): readonly Part[] {
    const kept: Part[] = [];
    for (const part of parts) {
      if (this.#left < 0) {
        this.cut = true;
        break;
      }
      this.#left -= partCost;
      kept.push(this.#short(part));
    }
    return kept;
  }

  #short(part: Part): Part {
    switch (part.type) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        return { type: part.type, text: this.#text(part.text) };
      case 'tool-call': {
        const { type, id, name, argumentsJson } = part;
        const shown = this.#text(argumentsJson);
        return { type, id: this.#text(id), name: this.#text(name), argumentsJson: shown };
      }
      case 'tool-result': {
        const { type, callId, failed } = part;
        return { type, callId: this.#text(callId), parts: this.#results(part.parts), failed };
      }
      case 'media':
        return this.#media(part);
      case 'opaque':
        return { ...part, value: { type: part.value['type'] ?? null } };
      default:
        return part satisfies never;
    }
  }

  /** Their texts are shown as one. */
  #results(parts: readonly Part[]): readonly Part[] {
    const most = maxPartLength + keyMargin;
    const own = new Room(most);
    const kept = own.fill(parts);
    this.#left -= most - own.#left;
    this.cut ||= own.cut;
    return kept;
  }

  /** Its bytes are never shown. */
  #media({ type, kind, mediaType, source }: MediaPart): Part {
    if ('url' in source) return { type, kind, mediaType, source: { url: this.#text(source.url) } };
    if ('text' in source)
      return { type, kind, mediaType, source: { text: this.#text(source.text) } };
    return { type, kind, mediaType, source: { base64: '' } };
  }

  #text(text: string): string {
    const shown = text.slice(0, maxPartLength + keyMargin);
    this.#left -= shown.length;
    return shown;
  }
}
