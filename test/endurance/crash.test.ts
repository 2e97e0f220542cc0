/** F82 in short; `npm run crash` plays more rounds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crashLoop } from './crash-loop.ts';

test('F81 F82 Q3: three gateways killed under load leave a whole database and one true row a call', async (t) => {
  const report = await crashLoop({ rounds: 3 });
  t.diagnostic(`${report.calls} calls, ${report.interrupted} interrupted`);
  assert.deepEqual(report.wrong, []);
  assert.equal(report.booked, report.counted);
  assert.ok(report.interrupted > 0, 'some calls ran when their gateway was killed');
});
