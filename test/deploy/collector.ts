/** The OpenTelemetry collector, if it was built or installed. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../support/server-process.ts';

/** In `build`, where the builder of collector.yaml writes it, or installed. */
export function findCollector(): string | undefined {
  const built = join(import.meta.dirname, '../../build/otelcol');
  return findProgram(['otelcol', 'otelcol-contrib'], [built, join(homedir(), 'go/bin')]);
}

/** Says how to get it. */
export const noCollector =
  'otelcol is not on this machine (go run go.opentelemetry.io/collector/cmd/builder@v0.132.0 --config test/deploy/collector.yaml)';
