/**
 * Components whose code is fetched when it is needed. React's `lazy` shows what was fetched 300 ms after its fallback
 * at the earliest, which is a third of what a page may take.
 */
import { createElement, useEffect, useState, type ComponentType, type ReactNode } from 'react';

interface Loaded<Props extends object> {
  readonly component?: ComponentType<Props>;
  readonly error?: unknown;
}

/**
 * A component that shows `fallback` until its code is there; a failed fetch is thrown to the error boundary.
 * @param load resolves at once when the code was fetched before, e.g. made by `once`
 */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  fallback: ReactNode = null,
): ComponentType<Props> {
  let known: ComponentType<Props> | undefined;
  return function Later(props: Props): ReactNode {
    const [loaded, setLoaded] = useState<Loaded<Props>>(() =>
      known === undefined ? {} : { component: known },
    );
    useEffect(() => {
      if (loaded.component !== undefined) return undefined;
      let isShown = true;
      const fetch = async (): Promise<void> => {
        try {
          const component = await load();
          known = component;
          if (isShown) setLoaded({ component });
        } catch (error) {
          if (isShown) setLoaded({ error });
        }
      };
      void fetch();
      return () => {
        isShown = false;
      };
    }, [loaded.component]);
    if ('error' in loaded) throw loaded.error;
    return loaded.component === undefined ? fallback : createElement(loaded.component, props);
  };
}
