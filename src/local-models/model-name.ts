/** Names of local models: one word that is a safe file name everywhere and a model name at once. */

const nameForm = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?$/;
/** Windows opens devices by these names. */
const devices = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

export const nameRule =
  'a name is 1 to 100 letters, digits, ".", "_" and "-", begins with a letter or digit and does not end in "."';

export function isModelName(text: string): boolean {
  return nameForm.test(text) && !devices.test(text);
}

/** The name that a file gets when none is given: `Qwen3-0.6B-Q8_0.gguf` → `qwen3-0.6b-q8_0`. */
export function nameOfFile(fileName: string): string | undefined {
  const name = fileName
    .replace(/\.gguf$/i, '')
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 100)
    .replace(/[.-]+$/, '');
  return isModelName(name) ? name : undefined;
}

const partForm = /-(\d{5})-of-(\d{5})\.gguf$/i;

/** Whether the file's name says that it is one part of several. */
export function isPartOfSplit(fileName: string): boolean {
  const parts = partForm.exec(fileName)?.[2];
  return parts !== undefined && Number(parts) > 1;
}
