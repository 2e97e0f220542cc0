/** The config file as the editor of the dashboard shows it, and what it takes back (issue 24). */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundKeys, isHidden } from '../../../src/config/edit/fields.ts';
import { maskFile, type MaskedFile } from '../../../src/config/edit/masked-file.ts';
import { publishedSchema } from '../../../src/config/schema.ts';
import { isObject } from '../../../src/json/value.ts';

function masked(text: string): MaskedFile {
  const file = maskFile(text);
  assert.ok('text' in file, JSON.stringify(file));
  return file;
}

function restored(text: string, typed: string): string {
  const result = masked(text).restore(typed);
  assert.ok('text' in result, JSON.stringify(result));
  return result.text;
}

function refusals(text: string, typed: string): readonly string[] {
  const result = masked(text).restore(typed);
  assert.ok(!('text' in result), 'it was taken');
  return result.map(({ line, path, message }) => `${line}: ${path}: ${message}`);
}

/** Everything that can be a secret, in each style of YAML, with comments and odd formatting. */
const everySecret = `# Gateway of the team   (kept as it is)
listen: 127.0.0.1:8686

providers:
  openai:            # main account
    api_key: canary-plain
  several: { like: openai, api_key: [ "canary-double", 'canary-single' ], base_url: "https://a.example/v1" }
  named:
    like: openai
    base_url: https://b.example/v1
    credentials: {one: canary-one, two: "canary-two"}
    headers:
      x-auth: Bearer canary-header
      x-ref: Bearer \${TEAM_TOKEN}
    proxy: http://user:canary-proxy@proxy.example:3128
  block:
    like: openai
    base_url: https://c.example/v1
    api_key: &shared |
      canary-block
  folded:
    like: openai
    base_url: https://d.example/v1
    api_key: !!str
      canary-on-its-own-line
  alias: { like: openai, base_url: https://e.example/v1, api_key: *shared }
  azure: { resource: team, auth: entra, client_secret: canary-azure }
  bedrock: { region: eu-central-1, secret_access_key: canary-aws, session_token: canary-session }
  slip: { base_url: "https://f.example/v1", api-key: canary-unknown-member }
  query: { like: openai, base_url: "https://g.example/v1?key=canary-query" }
# api_key: canary-comment
# DB_PASSWORD=canary2
# POSTGRES_PASSWORD: canary2
# access_token: canary1
# OPENAI_API_KEY=canary-1234
# AWS_SECRET_ACCESS_KEY=canary-5
# the passphrase: canary-6
# Rotate on Mondays, see the wiki.
models:
  fast: openai/gpt-5-mini   # the usual one
storage:
  database: postgres://gw:canary-postgres@db.example:5432/gw?sslmode=verify-full
  counters: "redis://:canary-redis@cache.example:6379/0"
webhooks:
  - { url: https://hooks.example/services/canary-hook, format: slack }
  - url: https://hooks.example/canary-signed
    secret: canary-signature
traces: { endpoint: "http://collector.example:4318", headers: { authorization: "Basic canary-trace" } }
oidc:
  issuer: https://login.example.com
  client_id: gateway
  client_secret: >-
    canary-oidc
  url: https://gateway.example.com
keys:
  ci: { digest: 'sha256:${'a'.repeat(64)}', models: ['*'] }
`;

