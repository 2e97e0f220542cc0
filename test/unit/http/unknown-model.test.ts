/** E6: what a 404 for a model suggests, and that it says nothing of models which the key may not use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unknownModel, usableNames } from '../../../src/http/paths.ts';

const names = ['sonnet', 'anthropic/claude-sonnet-5', 'openai/gpt-5-mini', 'local/tiny'];

test('the model that was probably meant is named, by what people write of it', () => {
  for (const [asked, meant] of [
    ['sonet', 'sonnet'],
    ['gpt-5-mni', 'openai/gpt-5-mini'],
    ['openai/gpt5-mini', 'openai/gpt-5-mini'],
    ['Claude-Sonnet-5', 'anthropic/claude-sonnet-5'],
  ] as const) {
    assert.match(unknownModel(asked, names).message, new RegExp(`Did you mean "${meant}"\\?$`));
  }
  assert.equal(
    unknownModel('mistral-large', names).message,
    'The model "mistral-large" does not exist or this key may not use it. GET /v1/models lists what it may use.',
  );
});

test('a build without the engine says so of local models, and of no other', () => {
  assert.match(unknownModel('local/tiny', [], false).message, /This build has no engine/);
  assert.doesNotMatch(unknownModel('local/tiny', [], true).message, /engine/);
  assert.doesNotMatch(unknownModel('locale', [], false).message, /engine/);
});

test('a key learns of no model that it may not use', () => {
  const registry = { knownNames: () => names };
  const principal = { allowsModel: (name: string) => name.startsWith('local/') };
  assert.deepEqual([...usableNames(registry, principal)], ['local/tiny']);
  const text = (model: string): string =>
    unknownModel(model, usableNames(registry, principal)).message.replaceAll(model, 'X');
  assert.equal(text('sonnet'), text('sonnex'));
  assert.match(text('tny'), /Did you mean "local\/tiny"\?/);
});

test('of long lists only the beginning is looked at, for long names none of it', () => {
  let taken = 0;
  function* many(): Generator<string> {
    for (;;) {
      taken += 1;
      yield `p/${'m'.repeat(30)}${taken}`;
    }
  }
  unknownModel('m'.repeat(30), many());
  assert.ok(taken <= 100, `${taken} compared`);
  taken = 0;
  unknownModel('short', many());
  assert.ok(taken <= 2001, `${taken} looked at`);
  taken = 0;
  unknownModel('x'.repeat(100_000), many());
  assert.equal(taken, 0);
});
