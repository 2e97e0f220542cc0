/** Settings of LiteLLM that are not about models: a counterpart, or what to do instead. */
import type { ConfigPath } from '../../config/yaml-text.ts';
import type { Draft, NoteKind } from './draft.ts';
import { numberOf, tableOf, textOf, type Table } from './values.ts';

/** `routing_strategy` → `order`. */
export const orders: ReadonlyMap<string, string> = new Map([
  ['simple-shuffle', 'weighted'],
  ['least-busy', 'least-busy'],
  ['latency-based-routing', 'fastest'],
  ['cost-based-routing', 'cheapest'],
  ['usage-based-routing', 'least-busy'],
  ['usage-based-routing-v2', 'least-busy'],
]);

/** Members that other files of this folder read. */
const readElsewhere = new Set([
  'litellm_settings.request_timeout',
  'litellm_settings.fallbacks',
  'litellm_settings.context_window_fallbacks',
  'litellm_settings.content_policy_fallbacks',
  'litellm_settings.default_fallbacks',
  'litellm_settings.model_alias_map',
  'router_settings.timeout',
  'router_settings.stream_timeout',
  'router_settings.fallbacks',
  'router_settings.context_window_fallbacks',
  'router_settings.content_policy_fallbacks',
  'router_settings.default_fallbacks',
  'router_settings.model_group_alias',
  'general_settings.master_key',
]);

const attempts =
  'at most three attempts a call, with waits of their own; retry: says which failures';
const breakers = 'targets that fail go out and come back by themselves';
const redis = 'storage.counters: redis://HOST:6379, together with storage.database: postgres://…';
const cache =
  'answers are not cached; a repeated call with an Idempotency-Key gets its stored answer';
const metrics = 'GET /metrics of the admin plane, always';
const spans = 'traces.endpoint names an OpenTelemetry collector; Langfuse and others take OTLP';
const inDatabase =
  'this gateway has a database of its own: storage: postgres://… for several instances';
const roles = 'keys are made by "model-gateway keys create", the admin API and the dashboard';

/** What to say of a member, by its path. */
const words: ReadonlyMap<string, readonly [NoteKind, string]> = new Map<
  string,
  readonly [NoteKind, string]
