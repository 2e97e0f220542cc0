/**
 * The form of `gateway.yaml`, made of the options' rows and of the forms of what is listed or named.
 * docs/gateway.schema.json is made from it (scripts/write-schema.mjs).
 * Loaded only when there is a file to check: the schema library costs start time.
 */
import { z } from 'zod';
import { keysForm, tagsForm, teamsForm, trustedProxiesForm } from './access-schema.ts';
import { baseOptions } from './base.ts';
import { headerText, orReference, rowsForm } from './option-schema.ts';
import { pricesForm } from './prices-schema.ts';
import {
  clientOptions,
  contentOptions,
  drainOptions,
  hedgeOptions,
  idempotencyOptions,
  responseOptions,
  keepAliveOptions,
  ledgerOptions,
  limitOptions,
  localModelOptions,
  localOptions,
  providerOptions,
  retryOptions,
  routeOptions,
  timeoutOptions,
  traceOptions,
} from './sections.ts';

const headerName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'is no header name');

const timeouts = rowsForm(timeoutOptions).nullish();
const retry = rowsForm(retryOptions).nullish();

const pemFile = z.string().min(1, 'is empty').optional();

const provider = z
  .strictObject({
    ...rowsForm(providerOptions).shape,
    api_key: z
      .union([headerText, z.array(headerText).min(1, 'names no key')])
      .optional()
      .describe(
        "The key, or a list of several, which are called key-1, key-2. Best as references: ${NAME} from the environment or ${file:/path}. Default: the vendor's usual variable.",
      ),
    credentials: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'is letters, digits, . _ and -, at most 63'),
        headerText,
      )
      .optional()
      .describe(
        'Several keys by name, instead of api_key. Each has its own waits and its own state.',
      ),
    headers: z
      .record(headerName, headerText)
      .nullish()
      .describe('Extra request headers. Values may be references.'),
    proxy: headerText
      .optional()
      .describe(
        'http://USER:PASSWORD@HOST:PORT through which the provider is reached, or none. Default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment; loopback is always reached directly.',
      ),
    ca: pemFile.describe(
      'A PEM file of authorities that are trusted for this provider besides the usual ones; relative to this file.',
    ),
    timeouts: timeouts.describe('Time limits of calls to this provider.'),
  })
  .nullable();

const targetText = z
  .string()
  .regex(/^[^/\s]+\/\S+$/, 'a target is provider/model, e.g. openai/gpt-5-mini');

const weightedTarget = z.strictObject({
  target: targetText.describe('provider/model'),
  weight: z
    .number()
    .gt(0, 'must be greater than 0')
    .max(1_000_000, 'must be at most 1000000')
    .optional()
    .describe('Share of the calls under order: weighted. Default 1.'),
});

const route = z.strictObject({
  targets: z
    .array(z.union([targetText.describe('provider/model'), weightedTarget]))
    .min(1, 'needs at least one target')
    .describe('The targets that can answer, tried in the order of `order`.'),
  ...rowsForm(routeOptions).shape,
  retry: retry.describe("What is sent again for this name; before the file's retry."),
  hedge: rowsForm(hedgeOptions)
    .refine(({ after }) => after !== undefined, 'needs after, e.g. { after: 800ms }')
    .nullish()
    .describe(
      'Sends a second request, to the next target, when the first brings nothing in that time. The first answer is taken; both may be billed. Default: never.',
    ),
  timeouts: timeouts.describe("Time limits of calls for this name; before the provider's."),
});

const local = z
  .strictObject({
    ...rowsForm(localOptions).shape,
    models: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?$/, 'is no name of a model'),
        rowsForm(localModelOptions).nullable(),
      )
      .nullish()
      .describe('Settings of single models, by name without local/.'),
  })
  .nullish();

const idempotency = rowsForm(idempotencyOptions)
  .superRefine(({ answer, key, total }, context) => {
    if (answer === undefined) return;
    for (const [name, room] of [
      ['key', key ?? idempotencyOptions.keyBytes.default],
      ['total', total],
    ] as const) {
      if (room === undefined || answer <= room) continue;
      const message = `must not be more than idempotency.${name}: an answer so long would have no room`;
      context.addIssue({ code: 'custom', path: ['answer'], message });
    }
  })
  .nullish();

const webhooks = z
  .array(
    z.strictObject({
      url: z.string().min(1, 'is empty').describe('Where events are posted as JSON.'),
      secret: z
        .string()
        .min(16, 'must have at least 16 characters')
        .describe('Signs each event (x-gateway-signature). Best as a reference: ${NAME}.'),
      events: z
        .array(z.enum(['budget', 'credential', 'target', 'store', 'overload']))
        .min(1, 'names nothing')
        .optional()
        .describe('The groups of events that are sent there. Default: all.'),
    }),
  )
  .max(10, 'has more than 10 entries')
  .nullish();

const traceText = z.string().min(1, 'is empty').max(1024, 'has more than 1024 characters');

