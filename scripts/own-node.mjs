// Builds need the bundler, which runs with newer versions of Node than npm does.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The Node that `npm ci` installs. */
export const ownNode = join(import.meta.dirname, '..', 'node_modules', '.bin', 'node');

/** Runs this script again with that Node where the one that runs it is too old; its status, or undefined. */
export function rerunWithOwnNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const isNewEnough = major > 22 || (major === 22 && minor >= 19);
  if (isNewEnough || !existsSync(ownNode) || process.env.MODEL_GATEWAY_BUILD_NODE === 'own') {
    return undefined;
  }
  const { status } = spawnSync(ownNode, process.argv.slice(1), {
    stdio: 'inherit',
    env: { ...process.env, MODEL_GATEWAY_BUILD_NODE: 'own' },
  });
  return status ?? 1;
}