>([
  ['litellm_settings.vertex_project', ['taken', 'into the providers of Vertex AI']],
  ['litellm_settings.vertex_location', ['taken', 'into the providers of Vertex AI']],
  [
    'litellm_settings.drop_params',
    [
      'taken',
      'strict: false, the default: what a target cannot take is dropped and named in x-gateway-notes',
    ],
  ],
  ['litellm_settings.modify_params', ['taken', 'requests are translated to what the target takes']],
  ['litellm_settings.num_retries', ['changed', attempts]],
  ['litellm_settings.allowed_fails', ['changed', breakers]],
  ['litellm_settings.cooldown_time', ['changed', breakers]],
  ['litellm_settings.cache', ['left out', cache]],
  ['litellm_settings.cache_params', ['left out', cache]],
  [
    'litellm_settings.turn_off_message_logging',
    ['taken', 'contents are stored only for keys with log_content'],
  ],
  ['litellm_settings.redact_user_api_key_info', ['taken', 'keys are never logged']],
  ['litellm_settings.redact_messages_in_exceptions', ['taken', 'logs hold no contents']],
  ['litellm_settings.set_verbose', ['changed', 'log_level: debug']],
  ['litellm_settings.json_logs', ['taken', 'logs are JSON where no terminal reads them']],
  [
    'litellm_settings.max_budget',
    ['left out', 'there is no budget of all keys together; teams and tags have one'],
  ],
  [
    'litellm_settings.budget_duration',
    ['left out', 'there is no budget of all keys together; teams and tags have one'],
  ],
  ['litellm_settings.max_end_user_budget', ['left out', 'end users have no budgets; tags do']],
  ['litellm_settings.default_team_settings', ['left out', 'callbacks are not set by team']],
  ['litellm_settings.default_internal_user_params', ['left out', roles]],
  ['litellm_settings.default_key_generate_params', ['left out', 'give the values to keys create']],
  [
    'litellm_settings.upperbound_key_generate_params',
    ['left out', 'a team has limits that all of its keys share'],
  ],
  [
    'litellm_settings.ssl_verify',
    ['left out', 'certificates are always verified; providers.NAME.ca names an authority'],
  ],
  ['litellm_settings.force_ipv4', ['left out', 'both families are tried']],
  [
    'litellm_settings.enable_json_schema_validation',
    ['left out', 'answers are passed on as they are'],
  ],
  ['litellm_settings.guardrails', ['left out', 'there are no guardrails']],
  ['litellm_settings.langfuse_default_tags', ['left out', spans]],
  ['litellm_settings.cost_discount_config', ['left out', 'prices: holds the rates that you pay']],
  ['router_settings.num_retries', ['changed', attempts]],
  ['router_settings.max_retries', ['changed', attempts]],
  ['router_settings.retry_after', ['changed', attempts]],
  ['router_settings.retry_policy', ['changed', attempts]],
  ['router_settings.model_group_retry_policy', ['changed', attempts]],
  ['router_settings.allowed_fails', ['changed', breakers]],
  ['router_settings.allowed_fails_policy', ['changed', breakers]],
  ['router_settings.cooldown_time', ['changed', breakers]],
  ['router_settings.disable_cooldowns', ['left out', breakers]],
  [
    'router_settings.enable_pre_call_checks',
    ['changed', 'retry.context_overflow asks other targets when a prompt is too long'],
  ],
  [
    'router_settings.optional_pre_call_checks',
    ['changed', 'models.NAME.affinity keeps a conversation at one target'],
  ],
  ['router_settings.routing_strategy_args', ['left out', 'the orders have no parameters']],
  ['router_settings.enable_tag_filtering', ['left out', 'targets are not chosen by tags']],
  [
    'router_settings.provider_budget_config',
    ['left out', 'budgets belong to keys, teams and tags'],
  ],
  ['router_settings.set_verbose', ['changed', 'log_level: debug']],
  ['router_settings.debug_level', ['changed', 'log_level: debug']],
  ['router_settings.cache_responses', ['left out', cache]],
  ...['host', 'port', 'password', 'url', 'db'].map(
    (name) => [`router_settings.redis_${name}`, ['changed', redis]] as const,
  ),
  ['general_settings.database_url', ['changed', inDatabase]],
  ['general_settings.database_connection_pool_limit', ['left out', inDatabase]],
  ['general_settings.database_connection_timeout', ['left out', inDatabase]],
  ['general_settings.database_type', ['left out', inDatabase]],
  [
    'general_settings.allow_requests_on_db_unavailable',
    ['changed', 'storage.on_store_loss: open, for keys with a budget'],
  ],
  [
    'general_settings.store_model_in_db',
    [
      'left out',
      'models of the database are not in this file; this gateway has them in gateway.yaml only',
    ],
  ],
  [
    'general_settings.store_prompts_in_spend_logs',
    ['changed', 'keys update --log-content stores contents, sealed'],
  ],
  ['general_settings.disable_spend_logs', ['left out', 'every call has its row']],
  [
    'general_settings.proxy_batch_write_at',
    ['left out', 'rows are written in batches by themselves'],
  ],
  [
    'general_settings.proxy_budget_rescheduler_min_time',
    ['left out', 'budgets follow the calendar exactly'],
  ],
  ['general_settings.background_health_checks', ['left out', breakers]],
  ['general_settings.health_check_interval', ['left out', breakers]],
  ['general_settings.alerting', ['changed', 'webhooks: send signed events']],
  ['general_settings.alert_types', ['changed', 'webhooks[].events chooses groups']],
  ['general_settings.alerting_threshold', ['left out', 'alert on model_gateway metrics']],
  ['general_settings.alert_to_webhook_url', ['changed', 'webhooks: send signed events']],
  [
    'general_settings.ui_access_mode',
    ['left out', 'the dashboard is on the admin plane, at an address of its own'],
  ],
  ['general_settings.allowed_routes', ['changed', 'keys.NAME.endpoints']],
  ['general_settings.allowed_ips', ['changed', 'keys.NAME.cidrs']],
  ['general_settings.use_x_forwarded_for', ['changed', 'trusted_proxies names the proxies']],
  ['general_settings.enable_jwt_auth', ['left out', 'clients call with keys']],
  ['general_settings.litellm_jwtauth', ['left out', 'clients call with keys']],
  ['general_settings.custom_auth', ['left out', 'there is no code of your own in the gateway']],
  ['general_settings.pass_through_endpoints', ['left out', 'there are no pass-through endpoints']],
  [
    'general_settings.key_management_system',
    ['left out', 'references are ${NAME} and ${file:/path}'],
  ],
  [
    'general_settings.key_management_settings',
    ['left out', 'references are ${NAME} and ${file:/path}'],
  ],
  [
    'general_settings.infer_model_from_keys',
    ['left out', 'a vendor whose variable is set is there by itself'],
  ],
  ['general_settings.completion_model', ['left out', 'a call names its model']],
  ['general_settings.disable_master_key_return', ['taken', 'secrets are never shown']],
  ['general_settings.max_response_size_mb', ['left out', 'answers have no limit of size']],
  [
    'general_settings.use_redis_transaction_buffer',
    ['left out', 'budgets are exact across instances by themselves'],
  ],
]);

const callbacks: ReadonlyMap<string, readonly [NoteKind, string]> = new Map<
  string,
  readonly [NoteKind, string]
