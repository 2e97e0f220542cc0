/** What answers without a key: probes and a greeting. */
import type { JsonObject } from '../core/conversation.ts';
import type { Step } from './overload/ladder.ts';

export const openPaths: readonly string[] = ['/', '/healthz', '/readyz'];

export interface OpenFacts {
  readonly version: string;
  /** Why no traffic should come now, or undefined when ready. */
  readonly notReady: () => string | undefined;
  /** How hard the process is pressed. */
  readonly step: Step;
}

/**
 * Under pressure the gateway stays alive and ready: a restart would end the calls that run, and with
 * one gateway turned away from, the others get its calls on top.
 */
export function openAnswer(
  path: string,
  { version, notReady, step }: OpenFacts,
): { readonly status: number; readonly body: JsonObject } {
  if (path === '/') {
    const endpoints = ['/v1/chat/completions', '/v1/messages'];
    return { status: 200, body: { name: 'model-gateway', version, endpoints } };
  }
  if (path === '/healthz') {
    return { status: 200, body: { status: 'ok', ...(step === 0 ? {} : { pressure: step }) } };
  }
  const why = notReady();
  if (why === undefined) return { status: 200, body: { status: 'ready' } };
  return { status: 503, body: { status: 'not ready', why } };
}
