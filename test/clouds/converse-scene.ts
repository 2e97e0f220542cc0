/** A gateway on Bedrock whose calls go by Converse. */
import type { JsonObject } from '../../src/json/value.ts';
import { send, type Reply } from '../support/http.ts';
import type { AnyDialect } from '../support/reading.ts';
import { endpointOf, requestBody } from '../support/requests.ts';
import { assertSigned } from '../upstream/aws.ts';
import { assertTaken } from '../upstream/converse.ts';
import type { Received, Scripted } from '../upstream/scripted.ts';
import {
  fixedKeys,
  pathOf,
  region,
  startBedrock,
  withKeys,
  type BedrockScene,
} from './bedrock-scene.ts';

export const nova = 'eu.amazon.nova-pro-v1:0';
export const claude = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';

/** `bedrock`: the usual doors; `converse`: Claude too. */
export function startConverse(): Promise<BedrockScene> {
  return startBedrock(({ bedrock }) => ({
    providers: {
      bedrock: withKeys(bedrock),
      converse: { like: 'bedrock', ...withKeys(bedrock), door: 'converse' },
    },
  }));
}

export interface ConverseCall {
  readonly dialect?: AnyDialect;
  /** The provider's name of the model. */
  readonly model?: string;
  readonly stream?: boolean;
  readonly more?: JsonObject;
}

export interface ConverseReply {
  readonly reply: Reply;
  /** What the server got, in order. */
  readonly received: readonly Received[];
}

/** Plays one call; each request of it must be signed, and one that the service takes. */
export async function callConverse(
  { bedrock, gateway }: BedrockScene,
  { dialect = 'chat', model = nova, stream = false, more = {} }: ConverseCall,
  ...answers: readonly Scripted[]
): Promise<ConverseReply> {
  const path = pathOf(model, stream ? 'converse-stream' : 'converse');
  const { requests } = bedrock.script(path, ...answers);
  const body = requestBody(dialect, { model: `converse/${model}`, stream, more });
  const reply = await send(`${gateway.url}${endpointOf[dialect]}`, body);
  for (const received of requests) {
    assertTaken(received);
    await assertSigned(received, fixedKeys, { region });
  }
  return { reply, received: requests };
}
