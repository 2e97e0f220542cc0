/** Which models Bedrock is shown to have (wire/bedrock.md §9, §13: 51). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { send } from '../support/http.ts';
import { assertSigned, awsError } from '../upstream/aws.ts';
import type { Answer } from '../upstream/scripted.ts';
import {
  claude,
  fixedKeys,
  region,
  startBedrock,
  withKeys,
  type BedrockScene,
} from './bedrock-scene.ts';

const arn = 'arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc123def456';
const profiles = '/inference-profiles?maxResults=1000&type=SYSTEM_DEFINED';
const models = '/foundation-models?byOutputModality=TEXT&byInferenceType=ON_DEMAND';

const profile = (inferenceProfileId: string, status = 'ACTIVE'): JsonObject => ({
  inferenceProfileId,
  inferenceProfileName: inferenceProfileId,
  status,
  type: 'SYSTEM_DEFINED',
});
const page = (value: JsonObject): Answer => ({ body: JSON.stringify(value) });

async function withLists(run: (scene: BedrockScene) => Promise<void>): Promise<void> {
  const scene = await startBedrock(({ bedrock }) => ({
    providers: {
      listed: { like: 'bedrock', ...withKeys(bedrock), control_endpoint: bedrock },
      named: { like: 'bedrock', ...withKeys(bedrock), deployments: { [arn]: 'claude-x' } },
    },
  }));
  await run(scene).finally(() => scene.stop());
}

async function listed({ gateway }: BedrockScene): Promise<readonly string[]> {
  const reply = await send(`${gateway.url}/v1/models`, undefined);
  const ids = (reply.json['data'] as { id: string }[]).map(({ id }) => id);
  return ids.filter((id) => !id.startsWith('local/')).toSorted();
}

describe('bedrock 51: lists', () => {
  it('profiles page by page and models on demand, asked for with a signature', async () => {
    await withLists(async (scene) => {
      const nova = 'eu.amazon.nova-pro-v1:0';
      const pages = [
        scene.bedrock.script(
          profiles,
          page({ inferenceProfileSummaries: [profile(claude)], nextToken: 'a+b' }),
        ),
        scene.bedrock.script(
          `${profiles}&nextToken=a%2Bb`,
          page({ inferenceProfileSummaries: [profile(nova), profile('eu.meta.old', 'INACTIVE')] }),
        ),
        scene.bedrock.script(
          models,
          page({
            modelSummaries: [
              { modelId: 'amazon.nova-micro-v1:0', modelLifecycle: { status: 'ACTIVE' } },
              { modelId: 'amazon.titan-text-v1', modelLifecycle: { status: 'LEGACY' } },
            ],
          }),
        ),
      ];
      const shown = [claude, nova, 'amazon.nova-micro-v1:0'].map((id) => `listed/${id}`);
      assert.deepEqual(await listed(scene), [...shown, `named/${arn}`].toSorted());
      for (const { requests } of pages) {
        const [received] = requests;
        assert.ok(received !== undefined);
        await assertSigned(received, fixedKeys, { region });
      }
    });
  });

  it('what the account may list is shown, and what the config names', async () => {
    await withLists(async (scene) => {
      const refused = awsError(403, 'AccessDeniedException', { message: 'not authorized' });
      scene.bedrock.script(profiles, page({ inferenceProfileSummaries: [profile(claude)] }));
      scene.bedrock.script(models, refused);
      assert.deepEqual(await listed(scene), [`listed/${claude}`, `named/${arn}`]);
    });
  });

  it('where nothing may be listed, the names of the config stay', async () => {
    await withLists(async (scene) => {
      const refused = awsError(403, 'AccessDeniedException', { message: 'not authorized' });
      scene.bedrock.script(profiles, refused);
      assert.deepEqual(await listed(scene), [`named/${arn}`]);
    });
  });
});
