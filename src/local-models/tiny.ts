/** The model that ships with the gateway. */
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LocalModelFile } from './model-file.ts';

const path = fileURLToPath(new URL('../../models/tiny/tiny.gguf', import.meta.url));

export const tinyModel: LocalModelFile & { readonly sha256: string } = {
  name: 'tiny',
  path,
  bytes: statSync(path, { throwIfNoEntry: false })?.size ?? 0,
  sha256: '26f834c00b24b5f8d06f4ad354a1c631c22e9eba9c50e576b3c645f09bfc7ed0',
  demo: true,
  settings: {},
};