describe('S4 issue 24: secrets of the config file', () => {
  it('are replaced wherever they stand; all other text stays', () => {
    const { text } = masked(everySecret);
    assert.doesNotMatch(text, /canary/);
    for (const kept of [
      '# Gateway of the team   (kept as it is)\nlisten: 127.0.0.1:8686\n\nproviders:',
      '  openai:            # main account\n    api_key: "<kept: providers.openai.api_key>"\n',
      'x-ref: Bearer ${TEAM_TOKEN}',
      'api_key: *shared',
      '# Rotate on Mondays, see the wiki.',
      'fast: openai/gpt-5-mini   # the usual one',
      '# <kept: comment 1>',
      'base_url: "https://a.example/v1" }',
      'issuer: https://login.example.com',
      `sha256:${'a'.repeat(64)}`,
    ]) {
      assert.ok(text.includes(kept), `${kept}\n\n${text}`);
    }
  });

  it('come back byte for byte when nothing else was changed', () => {
    assert.equal(restored(everySecret, masked(everySecret).text), everySecret);
    const windows = everySecret.replaceAll('\n', '\r\n');
    assert.equal(restored(windows, masked(windows).text), windows);
    const marked = `\uFEFF${everySecret}`;
    assert.equal(restored(marked, masked(marked).text), marked);
  });

  it('come back in another form where their own does not fit', () => {
    const text = 'providers:\n  a:\n    like: openai\n    api_key: |\n      one\n      two\n';
    const typed = 'providers: { a: { like: openai, api_key: "<kept: providers.a.api_key>" } }\n';
    assert.equal(
      restored(text, typed),
      'providers: { a: { like: openai, api_key: "one\\ntwo\\n" } }\n',
    );
  });

  it('keep their line numbers for problems', () => {
    const text = 'providers:\n  a:\n    api_key: |\n      one\n      two\nmodels: {}\n';
    const result = masked(text).restore(masked(text).text);
    assert.ok('text' in result);
    // The key takes three lines on disk and one in the editor.
    assert.deepEqual(
      [1, 3, 4, 5, 6].map((line) => result.typedLine(line)),
      [1, 3, 3, 3, 4],
    );
  });

  it('every value whose name in the schema sounds like a secret is hidden', () => {
    const found = leafPaths(publishedSchema(), []);
    const secret =
      /^(api_key|secret|.*_secret|.*_token|secret_access_key|headers|password|credentials)$/;
    const open = found.filter(
      (path) =>
        // A text there is the path of a file.
        path.at(-1) !== 'credentials' &&
        path.some((step) => secret.test(String(step))) &&
        !isHidden(path, 'neither-a-reference'),
    );
    assert.ok(found.length > 150, String(found.length));
    assert.deepEqual(open, []);
  });

  it('every value whose name in the schema sounds like an address is bound to the secrets beside it', () => {
    // These hold their own password, or are no address of another server.
    const apart = new Set([
      'admin_listen',
      'counters',
      'database',
      'endpoints',
      'listen',
      'trusted_proxies',
    ]);
    const address =
      /url|uri|endpoint|issuer|proxy|proxies|host|server|address|listen|^(?:database|counters|like|resource|region|location|tenant_id)$/;
    const names = leafPaths(publishedSchema(), []).map(
      (path) => path.findLast((step) => typeof step === 'string') ?? '',
    );
    const found = [...new Set(names.map(String))].filter((name) => address.test(name));
    assert.ok(found.includes('control_endpoint') && found.length > 12, found.join());
    assert.deepEqual(
      found.filter((name) => !boundKeys.has(name) && !apart.has(name)),
      [],
    );
  });
});

/** Paths of all values; NAME stands for any name. */
function leafPaths(schema: unknown, path: readonly (string | number)[]): (string | number)[][] {
  if (!isObject(schema) || path.length > 12) return [];
  const { anyOf, properties, additionalProperties, items } = schema;
  return [
    ...(schema['type'] === 'string' ? [[...path]] : []),
    ...(Array.isArray(anyOf) ? anyOf.flatMap((each) => leafPaths(each, path)) : []),
    ...Object.entries(isObject(properties) ? properties : {}).flatMap(([name, each]) =>
      leafPaths(each, [...path, name]),
    ),
    ...leafPaths(additionalProperties, [...path, 'NAME']),
    ...leafPaths(items, [...path, 0]),
  ];
}

