/** What lets calls in at Bedrock: keys, profiles, roles, and their renewal (wire/bedrock.md §13: 25, 27–31, 54). */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '../../src/json/value.ts';
import { temporaryFolder } from '../support/folders.ts';
import { send, type Reply } from '../support/http.ts';
import { requestBody } from '../support/requests.ts';
import { assertSigned, awsError, type TestKeys } from '../upstream/aws.ts';
import type { Answer, Script, Scripted } from '../upstream/scripted.ts';
import type { TokenReply } from '../upstream/token-server.ts';
import {
  claude,
  claudeDocument,
  fixedKeys,
  pathOf,
  region,
  startBedrock,
  withKeys,
  type BedrockScene,
} from './bedrock-scene.ts';

const files = temporaryFolder('bedrock-files');
const invoke = pathOf(claude, 'invoke');
const bearer = 'bedrock-api-key-canary0123456789';

/** Temporary keys by the number of their fetch. */
function temporary(n: number): Required<TestKeys> {
  return {
    accessKeyId: `ASIACANARY000000000${n}`,
    secretAccessKey: `temporary-secret-canary-${n}`,
    sessionToken: `session-token-canary-${n}`,
  };
}

function granted(n: number, lifeMs = 3_600_000): TokenReply {
  const { accessKeyId, secretAccessKey, sessionToken } = temporary(n);
  return {
    body: {
      AccessKeyId: accessKeyId,
      SecretAccessKey: secretAccessKey,
      Token: sessionToken,
      Expiration: new Date(Date.now() + lifeMs).toISOString(),
    },
  };
}

/** As STS answers, in XML. */
function assumed(action: string, n: number): TokenReply {
  const { accessKeyId, secretAccessKey, sessionToken } = temporary(n);
  const end = new Date(Date.now() + 3_600_000).toISOString();
  return {
    headers: { 'content-type': 'text/xml' },
    body: `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><Credentials><AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey><SessionToken>${sessionToken}</SessionToken><Expiration>${end}</Expiration></Credentials></${action}Result></${action}Response>`,
  };
}

let scene: BedrockScene;

