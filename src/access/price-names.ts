/** The names under which the price of a model may be listed (F6). */
import { withoutDate } from '../core/model-names.ts';

/** The name and, if it has a date, its undated family name. Nearest first. */
export function familyNames(model: string): readonly string[] {
  const family = withoutDate(model);
  return family === model ? [model] : [model, family];
}

/** The same, and then without the part before the last slash: `models/gemini-3-pro`. */
export function listedNames(model: string): readonly string[] {
  const bare = model.slice(model.lastIndexOf('/') + 1);
  return bare === model || bare === ''
    ? familyNames(model)
    : [...familyNames(model), ...familyNames(bare)];
}
