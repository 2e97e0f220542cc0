/** A gateway whose providers are known vendors by name or likeness, all played by scripts. */
import type { JsonObject } from '../../src/json/value.ts';
import { replying } from '../upstream/reply.ts';
import { ScriptedUpstream, type Received, type Script } from '../upstream/scripted.ts';
import { startTestGateway } from './gateway.ts';
import { send, type Reply, type Sending } from './http.ts';
import type { ClientDialect } from './dialects.ts';
import type { Dialect } from './reading.ts';
import { endpointOf } from './requests.ts';

export interface Vendors {
  /**
   * Sends a body to `provider/model`, which answers "ok"; gives the answer and what the provider got.
   */
  ask(dialect: ClientDialect, body: JsonObject, sending?: Sending): Promise<Asked>;
  stop(): Promise<void>;
}

export interface Asked {
  readonly reply: Reply;
  /** Undefined when nothing was sent. */
  readonly received: Received | undefined;
}

/** What the config says of a provider besides its address, and which dialect it speaks. */
export interface Vendor {
  readonly speaks: Dialect;
  readonly config?: JsonObject;
}

export async function startVendors(vendors: { readonly [id: string]: Vendor }): Promise<Vendors> {
  const upstreams = {
    chat: await ScriptedUpstream.start(),
    messages: await ScriptedUpstream.start(),
  };
  const providers = Object.entries(vendors).map(([id, { speaks, config }]) => {
    const base = `http://127.0.0.1:${upstreams[speaks].port}`;
    return [id, { base_url: speaks === 'chat' ? `${base}/v1` : base, api_key: 'k', ...config }];
  });
  const gateway = await startTestGateway({ providers: Object.fromEntries(providers) });
  const scripts = new Map<string, Script>();
  return {
    ask: async (dialect, body, sending = {}) => {
      const [id = '', ...rest] = String(body['model']).split('/');
      const speaks = vendors[id]?.speaks ?? 'chat';
      const model = rest.join('/');
      const script =
        scripts.get(model) ?? upstreams[speaks].script(model, replying(speaks, { text: 'ok' }));
      scripts.set(model, script);
      const before = script.requests.length;
      const reply = await send(`${gateway.url}${endpointOf[dialect]}`, body, sending);
      return { reply, received: script.requests[before] };
    },
    stop: async () => {
      await gateway.stop();
      await Promise.all([upstreams.chat.close(), upstreams.messages.close()]);
    },
  };
}
