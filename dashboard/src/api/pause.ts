/** A pause of all questions: what is asked while a session ends would be refused, whenever the server hears of it. */

const going: Promise<void> = Promise.resolve();
let paused = going;
let resume = (): void => undefined;

/** From now on questions wait. */
export function pauseQuestions(): void {
  if (paused !== going) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  paused = promise;
  resume = resolve;
}

/** Questions may be asked again; those that waited are. */
export function resumeQuestions(): void {
  paused = going;
  resume();
}

/** Resolves while there is no pause, or with its end. */
export function questionsAllowed(): Promise<void> {
  return paused;
}
