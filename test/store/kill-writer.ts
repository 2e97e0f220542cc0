/** Writes calls to a store until it is killed, and prints each batch that the store has acknowledged. */
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { CallRow } from '../../src/store/store.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { callRow, march } from '../unit/store/call-rows.ts';
import { costing, fullCall } from './rows.ts';

const [, , path = '', round = '', durability] = process.argv;
const store = await openSqliteStore({
  path,
  log: silentLog,
  durability: durability === 'full' ? 'full' : 'normal',
});

function call(n: number): CallRow {
  return callRow(`${round}-${n}`, {
    ...costing(n + 1),
    startedAt: march + n * 60_000,
    keyId: `k${n % 3}`,
    attemptRows: fullCall.attemptRows,
    budgets: [
      { counter: `key:k${n % 3}:ever`, window: 'ever' },
      { counter: 'team:red:day', window: '2026-03-01', endsAt: march + 1000 },
    ],
  });
}

let made = 0;
for (let batch = 0; ; batch++) {
  const size = 1 + ((batch * 7) % 40);
  const rows = Array.from({ length: size }, (_, i) => call(made + i));
  made += size;
  await store.calls.open(rows.map((row) => ({ row, seenAt: march })));
  await store.calls.record(rows);
  // A batch whose acknowledgement was lost is sent again.
  if (batch % 3 === 0) await store.calls.record(rows);
  // Some stay running for ever.
  await store.calls.open([{ row: call(made), seenAt: march }]);
  made += 1;
  if (batch % 5 === 4)
    await store.calls.prune({ callsBefore: march + 10 * 3_600_000, hoursBefore: 0 }, 50);
  process.stdout.write(`${made - 1}\n`);
}
