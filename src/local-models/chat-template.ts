/** What a model's chat template tells of its reasoning, by the words that the engine goes by as well. */
import type { LocalModelFacts } from './model-file.ts';

/** As `src/engine/reasoning-scanner.ts`; a test holds both against each other. */
const closingTags = ['</think>', '</thinking>', '</seed:think>', '[/THINK]'];

/** @param template Jinja, as it stands in the file; undefined = the file has none. */
export function reasoningFacts(
  template: string | undefined,
): Pick<LocalModelFacts, 'reasoning' | 'reasoningLevels'> {
  if (template === undefined || !closingTags.some((tag) => template.includes(tag))) return {};
  return {
    reasoning: /\benable_thinking\b/u.test(template) ? 'switchable' : 'always',
    ...(/\breasoning_effort\b/u.test(template) ? { reasoningLevels: true } : {}),
  };
}
