/** The model that ships with the gateway. */
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LocalModelFile } from './model-file.ts';

const path = fileURLToPath(new URL('../../models/tiny/tiny.gguf', import.meta.url));

export const tinyModel: LocalModelFile & { readonly sha256: string } = {
  name: 'tiny',
  path,
  bytes: statSync(path, { throwIfNoEntry: false })?.size ?? 0,
  sha256: '501b26b86404fa19ed3b20c0b7e2ac1420dd87cc02fb0297506440d6fd3726d5',
  demo: true,
  settings: {},
};
