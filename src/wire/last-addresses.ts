/**
 * The last good addresses of names, for when name servers fail (F3): an upstream that is there is not
 * lost with them. A name that is said not to exist does not.
 */
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';

const keptMs = 5 * 60_000;
const maxNames = 1000;

/** `EAI_AGAIN` is what the system says of SERVFAIL and of servers that do not answer. */
const serverFailures: ReadonlySet<string> = new Set(['EAI_AGAIN', 'ETIMEOUT', 'ESERVFAIL']);

interface Found {
  readonly address: string | LookupAddress[];
  readonly family: number | undefined;
  /** Monotonic ms. */
  readonly at: number;
}

/** The same look-up, which answers for five minutes what it last found where the servers fail. */
export function withLastAddresses(
  lookup: LookupFunction,
  now: () => number = () => performance.now(),
): LookupFunction {
  const last = new Map<string, Found>();
  return (hostname, options, callback) => {
    const key = `${hostname} ${String(options.all)} ${String(options.family)}`;
    lookup(hostname, options, (error, address, family) => {
      if (error === null) {
        keep(last, key, { address, family, at: now() });
        callback(null, address, family);
        return;
      }
      const found = last.get(key);
      const usable = serverFailures.has(error.code ?? '') && found !== undefined;
      if (usable && now() - found.at <= keptMs) callback(null, found.address, found.family);
      else callback(error, address, family);
    });
  };
}

function keep(last: Map<string, Found>, key: string, found: Found): void {
  last.delete(key);
  last.set(key, found);
  const [oldest] = last.keys();
  if (last.size > maxNames && oldest !== undefined) last.delete(oldest);
}
