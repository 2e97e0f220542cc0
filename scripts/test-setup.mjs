// What a process of tests begins with (`--import`).
import { createRequire } from 'node:module';
import { inspect } from 'node:util';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  // Processes that a test starts with the arguments of its own, such as workers of a gateway, run as without tests:
  // the listener below would let a worker live on after an error that ends it.
  const own = process.execArgv.findIndex((each) => each === `--import=${import.meta.url}`);
  if (own !== -1) process.execArgv.splice(own, 1);
  // The runner follows each promise, to say which test an uncaught error belongs to: 7 % of the CPU of all tests.
  // Timers and sockets are enough for that.
  const hooks = createRequire(import.meta.url)('node:async_hooks');
  const { createHook } = hooks;
  hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
  // Of an error outside of a test the runner says the message only.
  for (const event of ['uncaughtExceptionMonitor', 'unhandledRejection']) {
    process.on(event, (error) => process.stderr.write(`uncaught: ${inspect(error)}\n`));
  }
}
