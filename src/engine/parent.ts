/**
 * The engine's side of its IPC channel. The parent hears what state the engine is in, may ask for a
 * sign of life, and may ask an idle engine to leave.
 */
import { rmdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { isObject, type JsonObject } from './json.ts';

/** What a sign of life tells. */
export interface SignOfLife {
  /** Requests that came in so far. */
  readonly served: number;
  /** Requests that are not done. */
  readonly active: number;
  /** Those of them that wait for the model, not for their caller. */
  readonly computing: number;
  /** Tokens that went through the model so far: if it stands still, so does the model. */
  readonly steps: number;
}

/** Says something to the parent, if there is one. */
export function tellParent(message: JsonObject): void {
  if (process.connected !== true) return;
  process.send?.(message, undefined, undefined, () => {});
}

/**
 * Answers `{"ask":"beat"}` with a sign of life, and `{"ask":"leave","served":N}` by ending the process,
 * unless a request is being answered or fewer than N came in so far: one is on its way then. Between
 * this look and the end none can come in.
 */
export function answerParent(look: () => SignOfLife): void {
  process.on('message', (message) => {
    if (!isObject(message)) return;
    const signs = look();
    const leaves = message['ask'] === 'leave';
    const expected = Number(message['served'] ?? 0);
    if (leaves && signs.active === 0 && signs.served >= expected) return endAtOnce();
    tellParent({ state: 'beat', ...signs, ...(leaves ? { stays: true } : {}) });
  });
}

/**
 * Ends the engine when the channel closes, so that none outlives its parent; signals meant for the
 * parent's whole group are left to the parent.
 */
export function endWithParent(socketPath: string): void {
  if (process.send === undefined) return;
  const end = (): void => {
    rmSync(socketPath, { force: true });
    try {
      rmdirSync(dirname(socketPath));
    } catch {
      // The folder is gone already, or holds something that is not ours.
    }
    endAtOnce();
  };
  process.on('disconnect', end);
  // The parent may have gone while this file was being loaded.
  if (!process.connected) end();
  // Ctrl-C and service managers signal the whole group, while the parent still drains its streams.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
}

/** An orderly exit would run native destructors under threads that still compute. */
function endAtOnce(): void {
  process.kill(process.pid, 'SIGKILL');
}
