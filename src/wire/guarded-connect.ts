/**
 * Names are checked at the moment of connecting, with the very addresses that are connected to: what a name
 * resolved to when the config was read says nothing about later (DNS rebinding, S16 b).
 */
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { buildConnector as Building } from 'undici';
import { isForbiddenAddress, isForbiddenHost } from '../core/forbidden-address.ts';
import { buildConnector, errors } from './undici-parts.ts';

class ForbiddenAddress extends Error {
  readonly code = 'FORBIDDEN_ADDRESS';
}

/**
 * What a connection whose answer is paused may hold before it stops reading: a read is up to 64 KiB, and the
 * one behind the pause shall be the last one (G9).
 */
const paused = { highWaterMark: 16 * 1024 };

/** A connector that refuses addresses of the URL itself, which nobody looks up, and guards the look-up. */
export function guardedConnector(
  options: Building.BuildOptions,
  lookup: LookupFunction,
): Building.connector {
  const connect = inTime(
    buildConnector({ ...paused, ...options, lookup: guardedLookup(lookup) }),
    options.timeout ?? undefined,
  );
  return (wanted, callback) => {
    if (isForbiddenHost(wanted.hostname)) {
      const error = new ForbiddenAddress('a link-local address or one of cloud metadata');
      queueMicrotask(() => callback(error, null));
    } else connect(wanted, callback);
  };
}

/** The connector's own clock beats twice a second: 2 s would be 2.5 s (R7, G13). It closes what is left of it. */
function inTime(connect: Building.connector, timeoutMs: number | undefined): Building.connector {
  if (timeoutMs === undefined) return connect;
  return (wanted, callback) => {
    let over = false;
    const timer = setTimeout(() => {
      over = true;
      callback(new errors.ConnectTimeoutError(`no connection within ${timeoutMs} ms`), null);
    }, timeoutMs);
    connect(wanted, (...result) => {
      clearTimeout(timer);
      if (over) result[1]?.destroy();
      else callback(...result);
    });
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
