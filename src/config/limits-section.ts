/** `limits:` of the file: bounds of the whole gateway (docs/overload.md). */
import type { CheckedFile } from './config-file.ts';
import { durationText, sizeText } from './quantity.ts';
import { defaults, type LimitSettings, type OriginLine } from './settings.ts';

export function readLimits(file: CheckedFile | undefined): LimitSettings {
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
