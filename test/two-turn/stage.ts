/** A scripted upstream of each dialect under many vendors' names, and a gateway that can be started again. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startGateway } from '../../src/main.ts';
import type { RunningGateway } from '../../src/compose/start.ts';
import { temporaryFolder } from '../support/folders.ts';
import { providerAt } from '../support/gateway.ts';
import { adminToken, clientKey } from '../support/keys.ts';
import { eventStreamType } from '../upstream/aws.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';

export interface Stage {
  readonly chat: ScriptedUpstream;
  readonly messages: ScriptedUpstream;
  readonly responses: ScriptedUpstream;
  readonly gemini: ScriptedUpstream;
  readonly converse: ScriptedUpstream;
  url(): string;
  /** Ends the gateway and starts it on the same directory: what it held in memory is gone. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const chatVendors = [
  'deepseek',
  'moonshot',
  'groq',
  'openrouter',
  'gemini-compatible',
  'mistral',
] as const;

export async function startStage(): Promise<Stage> {
  const chat = await ScriptedUpstream.start();
  const messages = await ScriptedUpstream.start();
  const responses = await ScriptedUpstream.start();
  const gemini = await ScriptedUpstream.start();
  const converse = await ScriptedUpstream.start(eventStreamType);
  const directory = temporaryFolder('two-turn');
  const config = join(directory, 'gateway.yaml');
  const base_url = `http://127.0.0.1:${chat.port}/v1`;
  const vendors = chatVendors.map((id) => [id, { base_url, api_key: `key-of-${id}` }]);
  await writeFile(
    config,
    JSON.stringify({
      providers: {
        ...Object.fromEntries(vendors),
        anthropic: { base_url: `http://127.0.0.1:${messages.port}`, api_key: 'key-of-anthropic' },
        openai: {
          dialect: 'openai-responses',
          base_url: `http://127.0.0.1:${responses.port}/v1`,
          api_key: 'key-of-openai',
        },
        gemini: { base_url: `http://127.0.0.1:${gemini.port}/v1beta`, api_key: 'key-of-gemini' },
        bedrock: providerAt('converse', converse.port, { door: 'converse' }),
      },
    }),
  );
  const open = (): Promise<RunningGateway> =>
    startGateway({
      flags: {
        listen: '127.0.0.1:0',
        'admin-listen': '127.0.0.1:0',
        'data-dir': join(directory, 'data'),
        config,
        'log-level': 'silent',
      },
      env: { MODEL_GATEWAY_KEY: clientKey, MODEL_GATEWAY_ADMIN_TOKEN: adminToken },
      cwd: directory,
    });
  let running = await open();
  return {
    chat,
    messages,
    responses,
    gemini,
    converse,
    url: () => running.url,
    restart: async () => {
      await running.stop();
      running = await open();
    },
    stop: async () => {
      await running.stop();
      const all = [chat, messages, responses, gemini, converse];
      await Promise.all(all.map((upstream) => upstream.close()));
    },
  };
}
