/** Where agents play: a gateway on scripted upstreams of all three dialects. */
import type { TestConfig, TestGateway } from '../support/gateway.ts';
import { startRig, type Played } from '../support/rig.ts';
import { ScriptedUpstream, type Scripted } from '../upstream/scripted.ts';
import type { Wire } from './turn.ts';

/** What a scene needs. */
export interface Stage {
  readonly gateway: TestGateway;
  /** Sets the answers of a model that no other test uses. */
  play(upstream: Wire, ...answers: readonly Scripted[]): Played;
}

export interface FullStage extends Stage {
  readonly upstreams: { readonly [W in Wire]: ScriptedUpstream };
  stop(): Promise<void>;
}

/** Targets of routes are `up-chat/…`, `up-messages/…`, `up-responses/…`. */
export async function startStage(
  config: Pick<TestConfig, 'models' | 'responses' | 'clients'> = {},
): Promise<FullStage> {
  const responses = await ScriptedUpstream.start();
  const base_url = `http://127.0.0.1:${responses.port}/v1`;
  const provider = { dialect: 'openai-responses', base_url, api_key: 'upstream-responses-key' };
  const rig = await startRig({ ...config, providers: { 'up-responses': provider } });
  let played = 0;
  return {
    gateway: rig.gateway,
    upstreams: { ...rig.upstreams, responses },
    play: (upstream, ...answers) => {
      if (upstream !== 'responses') return rig.play(upstream, ...answers);
      played += 1;
      const name = `responding-${played}`;
      return { model: `up-responses/${name}`, script: responses.script(name, ...answers) };
    },
    stop: async () => {
      await rig.stop();
      await responses.close();
    },
  };
}
