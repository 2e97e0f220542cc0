/** `limits:` of the file: bounds of the whole gateway (docs/overload.md). */
import type { ConfigIssue } from './config-error.ts';
import type { CheckedFile } from './config-file.ts';
import { durationText, sizeText } from './quantity.ts';
import { defaults, type LimitSettings, type OriginLine } from './settings.ts';

interface Parts {
  /** Worker processes: each gets its part of what is bounded for all of them, which is one at least. */
  readonly workers: number;
  report(issue: ConfigIssue): void;
}

/** The bounds as they hold for all workers together; what cannot be shared out is reported. */
export function readLimits(file: CheckedFile | undefined, parts: Parts): LimitSettings {
  if (file !== undefined) checkParts(file, parts);
  const form = file?.content.limits ?? {};
  const usual = defaults.limits;
  return {
    bodyBytes: form.body ?? usual.bodyBytes,
    streams: form.streams ?? usual.streams,
    memoryBytes: form.memory,
    connections: form.connections,
    keyShare: form.key_share === undefined ? usual.keyShare : form.key_share / 100,
    loopDelayMs: form.loop_delay ?? usual.loopDelayMs,
    bodyRate: form.body_rate ?? usual.bodyRate,
    badKeys: form.bad_keys ?? usual.badKeys,
  };
}

/** Reports bounds of which some worker would have no part. */
function checkParts(file: CheckedFile, { workers, report }: Parts): void {
  for (const name of ['streams', 'connections'] as const) {
    if ((file.content.limits?.[name] ?? workers) >= workers) continue;
    const message = `must be at least ${workers}, one for each of the workers`;
    report(file.issue(['limits', name], message));
  }
}

export function limitOrigins(
  limits: LimitSettings,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  const form = file?.content.limits ?? {};
  const line = (key: keyof typeof form, value: string): OriginLine => ({
    path: `limits.${key}`,
    value,
    origin: file === undefined || form[key] === undefined ? 'default' : file.where(['limits', key]),
  });
  const { memoryBytes, connections } = limits;
  return [
    line('body', sizeText(limits.bodyBytes)),
    line('streams', String(limits.streams)),
    line('memory', memoryBytes === undefined ? 'what there is' : sizeText(memoryBytes)),
    line('connections', connections === undefined ? 'what the system allows' : String(connections)),
    line('key_share', String(Math.round(limits.keyShare * 100))),
    line('loop_delay', durationText(limits.loopDelayMs)),
    line('body_rate', sizeText(limits.bodyRate)),
    line('bad_keys', String(limits.badKeys)),
  ];
}
