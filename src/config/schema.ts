/**
 * The form of `gateway.yaml`, made of the options' rows and of the forms of what is listed or named.
 * docs/gateway.schema.json is made from it (scripts/write-schema.mjs).
 * Loaded only when there is a file to check: the schema library costs start time.
 */
import { z } from 'zod';
import { decimalText, isBelowUnit, scaledDecimal } from '../core/money.ts';
import {
  keysForm,
  label,
  modelGlob,
  tagsForm,
  teamsForm,
  trustedProxiesForm,
} from './access-schema.ts';
import { baseOptions } from './base.ts';
import {
  type Form,
  type Kind,
  type Option,
  type Options,
  defaultText,
  durationPattern,
  readDuration,
  readSize,
  readSpan,
  sizePattern,
  sizeText,
  spanPattern,
  spanText,
} from './options.ts';
import {
  clientOptions,
  cloudOptions,
  contentOptions,
  drainOptions,
  hedgeOptions,
  idempotencyOptions,
  keepAliveOptions,
  ledgerOptions,
  limitOptions,
  localModelOptions,
  localOptions,
  providerOptions,
  responseOptions,
  retryOptions,
  routeOptions,
  timeoutOptions,
  tlsOptions,
  traceOptions,
} from './sections.ts';

// The forms of options as the schema library checks them, made of their rows (options.ts).

/** A value may be a reference before it is resolved: editors see the text as it is in the file. */
const orReference = '|\\$\\{';

/** The message of a planned value. */
export const notYet = 'is not available yet';

const dayMs = 86_400_000;
const maxDurationMs = dayMs;
const maxSpanMs = 3660 * dayMs;

/** The value of a header. A line break in it would begin another header. */
const headerText = z
  .string()
  .min(1, 'is empty')
  // oxlint-disable-next-line eslint/no-control-regex
  .regex(
    /^[\t\x20-\x7e\x80-\xff]*$/,
    'contains a line break or another character that headers cannot contain',
  );

type ValueOf<O> = O extends { readonly kind: Kind<infer T> } ? T : never;
type ShapeOf<R extends Options> = {
  [O in R[keyof R] as O['key']]: z.ZodOptional<z.ZodType<ValueOf<O>>>;
};

/** The form of a section: each option by its key, all of them optional, no others. */
function rowsForm<R extends Options>(options: R) {
  return z.strictObject(shapeOf<ShapeOf<R>>(Object.values(options)));
}

/** Typed by the caller, whose type follows from the rows. */
function shapeOf<S>(options: readonly Option[]): S {
  const entries: readonly (readonly unknown[])[] = options.map((each) => [each.key, formOf(each)]);
  return Object.fromEntries(entries);
}

function formOf(option: Option): z.ZodType {
  const usual = defaultText(option);
  const about = usual === undefined ? option.about : `${option.about} Default: ${usual}.`;
  return valueForm(option.kind.form).optional().describe(about);
}

/** Checks and reads a value as it is written. */
function valueForm(form: Form): z.ZodType {
  switch (form.is) {
    case 'duration': {
      const { min, never } = form;
      const wrong =
        never === undefined
          ? 'is not a duration (500ms, 2s, 30m, 1h)'
          : 'is neither never nor a duration (500ms, 2s, 30m, 1h)';
      return z
        .string({ error: ({ input }) => (typeof input === 'number' ? unitMissing : undefined) })
        .meta({
          pattern: `${never === undefined ? '' : '^never$|'}${durationPattern}${orReference}`,
          examples: never === undefined ? ['2s', '500ms', '30m'] : ['15s', 'never'],
        })
        .transform((text, context) => {
          if (text === 'never' && never !== undefined) return never;
          const ms = readDuration(text);
          if (ms !== undefined && ms >= min && ms <= maxDurationMs) return ms;
          context.addIssue({
            code: 'custom',
            message: ms === undefined ? wrong : `must be ${min}ms to 24h`,
          });
          return z.NEVER;
        });
    }
    case 'span':
      return spanForm(form.min);
    case 'size':
      return sizeForm(form);
    case 'whole':
      return z
        .number()
        .int('must be a whole number')
        .min(form.min, `must be at least ${form.min}`)
        .max(form.max, `must be at most ${form.max}`);
    case 'share':
      return z.number().min(0, 'must be 0 to 1').max(1, 'must be 0 to 1');
    case 'switch':
      return z.boolean();
    case 'choice':
      return choiceForm(form);
    case 'text':
      return form.pattern === undefined
        ? z.string().min(1, 'is empty')
        : z.string().regex(form.pattern, form.message);
    case 'list':
      return z.array(z.string().regex(form.pattern, form.message));
    default:
      return form satisfies never;
  }
}

