/** Part of the composition root: models and their state, as the operator is shown them. */
import type { JsonObject } from '../core/conversation.ts';
import type { DeadCredential, TargetHealth } from '../gateway/health.ts';
import type { LocalModelStatus } from '../providers/local.ts';
import type { ModelListing } from '../providers/registry.ts';
import type { AdminModel } from '../server/admin.ts';
import { localModelJson } from '../server/models.ts';

export interface TargetStates {
  readonly engines: readonly LocalModelStatus[];
  readonly health: Pick<TargetHealth, 'describe'>;
}

/** A model as the admin API shows it. */
export function adminModel(
  { id, targets, credentials, local }: ModelListing,
  { engines, health }: TargetStates,
): AdminModel {
  return {
    id,
    targets: targets.map((target) => ({
      target,
      health:
        health.describe(target) ?? healthOf(engines.find(({ name }) => `local/${name}` === target)),
      ...credentialStates(credentials?.[target], (name) => health.describe(target, name)),
    })),
    ...(local === undefined ? {} : { local: localModelJson(local) }),
  };
}

function healthOf(engine: LocalModelStatus | undefined): string {
  if (engine === undefined) return 'unknown';
  return engine.phase === 'failed' ? `failed: ${engine.reason ?? ''}` : engine.phase;
}

function credentialStates(
  names: readonly string[] | undefined,
  describe: (name: string) => string | undefined,
): Pick<AdminModel['targets'][number], 'credentials'> {
  if (names === undefined) return {};
  return { credentials: names.map((name) => ({ name, health: describe(name) ?? 'unknown' })) };
}

/** As webhooks send it. */
export function deadCredentialJson(dead: DeadCredential): JsonObject {
  return {
    provider: dead.provider,
    credential: dead.credential ?? null,
    error: dead.error,
    status: dead.status ?? null,
    retry_after_s: dead.retryAfterMs / 1000,
  };
}