>([
  ['prometheus', ['taken', metrics]],
  ['otel', ['changed', spans]],
  ['langfuse', ['changed', spans]],
  ['langfuse_otel', ['changed', spans]],
  ['arize', ['changed', spans]],
  ['logfire', ['changed', spans]],
  ['slack', ['changed', 'webhooks: an entry with format: slack']],
  ['webhook', ['changed', 'webhooks: send signed events']],
]);

const callbackMembers = /^(success_callback|failure_callback|callbacks|service_callbacks)$/;

const sections = ['litellm_settings', 'router_settings', 'general_settings'];
const readSections = new Set([...sections, 'model_list', 'credential_list']);

/** Takes what has a counterpart, and says a word of each other member. */
export function noteSettings(root: Table, draft: Draft): void {
  for (const section of sections) {
    for (const [member, value] of Object.entries(tableOf(root[section]))) {
      noteMember([section, member], value, draft);
    }
  }
  for (const [name, value] of Object.entries(root)) {
    // x-… holds anchors.
    if (!readSections.has(name) && !name.startsWith('x-')) noteSection(name, value, draft);
  }
}

function noteMember(path: ConfigPath, value: unknown, draft: Draft): void {
  const name = path.join('.');
  if (readElsewhere.has(name) || takeNumber(name, path, value, draft)) return;
  if (callbackMembers.test(String(path[1]))) return noteCallbacks(path, value, draft);
  if (name === 'router_settings.routing_strategy') return noteStrategy(path, value, draft);
  const isRetention = name === 'general_settings.maximum_spend_logs_retention_period';
  if (isRetention && /^\d{1,5}[dh]$/.test(String(value))) {
    draft.option('ledger', 'keep', value);
    return draft.note('taken', path, `ledger.keep: ${String(value)}`);
  }
  const known = value === false ? wordsOfOff(name) : words.get(name);
  const [kind, text] = known ?? ['not known', 'no such option is known'];
  draft.note(kind, path, text);
}

/** What to say of a switch that is off. */
function wordsOfOff(name: string): readonly [NoteKind, string] | undefined {
  if (name === 'litellm_settings.drop_params') {
    return ['changed', 'strict: true of a model or a key refuses what would be dropped'];
  }
  const known = words.get(name);
  return known === undefined || name === 'litellm_settings.ssl_verify'
    ? known
    : ['taken', 'off, as here'];
}

function noteStrategy(path: ConfigPath, value: unknown, draft: Draft): void {
  const order = orders.get(String(value));
  if (order === undefined) return draft.note('not known', path, 'order: weighted takes its place');
  const isUsage = String(value).startsWith('usage-based');
  const kind = isUsage ? 'changed' : 'taken';
  draft.note(kind, path, `order: ${order} of routes with several targets`);
}

/** Members with a number that means the same here. */
function takeNumber(name: string, path: ConfigPath, value: unknown, draft: Draft): boolean {
  const number = numberOf(value);
  if (number === undefined || !Number.isInteger(number) || number < 1) return false;
  if (name === 'general_settings.global_max_parallel_requests') {
    draft.option('limits', 'streams', number);
    draft.note('taken', path, `limits.streams: ${number}`);
    return true;
  }
  if (name === 'general_settings.max_request_size_mb') {
    draft.option('limits', 'body', `${number}MiB`);
    draft.note('taken', path, `limits.body: ${number}MiB`);
    return true;
  }
  return false;
}

function noteCallbacks(path: ConfigPath, value: unknown, draft: Draft): void {
  const names = Array.isArray(value) ? value : [value];
  names.forEach((each, i) => {
    const name = textOf(each) ?? '';
    const [kind, text] = callbacks.get(name) ?? ['left out', `no such integration; ${spans}`];
    draft.note(kind, Array.isArray(value) ? [...path, i] : path, text);
  });
}

const otherSections: ReadonlyMap<string, string> = new Map([
  ['guardrails', 'there are no guardrails'],
  ['mcp_servers', 'there is no MCP gateway'],
  ['include', 'the files that it names were not read; import each of them'],
  ['callback_settings', spans],
  ['vector_store_registry', 'there are no vector stores'],
  ['search_tools', 'clients use the web search of their provider: server_tools'],
  ['files_settings', 'there is no endpoint for files'],
  ['finetune_settings', 'there is no endpoint for fine-tuning'],
  ['prompts', 'prompts belong to the clients'],
]);

function noteSection(name: string, value: unknown, draft: Draft): void {
  if (name === 'environment_variables') {
    for (const variable of Object.keys(tableOf(value))) {
      const isAddress = variable.endsWith('_API_BASE') && !draft.variables.has(variable);
      const text = isAddress
        ? 'no variable of this gateway; base_url of the provider takes its place'
        : `set ${variable} in the environment of the gateway; its value was not copied`;
      draft.note(isAddress ? 'left out' : 'changed', [name, variable], text);
    }
    return;
  }
  const text = otherSections.get(name);
  draft.note(
    text === undefined ? 'not known' : 'left out',
    [name],
    text ?? 'no such section is known',
  );
}