type FormOf<K extends Form['is']> = Extract<Form, { readonly is: K }>;

function choiceForm({ of, planned = [] }: FormOf<'choice'>): z.ZodType {
  // The message of a planned value says so instead of calling it wrong.
  return z.enum(of, {
    error: ({ input }) =>
      typeof input === 'string' && planned.some((name) => input.split(':')[0] === name)
        ? notYet
        : undefined,
  });
}

/** In quotes it would be none either. */
const unitMissing = 'is a number without a unit; write a duration (500ms, 2s, 30m, 1h)';

function spanForm(min: number): z.ZodType {
  return z
    .string()
    .meta({ pattern: `${spanPattern}${orReference}`, examples: ['90d', '26w', 'forever'] })
    .transform((text, context) => {
      const ms = readSpan(text);
      if (ms === Number.POSITIVE_INFINITY) return ms;
      if (ms !== undefined && ms >= min && ms <= maxSpanMs) return ms;
      const message =
        ms === undefined
          ? 'is not a span (90d, 26w, forever)'
          : `must be ${spanText(min)} to ${spanText(maxSpanMs)}, or forever`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    });
}

function sizeForm({ min, max, examples }: FormOf<'size'>): z.ZodType {
  return z
    .union([
      z.string().meta({ pattern: sizePattern + orReference, examples }),
      z.number().int().meta({ description: 'Bytes' }),
    ])
    .transform((value, context) => {
      const bytes = typeof value === 'number' ? value : readSize(value);
      if (bytes !== undefined && bytes >= min && bytes <= max) return bytes;
      const message =
        bytes === undefined
          ? `is not a size (${examples.join(', ')}, bytes)`
          : `must be ${sizeText(min)} to ${sizeText(max)}`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    });
}

/** A secret: the editor of the dashboard shows a placeholder instead (edit/fields.ts). */
const secretText = headerText.meta({ writeOnly: true });

// The form of `prices:` in `gateway.yaml`. Dollars become integers here, exactly as they are written.

const maxDollars = 1_000_000;

