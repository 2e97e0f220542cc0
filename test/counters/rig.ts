/** What the suite needs of a kind of counters: a clock that it can move, and nothing left over. */
import type {
  Counters,
  Draw,
  DrawResult,
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

export type Wanted = Partial<Draw>;

export function drawOf(wanted: Wanted): Draw {
  return {
    callId: fresh('call_'),
    concurrent: [],
    requests: [],
    tokens: [],
    budgets: [],
    ...wanted,
  };
}

/** Draws, and says which call it was. */
export async function tryDraw(
  rig: Rig,
  wanted: Wanted,
): Promise<{ readonly callId: string; readonly result: DrawResult }> {
  const draw = drawOf(wanted);
  return { callId: draw.callId, result: await rig.counters.draw(draw) };
}

/** @throws Error when it is refused */
export async function granted(rig: Rig, wanted: Wanted): Promise<Granted & { callId: string }> {
  const { callId, result } = await tryDraw(rig, wanted);
  if (!result.granted) throw new Error(`refused: ${JSON.stringify(result)}`);
  return { ...result, callId };
}

/** @throws Error when it is granted */
export async function refused(rig: Rig, wanted: Wanted): Promise<Refused> {
  const { result } = await tryDraw(rig, wanted);
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
