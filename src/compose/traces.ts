/** Part of the composition root: exports spans if `traces:` or OTEL_… names a collector. */
import type { TraceSettings } from '../config/settings.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import type { Call, Receipt } from '../core/call.ts';
import type { SpanTracer } from '../observe/traces/tracer.ts';
import { settledSpans } from '../observe/traces/call-spans.ts';
import type { CallRow } from '../store/calls.ts';

interface TraceDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly version: string;
}

/** How long a stop waits for the collector. */
export const lastSpansMs = 3000;

/** Undefined = no traces. The packages are loaded only where there are some. */
export async function openTracer(
  settings: TraceSettings | undefined,
  { log, clock, newId, version }: TraceDeps,
): Promise<SpanTracer | undefined> {
  if (settings === undefined) return undefined;
  const [{ SpanTracer: Tracer }, { OtlpSender }] = await Promise.all([
    import('../observe/traces/tracer.ts'),
    import('../observe/traces/otlp.ts'),
  ]);
  const { url, headers, timeoutMs, compression, sample, follow, content, resource } = settings;
  const { sendEveryMs, tls } = settings;
  const sender = await OtlpSender.open({
    url,
    headers: Object.fromEntries(headers),
    timeoutMs,
    compression,
    ...(tls === undefined ? {} : { tls: { ...tls, key: tls.key?.reveal() } }),
    resource: {
      'service.version': version,
      'service.instance.id': newId('gw_'),
      ...resource,
    },
    version,
  });
  const sampling = { ratio: sample, followsParent: follow, content };
  return new Tracer({ sender, log, now: () => clock.now(), sampling, sendEveryMs });
}

/** Records the spans of a call that is settled. */
export function recordSpans(
  tracer: SpanTracer | undefined,
  { call, receipt, row }: { readonly call: Call; readonly receipt: Receipt; readonly row: CallRow },
): void {
  if (tracer === undefined) return;
  for (const span of settledSpans(call, receipt, row)) tracer.record(span);
}