/** Dollars of a number as it is in the file, as units of 10^-places dollars. */
function dollars(places: number, description: string) {
  return z
    .number()
    .min(0, 'must be at least 0')
    .max(maxDollars, `must be at most ${maxDollars}`)
    .transform((value, context) => {
      // The shortest text of a number is what was written, up to 15 digits.
      const read = scaledDecimal(String(value), places);
      if (read?.exact === true) return read.units;
      const message = isBelowUnit(String(value), places)
        ? `is less than the smallest amount, ${decimalText(1, places)}`
        : `must have at most ${places} decimals and 15 digits`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .describe(description);
}

/** Dollars per million tokens: the sixth decimal is one picodollar a token. */
function rate(description: string) {
  return dollars(6, description);
}

const rates = {
  input: rate('Uncached input. Dollars per million tokens, like all rates.'),
  output: rate('Output.'),
  cache_read: rate('Input read from a cache. Default: as input.').optional(),
  cache_write: rate('Input written to a cache. Default: as input.').optional(),
  cache_write_1h: rate('The same, kept for an hour. Default: as cache_write.').optional(),
  reasoning: rate('Reasoning tokens. Default: as output.').optional(),
  audio_input: rate('Audio in the prompt. Default: as input.').optional(),
  image_input: rate('Images in the prompt. Default: as input.').optional(),
  video_input: rate('Video in the prompt. Default: as input.').optional(),
  audio_cache_read: rate('Audio read from a cache. Default: as cache_read.').optional(),
  audio_output: rate('Audio output. Default: as output.').optional(),
  image_output: rate('Image output. Default: as output.').optional(),
};

/** By the length of the prompt. */
function tiers() {
  return z
    .array(
      z.strictObject({
        above: z
          .number()
          .int('must be a whole number')
          .min(0, 'must be at least 0')
          .max(1_000_000_000, 'must be at most 1000000000')
          .describe('Applies to prompts with more tokens than this, including cached ones.'),
        ...rates,
      }),
    )
    .optional()
    .describe('Rates for the whole call when its prompt is long, in ascending order of `above`.');
}

const service = z.strictObject({
  ...rates,
  tiers: tiers(),
});

const price = z.strictObject({
  ...rates,
  service_tiers: z
    .record(z.string().regex(/^[\w.-]{1,64}$/, 'is the name of a tier, such as priority'), service)
    .optional()
    .describe(
      'Rates of service tiers by name (priority, flex, batch, fast …). Other tiers cost the standard rates; keys with a budget cannot ask for a more expensive tier without rates.',
    ),
  tiers: tiers(),
  call: dollars(12, 'Dollars per call, regardless of its size.').optional(),
  per_image: dollars(12, 'Dollars per image in the prompt, in addition to its tokens.').optional(),
  web_search: dollars(12, 'Dollars per web search that the provider runs.').optional(),
  file_search: dollars(12, 'Dollars per call of the file search of the Responses API.').optional(),
});
/** `default`, or what a target is called. */
const pattern = z
  .string()
  .regex(/^(?:default|[^/\s]+\/\S+)$/, 'is provider/model, a glob such as team-vllm/*, or default');

const pricesForm = z
  .record(pattern, price)
  .nullish()
  .describe(
    'Prices that override the price package, by provider/model (first) or by a glob of it. default: the price of models without one, for keys with a budget, which cannot call them otherwise.',
  );

const headerName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'is not a header name');

const timeouts = rowsForm(timeoutOptions).nullish();
const retry = rowsForm(retryOptions).nullish();

const pemFile = z.string().min(1, 'is empty').optional();

/** What AWS takes. */
const metadataText = z
  .string()
  .regex(/^[a-zA-Z0-9\s:_@$#=/+,.-]{1,256}$/, 'has characters that AWS does not take, or over 256');

const provider = z
  .strictObject({
    ...rowsForm(providerOptions).shape,
    ...rowsForm(cloudOptions).shape,
    deployments: z
      .record(
        z.string().min(1, 'is empty').max(256, 'is longer than 256 characters'),
        z.string().regex(/^\S{1,256}$/, 'is not the name of a model'),
      )
      .optional()
      .describe(
        'azure, foundry, bedrock, bedrock-mantle, vertex: the model behind the name of a deployment, an ARN or a tuned endpoint; prices and what the model takes go by it. Default: the name says it.',
      ),
    request_metadata: z
      .record(metadataText, metadataText)
      .refine((entries) => Object.keys(entries).length <= 16, 'has more than 16 entries')
      .optional()
      .describe('bedrock: up to 16 names with values that AWS logs beside each call.'),
    client_secret: secretText
      .optional()
      .describe(
        'azure, foundry: secret of the app, for auth: entra. Best as a reference. Default: AZURE_CLIENT_SECRET, else the file of AZURE_CLIENT_CERTIFICATE_PATH or AZURE_FEDERATED_TOKEN_FILE.',
      ),
    secret_access_key: secretText
      .optional()
      .describe(
        'bedrock, bedrock-mantle: the access key itself, for auth: keys. Best as a reference. Default: AWS_SECRET_ACCESS_KEY.',
      ),
    session_token: secretText
      .optional()
      .describe(
        'bedrock, bedrock-mantle: session token of temporary keys, for auth: keys. Best as a reference. Default: AWS_SESSION_TOKEN.',
      ),
    api_key: z
      .union([secretText, z.array(secretText).min(1, 'needs at least one key')])
      .optional()
      .describe(
        "The key, or a list of several, which are called key-1, key-2. Best as references: ${NAME} from the environment or ${file:/path}. Default: the vendor's usual variable.",
      ),
    credentials: z
      .union([
        z.record(
          z
            .string()
            .regex(
              /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
              'must be 1 to 63 letters, digits, . _ and -',
            ),
          secretText,
        ),
        pemFile,
      ])
      .optional()
      .describe(
        'Several keys by name, instead of api_key. Each has its own rate limits and circuit breaker. vertex: path of a file of credentials, relative to this file. Default there: GOOGLE_APPLICATION_CREDENTIALS, then the file of gcloud.',
      ),
    headers: z
      .record(headerName, secretText)
      .nullish()
      .describe('Extra request headers. Values may be references.'),
    proxy: headerText
      .optional()
      .describe(
        'Proxy for this provider: http://USER:PASSWORD@HOST:PORT, or none. Default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment; loopback is always direct.',
      ),
    ca: pemFile.describe(
      'PEM file of certificate authorities trusted for this provider, in addition to the default ones; relative to this file.',
    ),
    timeouts: timeouts.describe('Time limits of calls to this provider.'),
  })
  .nullable();

const targetText = z
  .string()
  .regex(
    /^[^/\s]+\/\S+$/,
    'a target is provider/model, e.g. openai/gpt-5-mini; names under models: do not chain',
  );

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
    .describe('Targets of this model, tried in the order that `order` sets.'),
  ...rowsForm(routeOptions).shape,
  retry: retry.describe('Retries for this model; overrides the global retry.'),
  hedge: rowsForm(hedgeOptions)
    .refine(({ after }) => after !== undefined, 'needs after, e.g. { after: 800ms }')
    .nullish()
    .describe(
      'Sends a second request to the next target when the first has sent no event in that time. The first answer wins; both may be billed. Default: never.',
    ),
  timeouts: timeouts.describe("Time limits for this model; they override the provider's."),
});

const local = z
  .strictObject({
    ...rowsForm(localOptions).shape,
    models: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?$/, 'is not a model name'),
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
      const message = `must not be more than idempotency.${name}: such a long answer would not fit`;
      context.addIssue({ code: 'custom', path: ['answer'], message });
    }
  })
  .nullish();

