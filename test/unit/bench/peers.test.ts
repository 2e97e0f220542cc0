import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fillIn, findPeers, knownPeers, readPeer } from '../../../bench/peers.ts';
import { temporaryFolder } from '../../support/folders.ts';

test('issue 7.1: every known peer can be read, is pinned where it is installed, and is led to the mock', () => {
  const values = { port: 1234, mock: 5678, folder: '/f', installed: '/i', node: '/n' };
  for (const name of knownPeers()) {
    const peer = readPeer(name);
    const filled = JSON.stringify(fillIn(peer, values));
    if (peer.printsPort === undefined) assert.match(filled, /\b1234\b/, `${name} gets its port`);
    else assert.match(filled, /flush=True/, `${name} prints its port at once`);
    assert.match(filled, /127\.0\.0\.1:5678/, `${name} gets the upstream's address`);
    assert.doesNotMatch(filled, /\{(port|mock|folder|installed|node)\}/, name);
    if (peer.install !== undefined) assert.match(peer.version ?? '', /^\d+\.\d+\.\d+$/, name);
  }
});

test('issue 7.1: a peer that is not there is omitted with a reason, a file of one is taken', () => {
  const folder = temporaryFolder('peer');
  const file = join(folder, 'other.json');
  const peer = { name: 'Other', command: ['no-such-program-anywhere'], model: 'm', key: 'k' };
  writeFileSync(file, JSON.stringify(peer));
  assert.deepEqual(findPeers([file]), {
    subjects: [],
    missing: [{ name: 'Other', why: 'no no-such-program-anywhere on the PATH' }],
  });
  writeFileSync(file, JSON.stringify({ ...peer, command: ['{node}', '{port}'] }));
  assert.deepEqual(
    findPeers([file]).subjects.map(({ name, isPeer }) => [name, isPeer]),
    [['Other', true]],
  );
  writeFileSync(file, JSON.stringify({ ...peer, comand: [] }));
  assert.throws(() => readPeer(file), /comand/);
  assert.throws(() => readPeer('nobody'), /no peer nobody: known are .*portkey/);
});
