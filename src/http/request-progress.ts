/** What is known of a request while it is read. */
import type { Principal } from '../access/principal.ts';
import type { ClientDialect, RequestHead } from '../core/dialect.ts';
import type { CallTrace } from '../core/trace.ts';
import type { WatchedCall } from '../features/content-log/watched-call.ts';
import type { BodyShare } from './overload/body-budget.ts';

/** A call as far as it was read, for the row of its refusal. */
export interface RequestProgress {
  readonly principal: Principal;
  readonly dialect: ClientDialect;
  readonly trace: CallTrace | undefined;
  head: RequestHead | undefined;
  tags: readonly string[];
  /** What its body holds of the memory for bodies. */
  body: BodyShare | undefined;
  /** Id of a long body in the worker thread. */
  longBody?: number;
  /** Absent unless the key's content is logged. */
  content: WatchedCall | undefined;
}

export function newRequestProgress(
  principal: Principal,
  dialect: ClientDialect,
  trace?: CallTrace,
): RequestProgress {
  return {
    principal,
    dialect,
    trace,
    head: undefined,
    tags: [],
    body: undefined,
    content: undefined,
  };
}