const webhooks = z
  .array(
    z.strictObject({
      url: z
        .string()
        .min(1, 'is empty')
        .meta({ writeOnly: true })
        .describe('URL that events are posted to as JSON.'),
      format: z
        .enum(['json', 'slack', 'teams', 'discord', 'pagerduty'])
        .optional()
        .describe('json: the event, signed; otherwise a message of that service. Default: json.'),
      secret: z
        .string()
        .min(16, 'must have at least 16 characters')
        .meta({ writeOnly: true })
        .optional()
        .describe(
          'json: signs each event (x-gateway-signature). pagerduty: the integration key. Not for the other formats. Best as a reference: ${NAME}.',
        ),
      events: z
        .array(z.enum(['budget', 'credential', 'target', 'store', 'overload', 'config']))
        .min(1, 'needs at least one entry')
        .optional()
        .describe('Groups of events to send. Default: all.'),
    }),
  )
  .max(10, 'has more than 10 entries')
  .nullish();

const groups = z
  .array(z.string().min(1, 'is empty').max(200), 'must be a list of groups')
  .max(100, 'has more than 100 entries')
  .optional();

const memberTeam = z.strictObject({
  members: groups.describe('Groups whose people are members: they make and see their own keys.'),
  leads: groups.describe('Groups whose people lead the team: they see and make its keys.'),
  models: z
    .array(modelGlob)
    .min(1, 'needs at least one')
    .optional()
    .describe('Globs of the models that keys of members may use. Default: all.'),
  keys: z
    .number()
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(1000, 'must be at most 1000')
    .optional()
    .describe('Active keys of one person in the team. Default: 10.'),
  expires: spanForm(dayMs)
    .transform((ms): number => Number(ms))
    .optional()
    .describe('Longest life of a key that a member makes. Default: forever.'),
});

const oidc = z
  .strictObject({
    issuer: z
      .string()
      .min(1, 'is empty')
      .describe('Issuer of the provider, e.g. https://login.example.com.'),
    client_id: z.string().min(1, 'is empty').describe('Id of the gateway at the provider.'),
    client_secret: z
      .string()
      .min(1, 'is empty')
      .meta({ writeOnly: true })
      .describe('Its secret. Best as a reference: ${NAME}.'),
    url: z
      .string()
      .describe(
        'Address of the dashboard as browsers open it; the provider sends people back to URL/api/oidc/callback.',
      ),
    label: z
      .string()
      .min(1, 'is empty')
      .max(40, 'has more than 40 characters')
      .optional()
      .describe('What the button says after "Sign in with". Default: host of the issuer.'),
    scopes: z
      .string()
      .regex(
        /^openid(?: [\x21\x23-\x5b\x5d-\x7e ]*)?$/,
        'is a list of scopes that begins with openid',
      )
      .optional()
      .describe('Scopes that are asked for. Default: openid profile email.'),
    claims: z
      .strictObject({
        person: z
          .string()
          .min(1, 'is empty')
          .optional()
          .describe(
            'Claim that identifies a person, and is the owner of their keys. email needs email_verified. Default: sub.',
          ),
        name: z.string().min(1, 'is empty').optional().describe('Claim to show. Default: name.'),
        groups: z
          .string()
          .min(1, 'is empty')
          .optional()
          .describe('Claim that lists the groups of a person. Default: groups.'),
      })
      .nullish()
      .describe('Names of claims.'),
    roles: z
      .strictObject({
        owner: groups.describe('Groups of owners.'),
        operator: groups.describe('Groups of operators.'),
        viewer: groups.describe('Groups of viewers.'),
      })
      .nullish()
      .describe('Groups whose people have a role (docs/operator/people.md).'),
    teams: z
      .record(label, memberTeam)
      .nullish()
      .describe('Teams whose people sign in, by the name that keys and limits have.'),
  })
  .nullish();