describe('S4 issue 24: placeholders', () => {
  const two =
    'providers:\n  a: { like: openai, api_key: canary-a, base_url: "https://a.example/v1" }\n  b: { like: openai, api_key: canary-b, base_url: "https://b.example/v1" }\n';

  it('that point to nothing are refused by name', () => {
    const typed = masked(two).text.replace('<kept: providers.a.api_key>', '<kept: providers.x>');
    assert.deepEqual(refusals(two, typed), [
      '2: providers.a.api_key: <kept: providers.x> stands for no value of the file: type the value',
    ]);
    const within = masked(two).text.replace('"<kept: providers.a', '"Bearer <kept: providers.a');
    assert.match(refusals(two, within)[0] ?? '', /stands for no value/);
  });

  it('that were moved are refused by name: to another provider, into a name, into a comment', () => {
    const { text } = masked(two);
    const moved = text.replace('<kept: providers.b.api_key>', '<kept: providers.a.api_key>');
    assert.deepEqual(refusals(two, moved), [
      '3: providers.b.api_key: <kept: providers.a.api_key> was moved from its path: type the value again',
    ]);
    const model = `${text}models: { fast: "<kept: providers.a.api_key>" }\n`;
    assert.match(refusals(two, model)[0] ?? '', /^4: models\.fast: .* was moved/);
    const name = `${text}models: { "<kept: providers.a.api_key>": a/b }\n`;
    assert.match(refusals(two, name)[0] ?? '', /^4: : a placeholder cannot be a name/);
    const comment = `${text}# api_key: "<kept: providers.a.api_key>"\n`;
    assert.match(refusals(two, comment)[0] ?? '', /^4: : a placeholder in a comment/);
  });

  it('are refused where an alias would carry them to another entry', () => {
    const text =
      'providers:\n  a: { like: openai, api_key: &k canary, base_url: "https://a.example/v1" }\n';
    const typed = `${masked(text).text}  evil: { like: openai, api_key: *k, base_url: "https://evil.example/v1" }\n`;
    assert.match(refusals(text, typed)[0] ?? '', /providers\.evil\.api_key: .* was moved/);
    const whole = typed.replace('a: {', 'a: &a {').replace(/evil: .*/, 'evil: *a');
    assert.match(refusals(text, whole)[0] ?? '', /providers\.evil\.api_key: .* was moved/);
  });

  it('are refused when the address that they would be sent to changes', () => {
    const { text } = masked(two);
    const evil = text.replace('https://a.example/v1', 'https://evil.example/v1');
    assert.deepEqual(refusals(two, evil), [
      '2: providers.a.api_key: <kept: providers.a.api_key> was kept for another address: type the value again',
    ]);
    const proxied = text.replace('a: { ', 'a: { proxy: "http://evil.example", ');
    assert.match(refusals(two, proxied)[0] ?? '', /another address/);
    const bedrock =
      'providers:\n  b: { like: bedrock, region: eu-central-1, api_key: canary, control_endpoint: "https://a.example" }\n';
    for (const [from, to] of [
      ['https://a.example', 'https://evil.example'],
      ['eu-central-1', 'evil.example/'],
      [', control_endpoint: "https://a.example"', ''],
    ] as const) {
      const moved = masked(bedrock).text.replace(from, to);
      assert.match(refusals(bedrock, moved)[0] ?? '', /another address/, to);
    }
    const typedAgain = evil.replace('"<kept: providers.a.api_key>"', 'typed-again');
    assert.match(restored(two, typedAgain), /evil.*\n.*canary-b/);
  });

  it('of entries of a list go with their entry, and with no other', () => {
    const hooks =
      'webhooks:\n  - { url: https://one.example/canary-1, secret: canary-secret-1 }\n  - { url: https://two.example/canary-2, secret: canary-secret-2 }\n';
    const lines = masked(hooks).text.split('\n');
    const reversed = [lines[0], lines[2], lines[1], ''].join('\n');
    assert.match(restored(hooks, reversed), /two.*canary-secret-2[^]*one.*canary-secret-1/);
    const mixed = masked(hooks).text.replace('[0].secret', '[1].secret');
    assert.match(refusals(hooks, mixed)[0] ?? '', /another address/);
  });

  it('of comments come back in comments only', () => {
    const text = '# token: canary\nproviders: {}\n';
    assert.equal(restored(text, `models: {}\n${masked(text).text}`), `models: {}\n${text}`);
    const out = 'providers: { a: { like: openai, api_key: "# <kept: comment 1>" } }\n';
    assert.match(refusals(text, out)[0] ?? '', /stands for no value/);
  });
});

describe('issue 24: files that cannot be shown', () => {
  const problemOf = (text: string): string => {
    const file = maskFile(text);
    return 'problem' in file ? file.problem : `shown: ${file.text}`;
  };

  it('are those whose secrets cannot be told from the rest', () => {
    assert.match(problemOf('providers: [\n'), /line \d of the file is not valid YAML/);
    assert.match(problemOf('keys: { sk-proj-0123456789abcdef: {} }\n'), /name on line 1/);
    assert.match(problemOf('a: "<kept: b>"\n'), /begins with <kept:/);
    const bomb = ['a0: &a0 [x, x]'];
    for (let i = 1; i < 30; i++) bomb.push(`a${i}: &a${i} [*a${i - 1}, *a${i - 1}]`);
    assert.match(problemOf(bomb.join('\n')), /values, counted as often as aliases use them|alias/i);
    const many = `x: &x [${'1,'.repeat(1000)}]\ny: [${'*x ,'.repeat(101)}]\n`;
    assert.match(problemOf(many), /^the file has more than 100000 values/);
    // A placeholder in it would be written as it stands.
    const typed = 'providers: { a: { api_key: "<kept: providers.a.api_key>" } }\n';
    const shown = 'providers: { a: { api_key: canary } }\n';
    assert.match(refusals(shown, typed + many)[0] ?? '', /^1: : has more than 100000 values/);
    assert.match(refusals(shown, `${typed}b: \u001f\n`)[0] ?? '', /^1: : has control/);
    assert.match(problemOf('a: &a [*a]\n'), /alias|anchor|shown/i);
  });

  it('a message never has a secret', () => {
    const file = masked(everySecret);
    assert.equal(
      file.scrub('there is no provider "canary-plain"'),
      'there is no provider "<kept: providers.openai.api_key>"',
    );
  });
});
