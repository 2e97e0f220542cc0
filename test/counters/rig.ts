/** What the suite needs of a kind of counters: a clock that it can move, and nothing left over. */
import type {
  Counters,
  ReserveRequest,
  ReserveResult,
  Granted,
  Refused,
} from '../../src/store/counters/counters.ts';

export interface Rig {
  readonly counters: Counters;
  /** Lets time pass for the counters. It stands still otherwise. */
  pass(ms: number): Promise<void>;
  /** Waits until settlements have arrived. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

let made = 0;

/** A name that no other test has. */
export function fresh(kind: string): string {
  made += 1;
  return `${kind}${made}`;
}

export type Wanted = Partial<ReserveRequest>;

export function requestOf(wanted: Wanted): ReserveRequest {
  return {
    callId: fresh('call_'),
    concurrent: [],
    requests: [],
    tokens: [],
    budgets: [],
    ...wanted,
  };
}

/** Reserves, and says which call it was. */
export async function tryReserve(
  rig: Rig,
  wanted: Wanted,
): Promise<{ readonly callId: string; readonly result: ReserveResult }> {
  const request = requestOf(wanted);
  return { callId: request.callId, result: await rig.counters.reserve(request) };
}

/** @throws Error when it is refused */
export async function granted(rig: Rig, wanted: Wanted): Promise<Granted & { callId: string }> {
  const { callId, result } = await tryReserve(rig, wanted);
  if (!result.granted) throw new Error(`refused: ${JSON.stringify(result)}`);
  return { ...result, callId };
}

/** @throws Error when it is granted */
export async function refused(rig: Rig, wanted: Wanted): Promise<Refused> {
  const { result } = await tryReserve(rig, wanted);
  if (result.granted) throw new Error(`granted: ${JSON.stringify(result)}`);
  return result;
}

export async function settle(
  rig: Rig,
  callId: string,
  used: { readonly tokens?: number; readonly nanodollars?: number },
): Promise<void> {
  rig.counters.settle(callId, { tokens: used.tokens ?? 0, nanodollars: used.nanodollars ?? 0 });
  await rig.settled();
}
