/** Asks before a page is left where something would be lost: unsaved text, or a secret that is on its way. */
import { useEffect, useLayoutEffect, useState, type ReactElement, type ReactNode } from 'react';
import { Router } from 'wouter';
import { Confirm } from './dialog.tsx';

/** The current address of the page that loses something. Its query may change. */
let held: string | undefined;
/** What it loses, a sentence for each part of the page that is unsaved. */
const losses = new Map<symbol, string>();
/** The person confirmed, and the browser goes back now. */
let isLeaving = false;
let ask = (go: (() => void) | undefined): void => go?.();

/**
 * Guards the page while something of it is unsaved. Before the tab is closed, the browser asks in its own words.
 * @param lost what is lost when the page is left, as a sentence
 */
export function useUnsaved(isUnsaved: boolean, lost: string): void {
  // With the text and not behind it: the browser may ask between a draw and its passive effects.
  useLayoutEffect(() => {
    if (!isUnsaved) return undefined;
    const part = Symbol(lost);
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    losses.set(part, lost);
    held = location.href;
    return () => {
      window.removeEventListener('beforeunload', warn);
      losses.delete(part);
      if (losses.size > 0) return;
      held = undefined;
      // An open question has no reason any more.
      ask(undefined);
    };
  }, [isUnsaved, lost]);
}

/** Calls `go`, which leaves the page: at once where nothing is lost, else after the person confirmed. */
export function leave(go: () => void): void {
  if (held === undefined) go();
  else ask(go);
}

function staysOnPage(address: string): boolean {
  return held === undefined || new URL(address, held).pathname === new URL(held).pathname;
}

// Added before the router's own listener, so that the router does not see a step in the history that is undone here.
window.addEventListener('popstate', (event) => {
  const isAllowed = isLeaving || held === undefined || staysOnPage(location.href);
  if (isAllowed && !isLeaving && held !== undefined) held = location.href;
  isLeaving = false;
  if (isAllowed) return;
  event.stopImmediatePropagation();
  history.pushState(null, '', held);
  ask(() => {
    isLeaving = true;
    history.back();
  });
});

/** Around the whole page: links, the palette and the history lead through it. */
export function LeaveGuard({ children }: { readonly children: ReactNode }): ReactElement {
  const [go, setGo] = useState<() => void>();
  useEffect(() => {
    ask = (next) => setGo(() => next);
  }, []);
  return (
    <Router
      aroundNav={(navigate, to, options) => {
        const move = (): void => navigate(to, options);
        if (!staysOnPage(to)) return leave(move);
        move();
        if (held !== undefined) held = location.href;
      }}
    >
      {children}
      <Confirm
        open={go !== undefined}
        onClose={() => setGo(undefined)}
        title="Leave without saving?"
        action="Leave"
        danger
        onConfirm={async () => go?.()}
      >
        {[...losses.values()].at(-1)}
      </Confirm>
    </Router>
  );
}
