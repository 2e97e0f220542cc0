/** A gateway between a test's client and two scripted upstreams, one of each dialect. */
import { ScriptedUpstream, type Script, type Scripted } from '../upstream/scripted.ts';
import type { JsonObject } from '../../src/core/conversation.ts';
import { startTestGateway, upstreamConfig, type TestGateway } from './gateway.ts';
import { send, type Reply as HttpReply, type Sending } from './http.ts';
import type { Dialect } from './reading.ts';

export interface Played {
  /** The name that clients use. */
  readonly model: string;
  readonly script: Script;
}

export interface Rig {
  readonly gateway: TestGateway;
  readonly upstreams: { readonly [D in Dialect]: ScriptedUpstream };
  /** Sets the answers of a model that nobody else uses. */
  play(upstream: Dialect, ...answers: readonly Scripted[]): Played;
  /** The same for a model behind `route`, which the config names. */
  playRoute(route: string, upstream: Dialect, ...answers: readonly Scripted[]): Played;
  stop(): Promise<void>;
}

export const endpointOf: { readonly [D in Dialect]: string } = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
};

/** A gateway on both upstreams; `models` may name routes over `up-chat/…` and `up-messages/…`. */
export async function startRig(models: JsonObject = {}): Promise<Rig> {
  const upstreams = {
    chat: await ScriptedUpstream.start(),
    messages: await ScriptedUpstream.start(),
  };
  const gateway = await startTestGateway({
    ...upstreamConfig(upstreams.chat.port, upstreams.messages.port),
    models,
  });
  let played = 0;
  return {
    gateway,
    upstreams,
    play: (upstream, ...answers) => {
      played += 1;
      const name = `model-${played}`;
      return {
        model: `up-${upstream}/${name}`,
        script: upstreams[upstream].script(name, ...answers),
      };
    },
    playRoute: (route, upstream, ...answers) => ({
      model: route,
      script: upstreams[upstream].script(route, ...answers),
    }),
    stop: async () => {
      await gateway.stop();
      await Promise.all([upstreams.chat.close(), upstreams.messages.close()]);
    },
  };
}

/** A minimal legal request of a dialect. */
export function requestBody(
  dialect: Dialect,
  { model, stream, more = {} }: { model: string; stream: boolean; more?: JsonObject },
): JsonObject {
  return {
    model,
    messages: [{ role: 'user', content: 'Hello' }],
    ...(dialect === 'messages' ? { max_tokens: 100 } : {}),
    ...(stream ? { stream: true } : {}),
    ...(stream && dialect === 'chat' ? { stream_options: { include_usage: true } } : {}),
    ...more,
  };
}

/** Sends a body to the dialect's endpoint. */
export function ask(
  rig: Rig,
  dialect: Dialect,
  body: unknown,
  sending: Sending = {},
): Promise<HttpReply> {
  return send(`${rig.gateway.url}${endpointOf[dialect]}`, body, sending);
}
