/**
 * Marks on entries of `reasoning_details` that tell whether they came back whole, without any state.
 * The helpers of the official SDKs keep the last piece of each entry only, or nothing but the last
 * entry; a signature without its text would be a 400 on the next turn (D1, D3). The entry with the
 * signature therefore carries a digest of the text, with the place of the entry in its turn.
 */
import type { ReasoningPart } from '../../core/conversation.ts';
import type { PlacedReasoning } from '../../core/kept-turn.ts';
import type { Sealer } from '../../core/sealer.ts';

/** Where an entry stands: its number among the entries, and the calls before it. */
export interface DetailPlace {
  readonly entry: number;
  readonly callsBefore: number;
}

const markForm = /^gwr_(\d{1,6})_(\d{1,6})_([\w-]{22})$/;

/** The `id` of an entry whose text is complete. */
export function detailMark(part: ReasoningPart, place: DetailPlace, sealer: Sealer): string {
  const { entry, callsBefore } = place;
  return `gwr_${entry}_${callsBefore}_${sealer.digest(marked(part, place))}`;
}

function marked(part: ReasoningPart, { entry, callsBefore }: DetailPlace): string {
  const secret = part.encrypted === undefined ? 'text' : 'encrypted';
  return `${entry}_${callsBefore}_${secret}_${part.encrypted ?? part.text}`;
}

/**
 * The reasoning of a message at its places in the turn. Where one marked entry is missing or differs,
 * all are broken: a provider wants all of a turn or none.
 */
export function checkReasoning(
  parts: readonly ReasoningPart[],
  sealer: Sealer | undefined,
): readonly PlacedReasoning[] {
  let whole = true;
  const placed = parts.map((part, i): PlacedReasoning => {
    const id = part.extras?.['openai-chat']?.['id'];
    const mark = typeof id === 'string' ? markForm.exec(id) : null;
    if (mark === null) return { callsBefore: 0, part };
    const place = { entry: Number(mark[1]), callsBefore: Number(mark[2]) };
    if (place.entry !== i || sealer?.digest(marked(part, place)) !== mark[3]) whole = false;
    return { callsBefore: place.callsBefore, part: withoutMark(part) };
  });
  if (whole) return placed;
  return placed.map(({ callsBefore, part }) => ({ callsBefore, part: { ...part, broken: true } }));
}

function withoutMark(part: ReasoningPart): ReasoningPart {
  const { extras, ...rest } = part;
  const { id: _mark, ...members } = extras?.['openai-chat'] ?? {};
  return Object.keys(members).length === 0
    ? rest
    : { ...rest, extras: { ...extras, 'openai-chat': members } };
}
