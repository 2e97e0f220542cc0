/** A gateway on the Gemini API, played by a server that is strict about what it is asked (wire/gemini.md). */
import assert from 'node:assert/strict';
import type { JsonObject } from '../../src/json/value.ts';
import { startTestGateway, type TestConfig, type TestGateway } from '../support/gateway.ts';
import { send, type Reply } from '../support/http.ts';
import type { AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { assertTaken } from '../upstream/gemini.ts';
import { ScriptedUpstream, type Received, type Scripted } from '../upstream/scripted.ts';

export const geminiKey = 'AIza-gemini-canary-0123456789';

export interface GeminiScene {
  readonly gemini: ScriptedUpstream;
  readonly gateway: TestGateway;
  stop(): Promise<void>;
}

/** Without a config: the provider `gemini` at the scripted server. */
export async function startGemini(
  config: (address: string) => TestConfig = (address) => ({
    providers: { gemini: { base_url: `${address}/v1beta`, api_key: geminiKey } },
  }),
  env: (address: string) => { readonly [name: string]: string } = () => ({}),
): Promise<GeminiScene> {
  const gemini = await ScriptedUpstream.start();
  const address = `http://127.0.0.1:${gemini.port}`;
  const gateway = await startTestGateway(config(address), {
    env: env(address),
    random: () => 0,
  }).catch(async (error: unknown) => {
    await gemini.close();
    throw error;
  });
  return {
    gemini,
    gateway,
    stop: async () => {
      await gateway.stop();
      await gemini.close();
    },
  };
}

export interface GeminiCall {
  readonly dialect?: AnyDialect;
  /** The provider's name of the model. */
  readonly model: string;
  readonly stream?: boolean;
  readonly more?: JsonObject;
}

export interface GeminiReply {
  readonly reply: Reply;
  /** What the server got, in order. */
  readonly received: readonly Received[];
}

/** Plays one call; each request of it must be one that the service takes. */
export async function callGemini(
  { gemini, gateway }: GeminiScene,
  { dialect = 'chat', model, stream = false, more = {} }: GeminiCall,
  ...answers: readonly Scripted[]
): Promise<GeminiReply> {
  const { requests } = gemini.script(model, ...answers);
  const body = requestBody(dialect, { model: `gemini/${model}`, stream, more });
  const reply = await send(`${gateway.url}${endpointOf[dialect]}`, body);
  for (const received of requests) assertTaken(received);
  return { reply, received: requests };
}

const ofHttp: ReadonlySet<string> = new Set(['host', 'content-length', 'connection']);

/** The path with its query, and all headers besides those of HTTP itself. */
export function assertAsked(
  received: Received | undefined,
  path: string,
  method: 'POST' | 'GET' = 'POST',
): void {
  assert.ok(received !== undefined, 'nothing was asked');
  assert.equal(`${received.method} ${received.path}`, `${method} ${path}`);
  const sent = received.headerLines
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !ofHttp.has(name));
  assert.deepEqual(Object.fromEntries(sent), {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'x-goog-api-key': geminiKey,
  });
}
