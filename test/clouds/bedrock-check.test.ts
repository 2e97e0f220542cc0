/** `check` for Bedrock: what lets calls in, never a value, and with `--ask` whether it works. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkCommand } from '../../src/cli/commands/check.ts';
import { askProviders } from '../../src/compose/commands/admin-of-directory.ts';
import { describeProviders } from '../../src/compose/providers.ts';
import { providerRows } from '../../src/providers/compatible.ts';
import { run } from '../unit/cli-config/context.ts';
import { scene } from '../unit/config/scene.ts';
import { awsError } from '../upstream/aws.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { claude } from './bedrock-scene.ts';

const knownProviders = new Map(providerRows.map((row) => [row.id, row]));
const means = { knownProviders, describeProviders, askProviders };
const profiles = '/inference-profiles?maxResults=1000&type=SYSTEM_DEFINED';
const models = '/foundation-models?byOutputModality=TEXT&byInferenceType=ON_DEMAND';

let bedrock: ScriptedUpstream;
before(async () => {
  bedrock = await ScriptedUpstream.start();
});
after(() => bedrock.close());

function yamlOf(): string {
  const at = `like: bedrock, region: eu-central-1, control_endpoint: 'http://127.0.0.1:${bedrock.port}'`;
  return `
providers:
  keys: { ${at}, access_key_id: AKIACANARY0123456789, secret_access_key: secret-canary }
  bearer: { ${at}, api_key: bearer-canary, guardrail: 'g1:2', request_metadata: { team: search } }
  machine: { like: bedrock, region: eu-central-1, auth: instance, door: converse }
`;
}

describe('bedrock: check', () => {
  it('names the source of each credential and what is set, and never a secret', async () => {
    const { directory } = scene(yamlOf());
    const { code, out, err } = await run(checkCommand({ cwd: directory, ...means }), [], {});
    assert.equal(code, 0, err);
    assert.match(out, /keys +.*keys of the config/);
    assert.match(out, /bearer +.*key of the config/);
    assert.match(out, /machine +.*role of the instance/);
    assert.match(out, /providers\.bearer\.guardrail +g1:2/);
    assert.match(out, /providers\.bearer\.request_metadata\.team +search/);
    assert.match(out, /providers\.machine\.door +converse/);
    assert.doesNotMatch(out + err, /secret-canary|bearer-canary/);
  });

  it('--ask of a role that may call models and not list them: the credential works', async () => {
    const told =
      'User: arn:aws:sts::123456789012:assumed-role/gateway/i is not authorized to perform: bedrock:ListInferenceProfiles because no identity-based policy allows it';
    bedrock.script(profiles, awsError(403, 'AccessDeniedException', { message: told }));
    bedrock.script(models, awsError(403, 'AccessDeniedException', { message: told }));
    const yaml = yamlOf().replace(/ {2}(machine|bearer).*\n/g, '');
    const { directory } = scene(yaml);
    const { code, out, err } = await run(checkCommand({ cwd: directory, ...means }), ['--ask'], {});
    assert.equal(code, 0, err);
    assert.match(
      out,
      /^ +keys +works +lets the credential in, but not list models \(403\): User: .*ListInferenceProfiles/m,
    );
  });

  it('--ask reports whether each credential works', async () => {
    bedrock.script(profiles, ({ header }) =>
      header('authorization')?.startsWith('AWS4-HMAC-SHA256') === true
        ? {
            body: JSON.stringify({
              inferenceProfileSummaries: [{ inferenceProfileId: claude, status: 'ACTIVE' }],
            }),
          }
        : awsError(403, 'AccessDeniedException', {
            Message: 'Authentication failed: bearer-canary',
          }),
    );
    bedrock.script(models, awsError(403, 'AccessDeniedException', { message: 'not authorized' }));
    const yaml = yamlOf().replace(/ {2}machine.*\n/, '');
    const { directory } = scene(yaml);
    const command = checkCommand({ cwd: directory, ...means });
    const { code, out, err } = await run(command, ['--ask'], {});
    assert.equal(code, 1, err);
    assert.match(out, /^ +keys +works +lists 1 models$/m);
    assert.match(out, /^ +bearer +fails +refused the credential \(403\)/m);
    assert.doesNotMatch(out + err, /secret-canary|bearer-canary/);
  });
});
