/** What a page shows is in its address, so that it can be shared and found in the history. */
import { useCallback, useMemo } from 'react';
import { useSearchParams } from 'wouter';

export type Search = { readonly [name: string]: string | undefined };

/** The parameters of the address, and how to change some; undefined or empty takes one away. */
export function useSearch(): readonly [Search, (change: Search) => void] {
  const [parameters, setParameters] = useSearchParams();
  const search = useMemo(() => Object.fromEntries(parameters), [parameters]);
  const change = useCallback(
    (wanted: Search) =>
      // A step of its own in the history: "back" takes a filter away, and not the page.
      setParameters((current) => {
        const changed = new URLSearchParams(current);
        for (const [name, value] of Object.entries(wanted)) {
          if (value === undefined || value === '') changed.delete(name);
          else changed.set(name, value);
        }
        return changed;
      }),
    [setParameters],
  );
  return [search, change];
}

export interface Opened {
  /** What is open, by name; undefined: nothing. */
  readonly id: string | undefined;
  readonly open: (id: string) => void;
  readonly close: () => void;
}

/** The open entry of a list, as a parameter of the address: "back" closes it, and others can be sent there. */
export function useOpened(parameter: string): Opened {
  const [parameters, setParameters] = useSearchParams();
  const id = parameters.get(parameter) ?? undefined;
  const open = useCallback(
    (opened: string) =>
      setParameters((current) => {
        const changed = new URLSearchParams(current);
        changed.set(parameter, opened);
        return changed;
      }),
    [parameter, setParameters],
  );
  const close = useCallback(
    () =>
      setParameters(
        (current) => {
          const changed = new URLSearchParams(current);
          changed.delete(parameter);
          return changed;
        },
        { replace: true },
      ),
    [parameter, setParameters],
  );
  return { id, open, close };
}
