/** A gateway between a test's client and scripted upstreams, one of each dialect. */
import { ScriptedUpstream, type Script, type Scripted } from '../upstream/scripted.ts';
import { eventStreamType } from '../upstream/aws.ts';
import type { JsonObject } from '../../src/json/value.ts';
import {
  providerAt,
  startTestGateway,
  upstreamConfig,
  type TestConfig,
  type TestGateway,
  type TestMeans,
} from './gateway.ts';
import { send, type Reply as HttpReply, type Sending } from './http.ts';
import { upstreamDialects, type UpstreamDialect } from './dialects.ts';
import { assertAnyStream } from './legality.ts';
import type { AnyDialect } from './reading.ts';
import { endpointOf } from './requests.ts';

export interface Played {
  /** The name that clients use. */
  readonly model: string;
  readonly script: Script;
}

export interface Rig {
  readonly gateway: TestGateway;
  readonly upstreams: { readonly [D in UpstreamDialect]: ScriptedUpstream };
  /** Sets the answers of a model that no other test uses. */
  play(upstream: UpstreamDialect, ...answers: readonly Scripted[]): Played;
  /** The same at a provider with short timeouts, which the rig has with `impatientConfig`. */
  playImpatient(upstream: UpstreamDialect, ...answers: readonly Scripted[]): Played;
  stop(): Promise<void>;
}

/** Timeouts of the impatient providers; everything else may take as long as it likes. */
export const impatience = { first_event: '300ms', document: '300ms', idle: '300ms' } as const;

/** A provider with short timeouts in front of each upstream, for `playImpatient`. */
export function impatientConfig(upstreams: Rig['upstreams']): TestConfig {
  const providers = upstreamDialects.map((upstream): [string, JsonObject] => [
    `impatient-${upstream}`,
    providerAt(upstream, upstreams[upstream].port, { timeouts: impatience }),
  ]);
  return { providers: Object.fromEntries(providers) };
}

/** Config that must know where the upstreams are. */
export type RigConfig = TestConfig | ((upstreams: Rig['upstreams']) => TestConfig);

async function startUpstreams(): Promise<Rig['upstreams']> {
  return {
    chat: await ScriptedUpstream.start(),
    messages: await ScriptedUpstream.start(),
    responses: await ScriptedUpstream.start(),
    gemini: await ScriptedUpstream.start(),
    converse: await ScriptedUpstream.start(eventStreamType),
  };
}

/** A gateway on all upstreams, and whatever else `config` adds. */
export async function startRig(wanted: RigConfig = {}, means: TestMeans = {}): Promise<Rig> {
  const upstreams = await startUpstreams();
  const config = typeof wanted === 'function' ? wanted(upstreams) : wanted;
  const basic = upstreamConfig((upstream) => upstreams[upstream].port);
  const everything: TestConfig = {
    ...config,
    providers: { ...basic.providers, ...config.providers },
  };
  const closeUpstreams = async (): Promise<void> => {
    await Promise.all(Object.values(upstreams).map((upstream) => upstream.close()));
  };
  // A start that is to fail leaves nothing open: the test's process would never end.
  const gateway = await startTestGateway(everything, means).catch(async (error: unknown) => {
    await closeUpstreams();
    throw error;
  });
  let played = 0;
  const playAt = (
    provider: string,
    upstream: UpstreamDialect,
    answers: readonly Scripted[],
  ): Played => {
    played += 1;
    const name = `model-${played}`;
    return { model: `${provider}/${name}`, script: upstreams[upstream].script(name, ...answers) };
  };
  return {
    gateway,
    upstreams,
    play: (upstream, ...answers) => playAt(`up-${upstream}`, upstream, answers),
    playImpatient: (upstream, ...answers) => playAt(`impatient-${upstream}`, upstream, answers),
    stop: async () => {
      await gateway.stop();
      await closeUpstreams();
    },
  };
}

export interface Asking extends Sending {
  /** The relayed upstream's frames are odd in a way that no client of the test minds. */
  readonly oddFrames?: true;
}

/** Sends a body to the dialect's endpoint. A stream that comes back complete must be a legal one. */
export async function ask(
  rig: Rig,
  dialect: AnyDialect,
  body: unknown,
  { oddFrames, ...sending }: Asking = {},
): Promise<HttpReply> {
  const reply = await send(`${rig.gateway.url}${endpointOf[dialect]}`, body, sending);
  const isStream = String(reply.headers['content-type']).startsWith('text/event-stream');
  if (isStream && reply.complete && oddFrames === undefined) {
    const relayed = reply.headers['x-gateway-mode'] === 'relay';
    assertAnyStream({ dialect, origin: relayed ? 'relayed' : 'own' }, body, reply.text);
  }
  return reply;
}
