/** The names under which the price of a model may stand (F6). */

/** `claude-sonnet-5-20260930`, `gpt-5-mini-2025-08-07`, `claude-sonnet-4@20250514`. */
const date = /[-@]20\d\d(?:-[01]\d-[0-3]\d|[01]\d[0-3]\d)(?=$|[-:@])/;

/** The name and, if it has a date, its family: what the vendor names without one. Nearest first. */
export function familyNames(model: string): readonly string[] {
  const family = model.replace(date, '');
  return family === model ? [model] : [model, family];
}

/** The same, and then without what stands before the last slash: `models/gemini-3-pro`. */
export function listedNames(model: string): readonly string[] {
  const bare = model.slice(model.lastIndexOf('/') + 1);
  return bare === model || bare === ''
    ? familyNames(model)
    : [...familyNames(model), ...familyNames(bare)];
}
