/**
 * Names are checked at the moment of connecting, with the very addresses that are connected to: what a name
 * resolved to when the config was read says nothing about later (DNS rebinding, S16 b).
 */
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isForbiddenAddress, isForbiddenHost } from '../core/forbidden-address.ts';

class ForbiddenAddress extends Error {
  readonly code = 'FORBIDDEN_ADDRESS';
}

/** A connector that refuses addresses of the URL itself, which nobody looks up, and guards the look-up. */
export function guardedConnector(
  options: buildConnector.BuildOptions,
  lookup: LookupFunction,
): buildConnector.connector {
  const connect = buildConnector({ ...options, lookup: guardedLookup(lookup) });
  return (wanted, callback) => {
    if (isForbiddenHost(wanted.hostname)) {
      const error = new ForbiddenAddress('a link-local address or one of cloud metadata');
      queueMicrotask(() => callback(error, null));
    } else connect(wanted, callback);
  };
}

/** The same look-up without the addresses that nobody may connect to; an error when no other is left. */
function guardedLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found, family) => {
      if (error !== null) {
        callback(error, found, family);
        return;
      }
      const allowed = listed(found, family).filter(({ address }) => !isForbiddenAddress(address));
      const [first] = allowed;
      if (first === undefined) {
        callback(new ForbiddenAddress(`${hostname} leads to a link-local address`), '', 0);
      } else if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
}

function listed(found: string | LookupAddress[], family = 0): readonly LookupAddress[] {
  return typeof found === 'string' ? [{ address: found, family }] : found;
}
