/** What a measurement has started ends with it, also by Ctrl-C and SIGTERM: a server left behind disturbs the next one. */

const ends: (() => Promise<void>)[] = [];

/** Has `end` called when a signal ends this process, the last one first; it must do no harm a second time. */
export function endOnSignals(end: () => Promise<void>): void {
  if (ends.length === 0) {
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      process.once(signal, () => void endAll(code));
    }
  }
  ends.push(end);
}

async function endAll(code: number): Promise<void> {
  for (const end of ends.toReversed()) {
    await end().catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
    });
  }
  process.exit(code);
}
