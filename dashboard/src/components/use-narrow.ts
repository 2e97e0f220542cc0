/** Whether the window is as narrow as a phone: the same width as in the style sheets. */
import { useSyncExternalStore } from 'react';

const narrow = matchMedia('(width < 40rem)');

export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => narrow.matches);
}

function subscribe(changed: () => void): () => void {
  narrow.addEventListener('change', changed);
  return () => narrow.removeEventListener('change', changed);
}
