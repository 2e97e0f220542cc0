/** The last assistant message as the beginning of the answer (wire/translation.md §3.4). */
import type { UpstreamTraits } from '../../core/traits.ts';
import type { JsonMembers } from './fields.ts';

/** The last message is the beginning of an answer and not an answer: no call of it is to be run. */
export function isPrefill(messages: readonly JsonMembers[]): boolean {
  const last = messages.at(-1);
  return last?.['role'] === 'assistant' && last['tool_calls'] === undefined;
}

/** What the upstream must be told, on the request or on the message; nothing where it continues anyway. */
export function writePrefill(
  messages: readonly JsonMembers[],
  { prefill, prefillSwitch }: UpstreamTraits,
): JsonMembers {
  const last = messages.at(-1);
  if (!prefill || last === undefined || !isPrefill(messages)) return {};
  if (prefillSwitch === 'continue_final_message') {
    return { continue_final_message: true, add_generation_prompt: false };
  }
  if (prefillSwitch === 'prefix') last['prefix'] = true;
  return {};
}