const traceText = z.string().min(1, 'is empty').max(1024, 'has more than 1024 characters');

const traces = z
  .strictObject({
    endpoint: z
      .string()
      .min(1, 'is empty')
      .optional()
      .describe(
        'The collector: OTLP over HTTP with protobuf, e.g. http://127.0.0.1:4318; without a path, /v1/traces is added. Default: OTEL_EXPORTER_OTLP_ENDPOINT; without either there are no traces.',
      ),
    headers: z
      .record(headerName, secretText)
      .nullish()
      .describe('Request headers, e.g. an access token. Values may be references.'),
    ca: pemFile.describe(
      'PEM file of certificate authorities trusted for the collector, in addition to the default ones.',
    ),
    cert: pemFile.describe(
      'PEM file of the client certificate, for a collector that requires one.',
    ),
    key: pemFile.describe('PEM file of the key of that certificate.'),
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
    z
      .array(z.string())
      .min(1, 'needs the database')
      .max(2, 'takes at most two: the database and the counters'),
    z.strictObject({
      database: z
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
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be 1 to 63 letters, digits, . _ and -')
        .optional()
        .describe('Prefix that separates several installations in one Redis. Default: default.'),
      on_store_loss: z
        .enum(['closed', 'open'])
        .optional()
        .describe(
          'Calls with a budget while PostgreSQL is unavailable and the local lease is used up: closed (default) refuses them, open admits up to $1 per budget and gateway.',
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
        'A stream that is silent for this long gets a keep-alive. Default: 15s; never = no keep-alives.',
      ),
  })
  .nullish();

/** The whole file. */
export const configForm = z
  .strictObject({
    ...rowsForm(baseOptions).shape,
    tls: rowsForm(tlsOptions)
      .nullish()
      .describe('TLS of the data plane (docs/operator/tls.md). Default: plain HTTP.'),
    admin_tls: rowsForm(tlsOptions)
      .nullish()
      .describe('TLS of the admin plane (docs/operator/tls.md). Default: plain HTTP.'),
    providers: z
      .record(
        z
          .string()
          .regex(
            /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
            'a provider name consists of letters, digits, . _ and -',
          ),
        provider,
      )
      .nullish()
      .describe('Upstream providers. A known vendor needs only {}.'),
    models: z
      .record(
        z.string().regex(/^\S{1,256}$/, 'a model name has no spaces and at most 256 characters'),
        z.union([targetText.describe('An alias of provider/model.'), route]),
      )
      .nullish()
      .describe('Model names for clients, in addition to provider/model.'),
    local: local.describe('Models that the embedded engine runs; clients call them local/NAME.'),
    prices: pricesForm,
    keys: keysForm,
    teams: teamsForm,
    tags: tagsForm,
    trusted_proxies: trustedProxiesForm,
    limits: rowsForm(limitOptions)
      .nullish()
      .describe('Limits of the whole gateway (docs/operator/overload.md).'),
    timeouts: timeouts.describe(
      'Time limits of all calls; a provider or a model can override them.',
    ),
    retry: retry.describe('Which failures are retried (docs/user/retries.md).'),
    clients: clients.describe('Keep-alives for waiting clients, and the timeout for slow clients.'),
    drain: rowsForm(drainOptions).nullish().describe('How a gateway stops.'),
    ledger: rowsForm(ledgerOptions).nullish().describe('Retention and durability of call records.'),
    content: rowsForm(contentOptions)
      .nullish()
      .describe(
        'Retention of the content of calls, for keys with log_content (docs/user/content.md).',
      ),
    responses: rowsForm(responseOptions)
      .nullish()
      .describe('Retention of responses that clients may refer to (docs/user/responses.md).'),
    idempotency: idempotency.describe(
      'Retention of answers to calls with an Idempotency-Key (docs/user/idempotency.md).',
    ),
    webhooks: webhooks.describe(
      'Receivers of events: exhausted budgets, failures and recoveries (docs/operator/webhooks.md).',
    ),
    oidc: oidc.describe(
      'Sign-in to the dashboard by OpenID Connect (docs/operator/people.md). Read at start only.',
    ),
    traces: traces.describe('Export of spans (docs/operator/traces.md). Read at start only.'),
    storage: storage.describe(
      'Where keys, ledger and counters are stored: sqlite (default) in data_dir, memory, or servers that several gateways share (docs/operator/storage.md).',
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
