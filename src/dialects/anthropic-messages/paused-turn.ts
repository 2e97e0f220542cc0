/** Turns that the native service paused while its own tools ran (`pause_turn`; translation.md §7.3). */
import type { JsonObject, Turn } from '../../core/conversation.ts';

const serverBlock = /._tool_(use|result)$/;

/** A trailing assistant message that ends so is gone on with as it is: it is no prefill. */
export function isServerBlock({ type }: JsonObject): boolean {
  return typeof type === 'string' && serverBlock.test(type);
}

/** The last turn is one that its upstream paused. */
export function endsPaused(turns: readonly Turn[]): boolean {
  const last = turns.at(-1);
  const part = last?.role === 'assistant' ? last.parts.at(-1) : undefined;
  return part?.type === 'opaque' && isServerBlock(part.value);
}
