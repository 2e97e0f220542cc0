/** The state of a target or a credential, in the gateway's own words. */
import type { ReactElement } from 'react';
import { Badge, type Tone } from '../../components/badge.tsx';
import type { Model } from './api.ts';

/** `unknown` means that nothing is known against it. */
export function HealthBadge({ health }: { readonly health: string }): ReactElement {
  return <Badge tone={toneOf(health)} text={health === 'unknown' ? 'healthy' : health} />;
}

function toneOf(health: string): Tone {
  if (/^(failed|out\b)/.test(health)) return 'bad';
  if (/^(cooling|avoided|failing|being tried|to be tried|starting|loading)/.test(health)) return 'warn';
  return /^(unknown|ok|ready|idle|running)/.test(health) ? 'good' : 'neutral';
}

/** The worst of a model's targets; a model without trouble has none to tell. */
export function worstHealth({ targets }: Model): string {
  const order: readonly Tone[] = ['bad', 'warn', 'neutral', 'good'];
  const sorted = targets.toSorted(
    (a, b) => order.indexOf(toneOf(a.health)) - order.indexOf(toneOf(b.health)),
  );
  return sorted[0]?.health ?? 'unknown';
}
