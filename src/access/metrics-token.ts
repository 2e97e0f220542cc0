/**
 * The secret of metrics scrapers, which can do nothing else: a monitoring system needs no token that can create
 * keys. Without one, only the admin token opens the metrics.
 */
import type { Secret } from '../core/secret.ts';
import { TokenCheck } from './admin-token.ts';
import { requireUsableSecret } from './digest.ts';
import { requireNotGuessable } from './guessable.ts';
import type { KeyRing } from './keys.ts';

export const metricsTokenVariable = 'MODEL_GATEWAY_METRICS_TOKEN';

export interface MetricsTokenParts {
  /** A key of the data plane must not open anything here (S9). */
  readonly keys: Pick<KeyRing, 'holds'>;
  readonly isAdminToken: (text: string) => boolean;
}

/** @throws Error when the secret cannot serve. */
export function metricsToken(
  secret: Secret,
  { keys, isAdminToken }: MetricsTokenParts,
): TokenCheck {
  const text = secret.reveal();
  requireUsableSecret(metricsTokenVariable, text);
  requireNotGuessable(metricsTokenVariable, text);
  if (keys.holds(secret)) {
    throw new Error(`${metricsTokenVariable} must not be a key of the data plane.`);
  }
  if (isAdminToken(text)) {
    throw new Error(
      `${metricsTokenVariable} must not be the admin token: unset it, and the admin token opens /metrics.`,
    );
  }
  return TokenCheck.of(secret);
}
