/**
 * The policies that keys share: those of teams and tags, all in memory. What the config declares goes
 * before what the store has under the same name, and cannot be changed here.
 */
import type { HolderKind, Policy, SharedPolicy } from '../core/policy.ts';

/** Whose policy it is: for a key its public id. */
export interface Holder {
  readonly kind: HolderKind;
  readonly name: string;
}

/** A policy that counts for a call, and whose it is: counters are per holder. */
export interface HeldPolicy {
  readonly holder: Holder;
  readonly policy: Policy;
}

export type SharedKind = SharedPolicy['kind'];

/** Where principals look up what holds for their team and tags. */
export interface PolicySource {
  /** Rises with every change, so that a look-up can be kept until then. */
  readonly version: number;
  find(kind: SharedKind, name: string): Policy | undefined;
}

/** For keys whose team and tags have no policies. */
export const noPolicies: PolicySource = { version: 0, find: () => undefined };
