/** The program as `bin/model-gateway` starts it, for processes of tests that need other options of Node besides. */
import { join } from 'node:path';

/** Those of `bin/model-gateway`; its own test compares them. */
export const nodeOptions = [
  '--disable-warning=ExperimentalWarning',
  '--min-semi-space-size=4',
  '--max-semi-space-size=8',
  '--no-parallel-scavenge',
  '--no-memory-reducer',
  '--v8-pool-size=1',
] as const;

/**
 * What `bin/model-gateway` adds to the environment; its own test compares it. With the compiled modules of an earlier
 * process a start costs a quarter less of CPU. They are where scripts/test.mjs has them: nothing stays in the temporary folder.
 */
export const nodeEnvironment = {
  MALLOC_MMAP_THRESHOLD_: '1048576',
  NODE_COMPILE_CACHE:
    process.env['NODE_COMPILE_CACHE'] ??
    join(import.meta.dirname, '../../node_modules/.cache/compile'),
} as const;

const main = join(import.meta.dirname, '../../src/main.ts');

/** What Node is given. @param more further options of Node */
export function programArguments(
  commandAndFlags: readonly string[],
  more: readonly string[] = [],
): string[] {
  return [...nodeOptions, ...more, main, ...commandAndFlags];
}