before(async () => {
  writeFileSync(
    join(files, 'credentials'),
    '[plain]\naws_access_key_id = AKIAPLAIN00000000000\naws_secret_access_key = plain-secret\n',
  );
  writeFileSync(
    join(files, 'config'),
    `[profile chained]\nrole_arn = arn:aws:iam::123456789012:role/chained\nsource_profile = plain\nregion = ${region}\n` +
      `[profile program]\ncredential_process = "${process.execPath}" "${join(files, 'program.mjs')}"\n` +
      '[profile gone]\nsource_profile = nothing\nrole_arn = arn:aws:iam::123456789012:role/gone\n',
  );
  writeFileSync(
    join(files, 'program.mjs'),
    'console.log(JSON.stringify({ Version: 1, AccessKeyId: "AKIAPROGRAM000000000", SecretAccessKey: "program-secret" }));',
  );
  writeFileSync(join(files, 'token'), 'web-identity-token-canary-1');
  scene = await startBedrock(
    ({ bedrock }) => {
      const like = { like: 'bedrock', region, endpoint: bedrock };
      return {
        providers: {
          bearer: { ...like, api_key: bearer },
          keys: { like: 'bedrock', ...withKeys(bedrock) },
          both: { like: 'bedrock', ...withKeys(bedrock), api_key: bearer },
          container: { ...like, auth: 'container' },
          identity: { ...like, auth: 'web_identity' },
          plain: { ...like, profile: 'plain' },
          chained: { ...like, auth: 'profile', profile: 'chained' },
          program: { ...like, profile: 'program' },
          gone: { ...like, profile: 'gone' },
        },
        models: { safe: { targets: [`gone/${claude}`, `keys/${claude}`] } },
      };
    },
    ({ tokens }) => ({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${tokens.url}/container`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'container-token-canary',
      AWS_ENDPOINT_URL_STS: tokens.url,
      AWS_WEB_IDENTITY_TOKEN_FILE: join(files, 'token'),
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/pod',
      AWS_SHARED_CREDENTIALS_FILE: join(files, 'credentials'),
      AWS_CONFIG_FILE: join(files, 'config'),
    }),
  );
});
after(() => scene.stop());
beforeEach(() => {
  scene.tokens.asks.length = 0;
});

function ask(provider: string): Promise<Reply> {
  const model = provider === 'safe' ? provider : `${provider}/${claude}`;
  return send(
    `${scene.gateway.url}/v1/messages`,
    requestBody('messages', { model, stream: false }),
  );
}

function play(...answers: readonly Scripted[]): Script {
  return scene.bedrock.script(invoke, ...answers);
}

async function signedBy(script: Script, index: number, keys: TestKeys): Promise<void> {
  const received = script.requests[index];
  assert.ok(received !== undefined, `request ${index} is missing`);
  await assertSigned(received, keys, { region });
}

const ended: Answer = awsError(403, 'ExpiredTokenException', {
  message: 'The security token included in the request is expired',
});

describe('bedrock 27: what is there lets calls in', () => {
  for (const provider of ['bearer', 'both']) {
    it(`a key goes as a bearer token, before access keys (${provider})`, async () => {
      const script = play(claudeDocument());
      assert.equal((await ask(provider)).status, 200);
      const names = script.requests[0]?.headerLines.map(([name]) => name.toLowerCase()) ?? [];
      assert.equal(script.requests[0]?.header('authorization'), `Bearer ${bearer}`);
      assert.deepEqual(
        names.filter((name) => name.startsWith('x-')),
        [],
      );
    });
  }

  it('access keys of the config sign', async () => {
    const script = play(claudeDocument());
    assert.equal((await ask('keys')).status, 200);
    await signedBy(script, 0, fixedKeys);
  });

  it('a profile of the shared file signs', async () => {
    const script = play(claudeDocument());
    assert.equal((await ask('plain')).status, 200);
    const secretAccessKey = 'plain-secret';
    await signedBy(script, 0, { accessKeyId: 'AKIAPLAIN00000000000', secretAccessKey });
  });

  it('a program of a profile signs', async () => {
    const script = play(claudeDocument());
    assert.equal((await ask('program')).status, 200);
    const secretAccessKey = 'program-secret';
    await signedBy(script, 0, { accessKeyId: 'AKIAPROGRAM000000000', secretAccessKey });
  });

  it('a role of a profile signs, taken by the keys of another', async () => {
    scene.tokens.play(assumed('AssumeRole', 3));
    const script = play(claudeDocument());
    const reply = await ask('chained');
    assert.equal(reply.status, 200, reply.text);
    await signedBy(script, 0, temporary(3));
    const [asked] = scene.tokens.asks;
    assert.equal(asked?.form.get('Action'), 'AssumeRole');
    assert.equal(asked?.form.get('RoleArn'), 'arn:aws:iam::123456789012:role/chained');
    assert.match(String(asked?.headers['authorization']), /Credential=AKIAPLAIN00000000000\//);
  });
});

describe('bedrock 28: web identity', () => {
  it('the token of the file takes the role; the file is read anew for new keys', async () => {
    scene.tokens.play(
      assumed('AssumeRoleWithWebIdentity', 4),
      assumed('AssumeRoleWithWebIdentity', 5),
    );
    const script = play(claudeDocument(), ended, claudeDocument());
    assert.equal((await ask('identity')).status, 200);
    writeFileSync(join(files, 'token'), 'web-identity-token-canary-2');
    assert.equal((await ask('identity')).status, 200);
    await signedBy(script, 0, temporary(4));
    await signedBy(script, 1, temporary(4));
    await signedBy(script, 2, temporary(5));
    const asked = scene.tokens.asks.map(({ form }) => [
      form.get('Action'),
      form.get('RoleArn'),
      form.get('WebIdentityToken'),
    ]);
    const common = ['AssumeRoleWithWebIdentity', 'arn:aws:iam::123456789012:role/pod'];
    assert.deepEqual(asked, [
      [...common, 'web-identity-token-canary-1'],
      [...common, 'web-identity-token-canary-2'],
    ]);
  });
});

describe('bedrock 30, 31, 54: the role of a container', () => {
  it('one fetch for all calls; keys that ended are replaced once, and the call is repeated once', async () => {
    scene.tokens.play(granted(6), granted(7));
    const script = play(claudeDocument());
    const replies = await Promise.all(Array.from({ length: 6 }, () => ask('container')));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 200, 200, 200],
    );
    assert.equal(scene.tokens.asks.length, 1);
    assert.equal(scene.tokens.asks[0]?.headers['authorization'], 'container-token-canary');
    await signedBy(script, 5, temporary(6));
    const renewed = play(ended, claudeDocument());
    assert.equal((await ask('container')).status, 200);
    await signedBy(renewed, 0, temporary(6));
    await signedBy(renewed, 1, temporary(7));
    assert.equal(scene.tokens.asks.length, 2);
  });

  it('a second refusal is reported, and access that is denied fetches nothing', async () => {
    scene.tokens.play(granted(8));
    const twice = play(ended);
    const refused = await ask('container');
    assert.equal(refused.status, 400, refused.text);
    assert.equal(twice.requests.length, 2);
    scene.tokens.asks.length = 0;
    const message = 'User: arn:aws:sts::1:x is not authorized to perform: bedrock:InvokeModel';
    const denied = play(awsError(403, 'AccessDeniedException', { message }));
    const reply = await ask('container');
    assert.equal(reply.status, 400, reply.text);
    assert.equal(denied.requests.length, 1);
    assert.equal(scene.tokens.asks.length, 0);
    assert.doesNotMatch(reply.text, /arn:aws|canary/);
  });

  it('fixed keys that ended are not tried again', async () => {
    const script = play(ended);
    assert.equal((await ask('keys')).status, 400);
    assert.equal(script.requests.length, 1);
  });
});

describe('bedrock 25: the clock of this machine is wrong', () => {
  it('the time of the service is learned from its words, and the call repeated once', async () => {
    const now = new Date(Date.now() + 3_600_000).toISOString().replace(/[-:]|\.\d+/g, '');
    const message = `Signature expired: 20200101T000000Z is now earlier than ${now} (${now} - 5 min.)`;
    const script = play(awsError(403, 'InvalidSignatureException', { message }), claudeDocument());
    assert.equal((await ask('keys')).status, 200);
    await signedBy(script, 1, fixedKeys);
    const date = script.requests[1]?.header('x-amz-date') ?? '';
    assert.equal(date.slice(0, 11), now.slice(0, 11));
  });
});

describe('bedrock: keys that cannot be had', () => {
  it('the client learns that only the operator can help; another target answers', async () => {
    play(claudeDocument());
    const reply = await ask('gone');
    assert.equal(reply.status, 400, reply.text);
    const error = reply.json['error'] as JsonObject;
    assert.match(String(error['message']), /no valid credential for the provider/);
    assert.doesNotMatch(reply.text, /gone\b.*profile|canary/);
    assert.equal((await ask('safe')).status, 200);
  });
});
