/** Sends the corpus through a gateway and keeps what came of each request. */
import type { JsonObject } from '../../src/json/value.ts';
import { startTestGateway, upstreamConfig, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import type { Dialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { replying } from '../upstream/reply.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import type { Sample } from './sample.ts';

/** Known vendors, whose models differ from a server that nothing is known of. */
const vendors: { readonly [id: string]: Dialect } = {
  openai: 'chat',
  openrouter: 'chat',
  mistral: 'chat',
  vllm: 'chat',
  deepseek: 'chat',
  anthropic: 'messages',
};

export interface CorpusRig {
  readonly gateway: TestGateway;
  readonly upstreams: { readonly [D in Dialect]: ScriptedUpstream };
  stop(): Promise<void>;
}

export async function startCorpusRig(): Promise<CorpusRig> {
  const upstreams = {
    chat: await ScriptedUpstream.start(),
    messages: await ScriptedUpstream.start(),
  };
  const { providers } = upstreamConfig(upstreams.chat.port, upstreams.messages.port);
  const known = Object.entries(vendors).map(([id, dialect]): readonly [string, JsonObject] => {
    const base = `http://127.0.0.1:${upstreams[dialect].port}`;
    return [id, { base_url: dialect === 'chat' ? `${base}/v1` : base, api_key: `key-of-${id}` }];
  });
  const gateway = await startTestGateway({
    providers: {
      ...providers,
      ...Object.fromEntries(known),
      ...generousProviders(upstreams.chat.port, upstreams.messages.port),
    },
  });
  return {
    gateway,
    upstreams,
    stop: async () => {
      await gateway.stop();
      await Promise.all([upstreams.chat.close(), upstreams.messages.close()]);
    },
  };
}

/** Providers whose config opens what is closed by default. */
function generousProviders(chatPort: number, messagesPort: number): JsonObject {
  return {
    'generous-chat': {
      like: 'openrouter',
      dialect: 'openai-chat',
      base_url: `http://127.0.0.1:${chatPort}/v1`,
      api_key: 'key-of-generous-chat',
      server_tools: true,
      region: 'eu',
    },
    'generous-messages': {
      like: 'anthropic',
      dialect: 'anthropic-messages',
      base_url: `http://127.0.0.1:${messagesPort}`,
      api_key: 'key-of-generous-messages',
      server_tools: true,
      betas: ['fast-mode-2026-02-01'],
    },
  };
}

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
}

/** Of all upstreams of a dialect the one that takes the most of a sample as it is. */
function relaying(upstream: Dialect, { sends, relayed }: Sample<object>): string {
  // One that no row describes takes all members, but messages in one order only.
  const inOrder = upstream === 'messages' || !('messages' in sends) || relayed !== undefined;
  return inOrder ? `up-${upstream}/corpus` : 'generous-chat/anthropic/corpus';
}

/** The model that a sample is relayed to. */
export function relayedModel(dialect: Dialect, sample: Sample<object>): string {
  return sample.relayedTo ?? relaying(dialect, sample);
}

/** Sends the sample to an upstream of a dialect; by the same dialect it is relayed. */
export async function sendSample(
  { gateway, upstreams }: CorpusRig,
  sample: Sample<object>,
  pair: { readonly client: Dialect; readonly upstream: Dialect },
): Promise<Sent> {
  const behind =
    pair.client === pair.upstream ? relayedModel(pair.upstream, sample) : sample.behind;
  const model = behind ?? `up-${pair.upstream}/corpus`;
  const script = upstreams[pair.upstream].script(
    model.slice(model.indexOf('/') + 1),
    replying(pair.upstream, { text: 'Hello.' }),
  );
  const more: JsonObject = { ...sample.sends };
  const request = requestBody(pair.client, { model, stream: false, more });
  const reply = await send(gateway.url + endpointOf[pair.client], request, {
    headers: sample.headers ?? {},
  });
  return {
    request,
    status: reply.status,
    text: reply.text,
    answer: reply.json,
    notes: notedPaths(String(reply.headers['x-gateway-notes'] ?? '')),
    arrived: script.requests.map(({ json }) => json),
  };
}

/** The paths of `x-gateway-notes`. */
export function notedPaths(header: string): readonly string[] {
  return [...header.matchAll(/(?:^|; )([^:;]+): (?:dropped|changed),/g)].map(
    ([, path = '']) => path,
  );
}
