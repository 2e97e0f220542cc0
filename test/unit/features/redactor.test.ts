/** S4: what is taken out of kept content: keys, credentials, bytes of media (docs/user/content.md). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeKey, makeToken } from '../../../src/access/keys/key-format.ts';
import { Redactor } from '../../../src/features/content-log/logged-content.ts';
import { countingBytes } from '../access/fakes.ts';

describe('S4 what is taken out', () => {
  const redactor = new Redactor(['authorization', 'Bearer a-very-secret-value']);

  test('the values of the call itself, wherever they stand, and what looks like a key', () => {
    assert.equal(redactor.text('x a-very-secret-value y'), 'x [redacted] y');
    assert.deepEqual(redactor.json({ a: ['ghp_0123456789abcdef', { 'a-very-secret-value': 1 }] }), {
      a: ['[redacted]', { '[redacted]': 1 }],
    });
  });

  test('a key behind an escape: a line of a file that a tool is to write, and addresses', () => {
    const secret = 'sk-proj-abcdefghijklmnop123456';
    for (const escape of ['\\n', '\\t', '\\u000a', '\\\\n', '%0A', '%3d']) {
      const told = redactor.text(`{"text":"a line${escape}${secret}"}`);
      assert.equal(told, `{"text":"a line${escape}[redacted]"}`);
    }
    assert.equal(redactor.text('task-management, key_'), 'task-management, key_');
    for (const whole of [
      `csk-${'a3xk'.repeat(12)}`,
      `tgp_v1_${'aB3_'.repeat(10)}`,
      `fw_${'aB3'.repeat(8)}`,
      `${'0a9f'.repeat(8)}.${'aB3x'.repeat(4)}`,
    ]) {
      assert.equal(redactor.text(`(${whole})`), '([redacted])');
    }
    assert.equal(redactor.text(`${'0a9f'.repeat(8)}.json`), `${'0a9f'.repeat(8)}.json`);
    assert.equal(
      redactor.text('hf_hub_download npm_config_registry'),
      'hf_hub_download npm_config_registry',
    );
    for (const own of ['gw', 'gwadmin', 'hf']) {
      assert.equal(redactor.text(`${own}_${'aB3'.repeat(11)}`), '[redacted]');
    }
  });

  test('a whole key within a word, and no word that only looks like the beginning of one', () => {
    const { id, key: own } = makeKey(countingBytes());
    const keys = [
      own.reveal(),
      makeToken('gwadmin', countingBytes()).reveal(),
      `sk-ant-api03-${'aB3'.repeat(31)}`,
      `sk-proj-${'aB3_'.repeat(12)}`,
      `sk-${'aB3'.repeat(16)}`,
      `AIza${'aB3_-'.repeat(7)}`,
      `ghp_${'aB3'.repeat(12)}`,
      `github_pat_${'aB3'.repeat(20)}`,
      `glpat-${'aB3_-'.repeat(4)}`,
      `hf_${'aB3'.repeat(11)}`,
      `sk-or-v1-${'0a9f'.repeat(16)}`,
      `csk-${'a3xk'.repeat(12)}`,
    ];
    for (const each of keys) {
      for (const before of ['MY_', 'token', 'käse', '7', 'it_is_']) {
        assert.equal(redactor.text(`${before}${each} then`), `${before}[redacted] then`, each);
      }
    }
    // DeepSeek's and Qwen's: behind a small letter it may be the end of a word.
    for (const before of ['MY_', '7', 'KEY']) {
      assert.equal(redactor.text(`${before}sk-${'0a9f'.repeat(8)}`), `${before}[redacted]`);
    }
    for (const word of [
      'task-manager',
      'disk-d41d8cd98f00b204e9800998ecf8427e',
      'task-ant-colony-optimization-algorithms',
      'risk-proj-management-of-many-different-things',
      `gw_${id}_of_a_name_that_somebody_gave_to_a_table_in_a_book`,
      'MAXHF_hub_download_of_files',
      `desk-${'A'.repeat(40)}`,
    ]) {
      assert.equal(redactor.text(`a_${word}`), `a_${word}`);
    }
  });

  test('S14 a value that was cut at the end of a text', () => {
    assert.equal(redactor.text('it was a-very-sec'), 'it was [redacted]');
    assert.equal(redactor.text('it was a-very-secret-valu'), 'it was [redacted]');
    assert.equal(redactor.text('a-v'), 'a-v');
  });

  test('bytes of media in both dialects and within texts; words stay', () => {
    const data = Buffer.alloc(600, 'x').toString('base64');
    const source = { type: 'base64', media_type: 'image/jpeg', data };
    assert.deepEqual(redactor.json(source), {
      ...source,
      data: '[image/jpeg, 600 bytes left out]',
    });
    const text = `see data:audio/wav;base64,${data} and data:;base64,AAAA, or ;base64,BBBB`;
    assert.equal(
      redactor.text(text),
      'see [audio/wav, 600 bytes left out] and [base64, 3 bytes left out], or ;base64,BBBB',
    );
    const words = 'word '.repeat(300);
    assert.equal(redactor.json(words), words);
  });
});
