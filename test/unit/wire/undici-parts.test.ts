import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildConnector, errors } from 'undici';
import * as parts from '../../../src/wire/undici-parts.ts';

test('the parts of undici that are loaded alone are those of the whole', () => {
  assert.equal(parts.buildConnector, buildConnector);
  assert.equal(parts.errors, errors);
  assert.equal(parts.wholeUndici().buildConnector, buildConnector);
});
