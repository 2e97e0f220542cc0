/**
 * AWS's library of credentials is loaded for the first key that is fetched by it, and never where keys are at hand or
 * come from the role of a machine (decisions 0055 and 0057).
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { it } from 'node:test';
import { temporaryFolder } from '../support/folders.ts';
import { startTestGateway } from '../support/gateway.ts';
import { send } from '../support/http.ts';
import { assertSigned } from '../upstream/aws.ts';
import { converseAnswer } from '../upstream/converse.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { pathOf, region, withKeys } from './bedrock-scene.ts';

/** Its modules are CommonJS: whoever loads them, they are in the cache of `require`. */
function loaded(): boolean {
  const { cache } = createRequire(import.meta.url);
  return Object.keys(cache).some((path) => /@aws-sdk.credential-prov/.test(path));
}

const keys = {
  accessKeyId: 'ASIAINSTANCE00000000',
  secretAccessKey: 'instance-secret-canary',
  sessionToken: 'instance-session-canary',
};
const sessionToken = 'imds-token';
const roles = '/latest/meta-data/iam/security-credentials/';

it('bedrock 29 a role of the machine signs, by IMDSv2; the library is loaded for a profile, and not before', async (t) => {
  const asked: string[] = [];
  const machine = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    asked.push(`${method} ${url}`);
    if (method === 'PUT' && url === '/latest/api/token') {
      response.end(sessionToken);
      return;
    }
    // Without a token of its own a request is one of IMDSv1.
    assert.equal(headers['x-aws-ec2-metadata-token'], sessionToken);
    if (url === roles) response.end('the-role');
    else {
      response.end(
        JSON.stringify({
          Code: 'Success',
          Type: 'AWS-HMAC',
          LastUpdated: new Date().toISOString(),
          AccessKeyId: keys.accessKeyId,
          SecretAccessKey: keys.secretAccessKey,
          Token: keys.sessionToken,
          Expiration: new Date(Date.now() + 3_600_000).toISOString(),
        }),
      );
    }
  });
  await new Promise<void>((resolve) => machine.listen(0, '127.0.0.1', resolve));
  t.after(() => machine.close());
  const { port } = machine.address() as AddressInfo;
  const bedrock = await ScriptedUpstream.start();
  t.after(() => bedrock.close());
  const endpoint = `http://127.0.0.1:${bedrock.port}`;
  const files = temporaryFolder('aws-loading');
  const file = join(files, 'credentials');
  writeFileSync(
    file,
    '[plain]\naws_access_key_id = AKIAPLAIN00000000000\naws_secret_access_key = plain-secret\n',
  );
  const gateway = await startTestGateway(
    {
      providers: {
        keyed: { like: 'bedrock', ...withKeys(endpoint) },
        machine: { like: 'bedrock', region, endpoint, auth: 'instance' },
        profile: { like: 'bedrock', region, endpoint, profile: 'plain' },
      },
    },
    {
      env: {
        AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://127.0.0.1:${port}`,
        AWS_SHARED_CREDENTIALS_FILE: file,
        AWS_CONFIG_FILE: join(files, 'config'),
      },
    },
  );
  t.after(() => gateway.stop());
  const model = 'amazon.nova-pro-v1:0';
  const ask = async (provider: string): Promise<void> => {
    const body = {
      model: `${provider}/${model}`,
      messages: [{ role: 'user', content: 'Hello' }],
    };
    const reply = await send(`${gateway.url}/v1/chat/completions`, body);
    assert.equal(reply.status, 200, reply.text);
  };
  const script = bedrock.script(pathOf(model, 'converse'), converseAnswer());
  await ask('keyed');
  assert.ok(!loaded());
  assert.deepEqual(asked, []);

  await ask('machine');
  await ask('machine');
  assert.ok(!loaded());
  assert.deepEqual(asked, ['PUT /latest/api/token', `GET ${roles}`, `GET ${roles}the-role`]);
  const [, first, second] = script.requests;
  assert.ok(first !== undefined && second !== undefined);
  await assertSigned(first, keys, { region });
  await assertSigned(second, keys, { region });

  await ask('profile');
  assert.ok(loaded());
  assert.equal(asked.length, 3);
});
