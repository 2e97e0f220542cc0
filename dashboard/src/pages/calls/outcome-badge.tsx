import type { ReactElement } from 'react';
import type { Call } from '../../api/calls.ts';
import { limitName } from '../../api/errors.ts';
import { Badge, type Tone } from '../../components/badge.tsx';

type Ended = Pick<Call, 'outcome' | 'status' | 'error' | 'fault' | 'reason' | 'limit' | 'message'>;

/**
 * How a call ended: the status that the client saw, and why where it failed: `400 price_unknown`,
 * `429 key request limit`. What a limit of the gateway refused is no fault, and has another colour.
 */
export function OutcomeBadge({ call }: { call: Ended }): ReactElement {
  const { outcome, status, message } = call;
  const word = outcome === 'failed' ? whyFailed(call) : outcome;
  const text = status === null ? word : `${status} ${word}`;
  return (
    <span title={message ?? undefined}>
      <Badge tone={toneOf(call)} text={text} />
    </span>
  );
}

function toneOf({ outcome, fault }: Ended): Tone {
  if (outcome === 'ok') return 'good';
  return outcome === 'canceled' || fault === 'limit' ? 'warn' : 'bad';
}

function whyFailed({ error, fault, reason, limit }: Ended): string {
  const refusedBy = limit === null ? undefined : limitName(limit);
  if (refusedBy !== undefined) return `${refusedBy.holder} ${refusedBy.kind}`;
  const word = reason ?? error ?? 'failed';
  return fault === 'provider' && error === 'rate_limited' ? `provider: ${word}` : word;
}
