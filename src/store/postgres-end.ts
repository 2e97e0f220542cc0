/** The end of connections to a PostgreSQL server that may be silent: such a server does not close its side either. */
import { setTimeout as delay } from 'node:timers/promises';

/** A server that is well closes its side within milliseconds. */
const closeMs = 1000;

/**
 * Waits until `ending` is over, for a second at most, and then destroys what is still open.
 * @returns whether it was not over by then
 */
export async function endOrCut(ending: Promise<unknown>, destroy: () => void): Promise<boolean> {
  const over = new AbortController();
  const ended = ending.then(
    () => false,
    () => false,
  );
  const waited = delay(closeMs, true, { signal: over.signal, ref: false }).catch(() => true);
  const isCut = await Promise.race([ended, waited]);
  over.abort();
  destroy();
  return isCut;
}
