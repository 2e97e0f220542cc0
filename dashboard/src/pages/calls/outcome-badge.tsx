import type { ReactElement } from 'react';
import type { Call } from '../../api/calls.ts';
import { Badge, type Tone } from '../../components/badge.tsx';

const tones: { readonly [outcome: string]: Tone } = { ok: 'good', failed: 'bad', canceled: 'warn' };

/** How a call ended: the status that the client saw, and why where it failed: `404 model_not_found`. */
export function OutcomeBadge({
  call: { outcome, status, error },
}: {
  call: Pick<Call, 'outcome' | 'status' | 'error'>;
}): ReactElement {
  const word = outcome === 'failed' ? (error ?? outcome) : outcome;
  return (
    <Badge tone={tones[outcome] ?? 'neutral'} text={status === null ? word : `${status} ${word}`} />
  );
}
