/**
 * What the gateway's own connections take from undici. All of it takes 40 ms of each start, for `fetch`, caches and
 * web sockets that nobody uses here; whoever asks for its dispatcher gets that when it is used.
 */
import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const require = createRequire(import.meta.url);

export const buildConnector = require('undici/lib/core/connect.js') as typeof Undici.buildConnector;

export const errors = require('undici/lib/core/errors.js') as typeof Undici.errors;

/** All of it; a second time it is there. */
export function wholeUndici(): typeof Undici {
  return require('undici') as typeof Undici;
}
