/** The state of a target or a credential: healthy, degraded, down or unknown, with the reason behind it. */
import type { ReactElement } from 'react';
import { Badge, type Tone } from '../../components/badge.tsx';
import type { Model } from '../../api/models.ts';

export function HealthBadge({ health }: { readonly health: string }): ReactElement {
  return <Badge tone={toneOf(health)} text={health} />;
}

function toneOf(health: string): Tone {
  if (health.startsWith('down')) return 'bad';
  if (health.startsWith('degraded')) return 'warn';
  return health === 'healthy' ? 'good' : 'neutral';
}

/** The worst of a model's targets; a healthy model has none. */
export function worstHealth({ targets }: Model): string {
  const order: readonly Tone[] = ['bad', 'warn', 'neutral', 'good'];
  const sorted = targets.toSorted(
    (a, b) => order.indexOf(toneOf(a.health)) - order.indexOf(toneOf(b.health)),
  );
  return sorted[0]?.health ?? 'unknown';
}
