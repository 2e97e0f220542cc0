import assert from 'node:assert/strict';
import { test } from 'node:test';
import { baseOptions, FlagError, flagsHelp, parseFlags } from '../../../src/config/base.ts';

test('flags are read in both spellings', () => {
  const { flags, help, json } = parseFlags(['--listen', ':0', '--data-dir=/d', '--workers', '1']);
  assert.deepEqual(flags, { listen: ':0', 'data-dir': '/d', workers: '1' });
  assert.equal(help, false);
  assert.equal(json, false);
  assert.equal(parseFlags(['-h']).help, true);
  assert.equal(parseFlags(['--json'], { switches: ['json', 'ask'] }).json, true);
});

test('every wrong flag is named, all together', () => {
  const args = [
    '--lisen',
    ':0',
    '--config',
    '--workers=',
    '--data-dir',
    'a',
    '--data-dir',
    'b',
    '--json',
  ];
  assert.throws(
    () => parseFlags(['extra', ...args, '--help=1', '--port', '9101']),
    (error) => {
      assert.ok(error instanceof FlagError);
      assert.deepEqual(error.message.split('\n'), [
        'extra: unexpected argument.',
        '--lisen is not a flag of this command. Did you mean --listen?',
        '--config needs a value: --config FILE.',
        '--data-dir is given more than once.',
        '--json is not a flag of this command.',
        '--help takes no value.',
        '--port is not a flag of this command. Did you mean --listen?',
      ]);
      return true;
    },
  );
});

test('the help lists each flag', () => {
  const keys = [...Object.values(baseOptions).map(({ key }) => key), 'config', 'storage'];
  for (const key of keys) assert.match(flagsHelp(), new RegExp(`--${key.replace('_', '-')} `));
});
