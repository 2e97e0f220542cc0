/**
 * The form of `gateway.yaml`. `docs/gateway.schema.json` is made from it (scripts/write-schema.mjs).
 * Loaded only when there is a file to check: the schema library costs start time.
 */
import { z } from 'zod';
import { keysForm, tagsForm, teamsForm, trustedProxiesForm } from './access-form.ts';
import { headerText } from './header-form.ts';
import { contentForm } from './content-form.ts';
import { idempotencyForm } from './idempotency-form.ts';
import { ledgerForm } from './ledger-form.ts';
import { limitsForm } from './limits-form.ts';
import { whole } from './number-form.ts';
import { pricesForm } from './prices-form.ts';
import { logLevels, mostWorkers } from './settings.ts';
import {
  affinityForm,
  apiKeyForm,
  credentialsForm,
  hedgeForm,
  orderForm,
  retryForm,
} from './routing-form.ts';
import { tracesForm } from './traces-form.ts';
import { webhooksForm } from './webhooks-form.ts';
import { readSize, sizePattern } from './quantity.ts';
import { clientsForm, duration, orReference, timeoutsForm } from './time-form.ts';

/** The message of a planned value. */
export const notYet = 'is not available yet';

/** Values that are planned: the message says so instead of calling them wrong. */
function later(planned: readonly string[]) {
  return {
    error: ({ input }: { readonly input?: unknown }) =>
      typeof input === 'string' && planned.some((name) => input.split(':')[0] === name)
        ? notYet
        : undefined,
  };
}

const headers = z
  .record(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'is no header name'), headerText)
  .nullish()
  .describe('Extra request headers. Values may be references.');

const serverTools = z
  .boolean()
  .optional()
  .describe(
    'Whether clients of the other format may use web search that the provider runs and charges for. Default false: such tools are refused, or left out where the call can do without.',
  );

const provider = z
  .strictObject({
    dialect: z
      .enum(
        ['openai-chat', 'anthropic-messages'],
        later(['openai-responses', 'gemini', 'bedrock-converse']),
      )
      .optional()
      .describe('The wire format that the address speaks. Preset for known vendors.'),
    base_url: z
      .string()
      .optional()
      .describe('Address of the API, e.g. http://vllm.internal:8000/v1. Preset for known vendors.'),
    api_key: apiKeyForm,
    credentials: credentialsForm,
    headers,
    server_tools: serverTools,
    like: z
      .string()
      .optional()
      .describe(
        'The known vendor or engine that answers at this address, e.g. vllm: its ways hold. Preset for known vendors.',
      ),
    betas: z
      .array(z.string().regex(/^[A-Za-z0-9._-]+$/, 'is no name of a beta'))
      .optional()
      .describe(
        'Values of anthropic-beta that this address takes; others are not sent on. Default: all are. A fast-mode-… among them opens the fast tier to chat clients.',
      ),
    region: z
      .string()
      .min(1, 'is empty')
      .optional()
      .describe(
        'Where this openai-chat provider promises to run its models: what inference_geo may ask for.',
      ),
    proxy: headerText
      .optional()
      .describe(
        'http://USER:PASSWORD@HOST:PORT through which it is reached, or none. Default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment; loopback is always reached directly.',
      ),
    ca: z
      .string()
      .min(1, 'is empty')
      .optional()
      .describe(
        'A PEM file of authorities that are trusted for this provider besides the usual ones; relative to this file.',
      ),
    on_abort: z
      .enum(['abort', 'drain'])
      .optional()
      .describe(
        'What becomes of a stream whose client leaves in the middle: abort (default) closes it; drain reads it to its end for the usage it reports, where the provider charges for all of it anyway.',
      ),
    trace_context: z
      .boolean()
      .optional()
      .describe(
        'Whether it is sent traceparent and tracestate, so that its own spans join the trace (docs/traces.md). Default false.',
      ),
    timeouts: timeoutsForm.describe('Time limits of calls to this provider.'),
  })
  .nullable();

const targetForm = /^[^/\s]+\/\S+$/;
const targetText = z
  .string()
  .regex(targetForm, 'a target is provider/model, e.g. openai/gpt-5-mini');

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
    .describe('Who can answer, tried in the order of `order`.'),
  order: orderForm,
  affinity: affinityForm,
  retry: retryForm.describe('What is asked again through this name; before that of the file.'),
  hedge: hedgeForm,
  strict: z
    .boolean()
    .optional()
    .describe(
      'Refuse a request of which a translation would drop or change anything. Default false: it is noted in x-gateway-notes.',
    ),
  server_tools: serverTools,
  timeouts: timeoutsForm.describe("Time limits of calls through this name; before the provider's."),
});

const drain = z
  .strictObject({
    wait: duration(
      'How long calls are still taken on SIGTERM while /readyz says 503, so that balancers turn away; 0s = not at all. Default 5s where /readyz was asked for in the last minute, else 0s.',
      0,
    ),
    limit: duration(
      'How long running calls may go on after that, before they are cut. Default 2m.',
    ),
  })
  .nullish();

