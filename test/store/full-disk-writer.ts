/** A ledger on a disk that fills up: prints when a write failed, and when all rows are written. */
import { Ledger } from '../../src/access/ledger.ts';
import { systemClock } from '../../src/observe/runtime.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { silentLog } from '../unit/access/fakes.ts';
import { callRow } from '../unit/store/call-rows.ts';

const [, , path = ''] = process.argv;
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const store = await openSqliteStore({ path, log: silentLog });
const failures: string[] = [];
const ledger = new Ledger({
  store,
  clock: systemClock,
  log: {
    ...silentLog,
    error: (event, fields) => {
      failures.push(event);
      if (failures.length === 1) say(`${event} ${String(fields?.['reason'])}`);
    },
  },
});
const notes = 'x'.repeat(2000);
let made = 0;
while (failures.length === 0) {
  for (let i = 0; i < 100; i++) ledger.record(callRow(`c${(made += 1)}`, { notes }));
  await ledger.flush().catch(() => undefined);
}
// The calls that run go on: their rows wait in memory.
for (let i = 0; i < 100; i++) ledger.record(callRow(`c${(made += 1)}`, { notes }));
say(`queued ${ledger.queued}`);
for (let free = false; !free;) {
  free = await ledger.flush().then(
    () => true,
    () => false,
  );
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
}
const [usage] = await store.calls.usage({ by: 'key', since: 0 });
say(`healthy ${ledger.healthy()} made ${made} kept ${usage?.calls}`);
await ledger.close();
await store.close();
