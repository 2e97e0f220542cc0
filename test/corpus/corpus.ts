/** Sends the corpus through a gateway and keeps what came of each request. */
import type { JsonObject } from '../../src/json/value.ts';
import {
  providerAt,
  startTestGateway,
  upstreamConfig,
  type TestGateway,
} from '../support/gateway.ts';
import type { Pair, UpstreamDialect } from '../support/dialects.ts';
import { send } from '../support/http.ts';
import type { AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { eventStreamType } from '../upstream/aws.ts';
import { replying } from '../upstream/reply.ts';
import { ScriptedUpstream, type Received } from '../upstream/scripted.ts';
import { shownAt, type Sample } from './sample.ts';

/** Known vendors, whose models differ from a server that nothing is known of. */
const vendors: { readonly [id: string]: AnyDialect } = {
  openai: 'chat',
  openrouter: 'chat',
  mistral: 'chat',
  vllm: 'chat',
  deepseek: 'chat',
  anthropic: 'messages',
};

export interface CorpusRig {
  readonly gateway: TestGateway;
  readonly upstreams: { readonly [D in UpstreamDialect]: ScriptedUpstream };
  stop(): Promise<void>;
}

export async function startCorpusRig(): Promise<CorpusRig> {
  const upstreams = {
    chat: await ScriptedUpstream.start(),
    messages: await ScriptedUpstream.start(),
    responses: await ScriptedUpstream.start(),
    gemini: await ScriptedUpstream.start(),
    converse: await ScriptedUpstream.start(eventStreamType),
  };
  const { providers } = upstreamConfig((upstream) => upstreams[upstream].port);
  const known = Object.entries(vendors).map(([id, dialect]): readonly [string, JsonObject] => [
    id,
    {
      base_url: baseOf(dialect, upstreams[dialect].port),
      api_key: `key-of-${id}`,
      // The row of OpenAI's other API has an id of its own.
      ...(id === 'openai' ? { dialect: 'openai-chat' } : {}),
    },
  ]);
  const special = Object.entries(likeVendors).map(
    ([id, { dialect, ...more }]): readonly [string, JsonObject] => [
      id,
      {
        ...more,
        dialect: dialectIds[dialect],
        base_url: baseOf(dialect, upstreams[dialect].port),
        api_key: `key-of-${id}`,
      },
    ],
  );
  const gateway = await startTestGateway({
    providers: {
      ...providers,
      ...Object.fromEntries([...known, ...special]),
      'generous-gemini': providerAt('gemini', upstreams.gemini.port, {
        server_tools: true,
        region: 'eu',
      }),
      // Claude as well by Converse.
      'claude-converse': providerAt('converse', upstreams.converse.port, { door: 'converse' }),
    },
  });
  return {
    gateway,
    upstreams,
    stop: async () => {
      await gateway.stop();
      await Promise.all(Object.values(upstreams).map((upstream) => upstream.close()));
    },
  };
}

const dialectIds = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
} as const;

function baseOf(dialect: AnyDialect, port: number): string {
  return `http://127.0.0.1:${port}${dialect === 'messages' ? '' : '/v1'}`;
}

/** Vendors at a dialect that is not their first, and providers whose config opens what is closed by default. */
const likeVendors: { readonly [id: string]: JsonObject & { readonly dialect: AnyDialect } } = {
  'openai-responses': { like: 'openai', dialect: 'responses' },
  'generous-chat': { like: 'openrouter', dialect: 'chat', server_tools: true, region: 'eu' },
  'generous-messages': {
    like: 'anthropic',
    dialect: 'messages',
    server_tools: true,
    betas: ['fast-mode-2026-02-01'],
  },
  'generous-responses': { like: 'openai', dialect: 'responses', server_tools: true, region: 'eu' },
};
/** One request, what the gateway answered and what the upstream got. */
export interface Sent {
  readonly request: JsonObject;
  readonly status: number;
  readonly text: string;
  readonly answer: JsonObject;
  /** Paths of `x-gateway-notes`. */
  readonly notes: readonly string[];
  /** What the upstream got; nothing after a refusal. */
  readonly arrived: readonly JsonObject[];
  readonly received: readonly Received[];
}

/** Of all upstreams of a dialect the one that takes the most of a sample as it is. */
function relaying(upstream: AnyDialect, { sends, relayed }: Sample<object>): string {
  // One that no row describes takes all members, but messages in one order only.
  const inOrder = upstream === 'messages' || !('messages' in sends) || relayed !== undefined;
  return inOrder ? `up-${upstream}/corpus` : 'generous-chat/anthropic/corpus';
}

/** The model that a sample is relayed to. */
export function relayedModel(dialect: AnyDialect, sample: Sample<object>): string {
  return sample.relayedTo ?? relaying(dialect, sample);
}

/** Where a sample goes that names no model. Of responses upstreams, OpenAI is the one that others leave parts of out, and of
 * the clouds' own a model that takes most. */
export const usualModel: { readonly [D in UpstreamDialect]: string } = {
  chat: 'up-chat/corpus',
  messages: 'up-messages/corpus',
  responses: 'openai-responses/gpt-5.6',
  gemini: 'up-gemini/gemini-2.5-pro',
  converse: 'claude-converse/claude-sonnet-4-5-20250929',
};

/** Sends the sample to an upstream of a dialect; by the same dialect it is relayed. */
export async function sendSample(
  { gateway, upstreams }: CorpusRig,
  sample: Sample<object>,
  pair: Pair,
): Promise<Sent> {
  const { client, upstream } = pair;
  const model =
    client === upstream
      ? relayedModel(client, sample)
      : (shownAt(sample, upstream, client).behind ?? usualModel[upstream]);
  const script = upstreams[upstream].script(
    model.slice(model.indexOf('/') + 1),
    replying(upstream, { text: 'Hello.' }),
  );
  const more: JsonObject = { ...sample.sends };
  const request = requestBody(client, { model, stream: false, more });
  const reply = await send(gateway.url + endpointOf[client], request, {
    headers: sample.headers ?? {},
  });
  return {
    request,
    status: reply.status,
    text: reply.text,
    answer: reply.json,
    notes: notedPaths(String(reply.headers['x-gateway-notes'] ?? '')),
    arrived: script.requests.map(({ json }) => json),
    received: script.requests,
  };
}

/** The paths of `x-gateway-notes`. */
export function notedPaths(header: string): readonly string[] {
  return [...header.matchAll(/(?:^|; )([^:;]+): (?:dropped|changed),/g)].map(
    ([, path = '']) => path,
  );
}