/** The idle time after which something ends; `never` is 0. */
function idle(description: string) {
  return z
    .union([z.literal('never').transform(() => 0), duration(description)])
    .optional()
    .describe(description);
}

const localModel = z
  .strictObject({
    path: z
      .string()
      .min(1, 'is empty')
      .optional()
      .describe('A GGUF file elsewhere; relative to this file. Default NAME.gguf in models_dir.'),
    sha256: z
      .string()
      .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hexadecimal digits')
      .optional()
      .describe('The engine refuses a file with another hash. Default: what pull has noted.'),
    context: whole(128, 16_777_216).describe(
      'Tokens of prompt and answer together, of each call. Default: what the model was trained on, at most 8192.',
    ),
    threads: whole(1, 1024).describe('Default: all cores but one; 1 for models below 64 MiB.'),
    parallel: whole(1, 64).describe('Calls that generate at the same time. Default 4.'),
    idle_unload: idle('Leaves memory after so long without a call; never = stays.'),
  })
  .nullable();

const local = z
  .strictObject({
    models_dir: z
      .string()
      .min(1, 'is empty')
      .optional()
      .describe('Where model files lie and pull puts them. Default models in data_dir.'),
    idle_unload: idle('For models that do not say it themselves. Default 10m.'),
    hang: duration(
      'An engine without a sign of life, or without a token while a call waits for one, is ended. Default 2m.',
    ),
    max_loaded: whole(1, 100).describe('Models in memory at the same time. Default 3.'),
    memory: z
      .union([
        z.string().meta({ pattern: sizePattern + orReference, examples: ['8GiB'] }),
        z.number().int().meta({ description: 'Bytes' }),
      ])
      .transform((value, context) => {
        const bytes = typeof value === 'number' ? value : readSize(value);
        if (bytes !== undefined && bytes >= 1) return bytes;
        context.addIssue({ code: 'custom', message: 'is no size (8GiB, 500MB, bytes)' });
        return z.NEVER;
      })
      .optional()
      .describe('What the files of loaded models may take together. Default 60 % of the memory.'),
    models: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?$/, 'is no name of a model'),
        localModel,
      )
      .nullish()
      .describe('How single models are run, by their names without local/.'),
  })
  .nullish();

const bookText = z
  .string()
  .meta({ pattern: `^(sqlite|memory|postgres(ql)?://.+)$${orReference}` })
  .describe('sqlite, memory or postgres://USER:PASSWORD@HOST:5432/DATABASE');
const countersText = z
  .string()
  .meta({ pattern: `^(redis|valkey)s?://.+$${orReference}` })
  .describe(
    'redis://USER:PASSWORD@HOST:6379/0, rediss:// over TLS. Default: row locks in PostgreSQL.',
  );

/** The addresses themselves are read in storage-section.ts: their messages must not quote a password. */
const storage = z
  .union([
    z.string().describe('The book, or the book and the counters with a space between them.'),
    z.array(z.string()).min(1, 'names no book').max(2, 'takes the book and the counters'),
    z.strictObject({
      book: bookText,
      counters: countersText.optional(),
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
          'Calls with a budget while neither server counts: closed (default) refuses them, open admits them up to $1 a budget and gateway.',
        ),
    }),
  ])
  .optional();

/** The whole file. */
export const configForm = z
  .strictObject({
    listen: z
      .string()
      .optional()
      .describe('Data plane: HOST:PORT, :PORT (loopback) or [::1]:PORT. Default 127.0.0.1:8686.'),
    admin_listen: z
      .string()
      .optional()
      .describe('Admin plane (dashboard, admin API, metrics). Default 127.0.0.1:8687.'),
    admin_public: z
      .boolean()
      .optional()
      .describe(
        'Whether admin_listen may be an address that other machines reach. Nothing encrypts it: put a TLS proxy before it. Default false.',
      ),
    data_dir: z
      .string()
      .min(1, 'is empty')
      .optional()
      .describe('Keys and ledger; relative to this file. Default .model-gateway where it starts.'),
    log_level: z.enum(logLevels).optional().describe('Default info.'),
    workers: z
      .number()
      .int('must be a whole number')
      .min(1, 'must be at least 1')
      .max(mostWorkers, `must be at most ${mostWorkers}`)
      .optional()
      .describe('Processes that serve calls, each on a core of its own. Default 1.'),
    providers: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'a provider name is letters, digits, . _ and -'),
        provider,
      )
      .nullish()
      .describe('Addresses that answer. A known vendor needs no more than {}.'),
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
    limits: limitsForm,
    timeouts: timeoutsForm.describe(
      'Time limits of all calls, where nothing nearer says otherwise.',
    ),
    retry: retryForm.describe('What is asked again after a failure (docs/retries.md).'),
    clients: clientsForm.describe(
      'What clients are told while they wait, and how long they are waited for.',
    ),
    drain: drain.describe('How a gateway stops.'),
    ledger: ledgerForm,
    content: contentForm,
    idempotency: idempotencyForm,
    webhooks: webhooksForm,
    traces: tracesForm,
    storage: storage.describe(
      'Where keys, ledger and counters are kept: sqlite (default) in data_dir, memory, or servers that several gateways share (docs/storage.md).',
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
