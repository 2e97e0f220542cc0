/** `check --ask`: does the credential of each provider work, and which models does it see? */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkCommand } from '../../src/cli/commands/check.ts';
import { askProviders } from '../../src/compose/commands/admin-of-directory.ts';
import { describeProviders } from '../../src/compose/providers.ts';
import { providerRows } from '../../src/providers/compatible.ts';
import { run } from '../unit/cli-config/context.ts';
import { scene } from '../unit/config/scene.ts';
import { ScriptedUpstream } from '../upstream/scripted.ts';
import { TokenServer } from '../upstream/token-server.ts';

const knownProviders = new Map(providerRows.map((row) => [row.id, row]));

let azure: ScriptedUpstream;
let tokens: TokenServer;
before(async () => {
  azure = await ScriptedUpstream.start();
  tokens = await TokenServer.start();
});
after(async () => {
  await azure.close();
  await tokens.close();
});

const secret = 'client-secret-canary';

function yamlOf(): string {
  const base = `http://127.0.0.1:${azure.port}`;
  const app = `auth: entra, tenant_id: t, client_secret: ${secret}`;
  return `
providers:
  keyed: { like: azure, base_url: '${base}', api_key: key-canary-1 }
  wrong: { like: azure, base_url: '${base}', api_key: key-canary-2 }
  app: { like: azure, base_url: '${base}', ${app}, client_id: app-1 }
`;
}

describe('azure: check --ask', () => {
  it('reports each credential, and fails where one does not work', async () => {
    azure.script('/openai/v1/models', ({ header }) =>
      header('api-key') === 'key-canary-1'
        ? { body: JSON.stringify({ data: [{ id: 'gpt-4.1' }, { id: 'gpt-5-mini' }] }) }
        : {
            status: 401,
            body: JSON.stringify({
              error: { code: '401', message: 'Access denied due to invalid subscription key.' },
            }),
          },
    );
    tokens.play({
      status: 401,
      body: {
        error: 'invalid_client',
        error_description: `AADSTS7000215: Invalid client secret ${secret}.`,
      },
    });
    const { directory } = scene(yamlOf());
    const command = checkCommand({
      cwd: directory,
      knownProviders,
      describeProviders,
      askProviders,
    });
    const env = { AZURE_AUTHORITY_HOST: tokens.url };
    const { code, out, err } = await run(command, ['--ask'], env);
    assert.equal(code, 1, err);
    assert.match(out, /^ +keyed +works +lists 2 models$/m);
    assert.match(
      out,
      /^ +wrong +fails +refused the credential \(401\): Access denied due to invalid/m,
    );
    assert.match(out, /^ +app +fails +No token \(Entra app app-1, client secret\).*AADSTS7000215/m);
    assert.doesNotMatch(out + err, /canary/);
    const asJson = await run(command, ['--ask', '--json'], env);
    assert.equal(asJson.code, 1);
    assert.match(asJson.out, /"asked": \[/);
    assert.doesNotMatch(asJson.out, /canary/);
  });

  it('sends nothing without it', async () => {
    const before = azure.all.length;
    const { directory } = scene(yamlOf());
    const command = checkCommand({
      cwd: directory,
      knownProviders,
      describeProviders,
      askProviders,
    });
    const { code, out } = await run(command, [], { AZURE_AUTHORITY_HOST: tokens.url });
    assert.equal(code, 0);
    assert.doesNotMatch(out, /works|fails/);
    assert.equal(azure.all.length, before);
  });
});
