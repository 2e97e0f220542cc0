/** Entry of a worker process: what must be so before the rest is loaded, which takes a while. */
import { enableCompileCache } from 'node:module';

// Signals that a terminal or a service manager sends to all processes: the parent says what follows.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const) {
  process.on(signal, () => undefined);
}
enableCompileCache();
void import('./worker.ts').then(({ runWorker }) => runWorker());