const traces = z
  .strictObject({
    endpoint: z
      .string()
      .min(1, 'is empty')
      .optional()
      .describe(
        'The collector: OTLP over HTTP with protobuf, e.g. http://127.0.0.1:4318; /v1/traces is added where no path is given. Default: OTEL_EXPORTER_OTLP_ENDPOINT; without either there are no traces.',
      ),
    headers: z
      .record(headerName, headerText)
      .nullish()
      .describe('Request headers, e.g. a token of the collector. Values may be references.'),
    ca: pemFile.describe(
      'A PEM file of authorities that are trusted for the collector besides the usual ones.',
    ),
    cert: pemFile.describe(
      "A PEM file of the gateway's own certificate, for a collector that asks for one.",
    ),
    key: pemFile.describe('The PEM file of its key.'),
    attributes: z
      .record(z.string().min(1).max(255), traceText)
      .nullish()
      .describe('Resource attributes of the spans, e.g. deployment.environment.name: production.'),
    ...rowsForm(traceOptions).shape,
    service: traceText.optional().describe('service.name of the spans. Default model-gateway.'),
  })
  .nullish();

/** The addresses are read in storage.ts: their messages must not quote a password. */
const storage = z
  .union([
    z.string().describe('The store, or the store and the counters with a space between them.'),
    z.array(z.string()).min(1, 'names no book').max(2, 'takes the book and the counters'),
    z.strictObject({
      book: z
        .string()
        .meta({ pattern: `^(sqlite|memory|postgres(ql)?://.+)$${orReference}` })
        .describe('sqlite, memory or postgres://USER:PASSWORD@HOST:5432/DATABASE'),
      counters: z
        .string()
        .meta({ pattern: `^(redis|valkey)s?://.+$${orReference}` })
        .describe(
          'redis://USER:PASSWORD@HOST:6379/0, rediss:// over TLS. Default: row locks in PostgreSQL.',
        )
        .optional(),
      tenant: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'is letters, digits, . _ and -, at most 63')
        .optional()
        .describe(
          'Keeps the counters of several installations in one Redis apart. Default default.',
        ),
      on_store_loss: z
        .enum(['closed', 'open'])
        .optional()
        .describe(
          'Calls with a budget while no server counts: closed (default) refuses them; open admits up to $1 for each budget and gateway.',
        ),
    }),
  ])
  .optional();

const clients = z
  .strictObject({
    ...rowsForm(clientOptions).shape,
    keep_alive: z
      .union([rowsForm(keepAliveOptions).shape.chat.unwrap(), rowsForm(keepAliveOptions)])
      .optional()
      .describe(
        'A stream that was silent for this long, from the start of the call on, gets a sign of life. Default 15s; never = not at all.',
      ),
  })
  .nullish();

/** The whole file. */
export const configForm = z
  .strictObject({
    ...rowsForm(baseOptions).shape,
    providers: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'a provider name is letters, digits, . _ and -'),
        provider,
      )
      .nullish()
      .describe('Providers of models. A known vendor needs only {}.'),
    models: z
      .record(
        z.string().regex(/^\S{1,256}$/, 'a model name has no spaces and at most 256 characters'),
        z.union([targetText.describe('An alias of provider/model.'), route]),
      )
      .nullish()
      .describe('Names that clients can ask for, besides provider/model itself.'),
    local: local.describe('Models that the embedded engine runs, called local/NAME.'),
    prices: pricesForm,
    keys: keysForm,
    teams: teamsForm,
    tags: tagsForm,
    trusted_proxies: trustedProxiesForm,
    limits: rowsForm(limitOptions)
      .nullish()
      .describe('Bounds of the whole gateway (docs/operator/overload.md).'),
    timeouts: timeouts.describe(
      'Time limits of all calls; those of a provider or a name come first.',
    ),
    retry: retry.describe('What is sent again after a failure (docs/user/retries.md).'),
    clients: clients.describe(
      'What clients are sent while they wait, and how long the gateway waits for them.',
    ),
    drain: rowsForm(drainOptions).nullish().describe('How a gateway stops.'),
    ledger: rowsForm(ledgerOptions).nullish().describe('How long calls are kept, and how durably.'),
    content: rowsForm(contentOptions)
      .nullish()
      .describe('What is kept of calls of keys with log_content (docs/user/content.md).'),
    responses: rowsForm(responseOptions)
      .nullish()
      .describe('What is kept of responses that clients may refer to (docs/user/responses.md).'),
    idempotency: idempotency.describe(
      'What is kept of calls with an Idempotency-Key (docs/user/idempotency.md).',
    ),
    webhooks: webhooks.describe(
      'Where events are sent: budgets that are used up, failures and recoveries (docs/operator/webhooks.md).',
    ),
    traces: traces.describe(
      'Where spans of calls are sent (docs/operator/traces.md). Read at start only.',
    ),
    storage: storage.describe(
      'Where keys, ledger and counters are kept: sqlite (default) in data_dir, memory, or servers that several gateways share (docs/operator/storage.md).',
    ),
  })
  .describe('Configuration of Model Gateway (gateway.yaml).');

/** The file as it was checked: durations in ms, sizes in bytes. */
export type ConfigFile = z.output<typeof configForm>;

/** The published JSON Schema, for editors. */
export function publishedSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(configForm, { io: 'input', target: 'draft-7' });
}

/** The same as the text of `docs/gateway.schema.json`. */
export function publishedSchemaText(): string {
  return `${JSON.stringify({ title: 'gateway.yaml', ...publishedSchema() }, null, 2)}\n`;
}
