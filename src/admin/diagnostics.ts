/** `/api/diagnostics`: the state of the gateway for troubleshooting, in one answer without secrets. */
import { z } from 'zod';
import { withoutKeys } from '../core/secret.ts';
import { tellEvent } from '../features/events.ts';
import { type Json, type JsonObject, isObject } from '../json/value.ts';
import type { EventRouteDeps } from './events.ts';
import type { ConfigRouteDeps } from './operations.ts';
import type { ProviderRouteDeps } from './providers.ts';
import { AdminError, type AdminRoute, dateText, readInput, time } from './route.ts';

const bytes = z.number().int().nullable().describe('Bytes; null: not known.');
const ms = z.number().nullable().describe('Milliseconds; null: none yet.');

/** What the running gateway says of itself. */
const state = {
  version: z.string(),
  node: z.string(),
  platform: z.string(),
  pid: z.number().int(),
  workers: z.number().int(),
  started_at: time,
  uptime_s: z.number().int(),
  url: z.string(),
  admin_url: z.string(),
  data: z.strictObject({
    directory: z.string(),
    bytes: bytes.describe('Of all files; counted once a minute.'),
    free_bytes: bytes.describe('Left on its disk.'),
    total_bytes: bytes,
  }),
  store: z.strictObject({
    kind: z.string(),
    server: z.string().nullable().describe('Without its password; null: local.'),
    schema: z.number().int(),
    up: z.boolean(),
    reason: z.string().nullable(),
    read_ms: ms.describe('A read that was made for this answer; null: it failed.'),
    last_write_ms: ms.describe('The last batch of finished calls; null: none yet.'),
    waiting_ms: z.number().describe('How long rows have been waiting for a write.'),
    queued: z.number().int(),
    spooled: z.number().int(),
    saved: z.number().int(),
    failures: z.number().int(),
    refused: z.number().int(),
  }),
  counters: z.strictObject({
    kind: z.enum(['local', 'postgres', 'redis']),
    server: z.string().nullable(),
    up: z.boolean(),
  }),
  process: z.strictObject({
    rss_bytes: z.number().int(),
    heap_bytes: z.number().int(),
    heap_limit_bytes: z.number().int(),
    memory_share: z.number(),
    loop_delay_ms: z.number(),
    pressure: z.number().int().describe('0 to 3.'),
  }),
  calls: z.strictObject({ live: z.number().int(), streams: z.number().int() }),
  engines: z.array(
    z.strictObject({ model: z.string(), phase: z.string(), reason: z.string().nullable() }),
  ),
  certificates: z.array(
    z.strictObject({
      plane: z.enum(['data', 'admin']),
      subject: z.string(),
      valid_to: time,
      days_left: z.number().int(),
    }),
  ),
  last_reload: z
    .strictObject({
      at: time,
      applied: z.boolean(),
      problems: z.array(z.string()),
      needs_restart: z.array(z.string()),
    })
    .nullable()
    .describe('Null: none since the start.'),
  tallies: z.record(z.string(), z.number()).describe('The numbers of /api/status.'),
};

const stateForm = z.strictObject(state);
/** Of the running gateway. */
export type GatewayState = z.output<typeof stateForm>;

export interface DiagnosticsRouteDeps extends ConfigRouteDeps, EventRouteDeps, ProviderRouteDeps {
  /** Absent where no gateway runs. */
  diagnostics?(): Promise<GatewayState>;
}

const answer = z.strictObject({
  at: time.describe('Clock of the gateway.'),
  ...state,
  providers: z.array(
    z.strictObject({
      id: z.string(),
      address: z.string(),
      there: z.boolean(),
      health: z.string(),
    }),
  ),
  events: z
    .array(z.strictObject({ at: time, type: z.string(), severity: z.string(), text: z.string() }))
    .describe('The newest 50.'),
  settings: z.array(z.strictObject({ path: z.string(), value: z.string(), origin: z.string() })),
  warnings: z.array(z.string()),
});

const query = z.strictObject({
  file: z.enum(['1'], 'must be 1').optional().describe('1: as a file to save.'),
});

const maxEvents = 50;

export function diagnosticsRoutes(deps: DiagnosticsRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/diagnostics',
      about: {
        summary: 'Show the state of the gateway, its stores and providers, without secrets.',
        query,
        answer,
      },
      run: async (request) => {
        const { file } = readInput(query, request.query);
        if (deps.diagnostics === undefined) throw new AdminError(409, 'No gateway runs here.');
        const at = dateText(deps.clock.wall());
        const state = await deps.diagnostics();
        // A folder may have a name like a key, and must be shown unmasked.
        const { data } = state;
        const body = { at, ...masked({ ...state, ...(await around(deps)) }), data };
        if (file === undefined) return { status: 200, body };
        const content = Buffer.from(JSON.stringify(body, null, 2));
        const fileName = `model-gateway-diagnostics-${at.replace(/[^0-9TZ]/g, '')}.json`;
        return { status: 200, body, fileName, bytes: { type: 'application/json', content } };
      },
    },
  ];
}

async function around(deps: DiagnosticsRouteDeps): Promise<JsonObject> {
  const healthOf = await deps.providerHealth?.();
  const { origins, warnings } = deps.config();
  return {
    providers: deps.providers().map(({ id, address, there }) => ({
      id,
      address,
      there,
      health: healthOf?.(id) ?? 'unknown',
    })),
    events: (deps.events?.list() ?? []).slice(0, maxEvents).map((kept) => {
      const { severity, text } = tellEvent(kept);
      return { at: kept.created_at, type: kept.type, severity, text };
    }),
    settings: origins.map(({ path, value, origin }) => ({ path, value, origin })),
    warnings: [...warnings],
  };
}

/** Reasons and events quote servers, so texts that look like a key are masked there, too. */
function maskedTexts(value: Json): Json {
  if (typeof value === 'string') return withoutKeys(value);
  if (Array.isArray(value)) return value.map((each) => maskedTexts(each));
  return isObject(value) ? masked(value) : value;
}

function masked(value: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, maskedTexts(each ?? null)]),
  );
}
