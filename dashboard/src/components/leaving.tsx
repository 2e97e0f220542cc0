/** A page with text that is not saved is left only when a person says so. */
import { useEffect, useState, type ReactElement, type ReactNode } from 'react';
import { Router } from 'wouter';
import { Confirm } from './dialog.tsx';

/** The address of the page that has such text, as it is now: its query may change. */
let held: string | undefined;
/** The person has said so; the step back is on its way. */
let isLeaving = false;
let ask = (go: () => void): void => go();

/** Also before the tab is closed; there the browser asks in its own words. */
export function useUnsaved(isUnsaved: boolean): void {
  useEffect(() => {
    if (!isUnsaved) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    held = location.href;
    return () => {
      window.removeEventListener('beforeunload', warn);
      held = undefined;
    };
  }, [isUnsaved]);
}

/** Does what ends the page: at once, or when the person says so. */
export function leave(go: () => void): void {
  if (held === undefined) go();
  else ask(go);
}

function staysOnPage(address: string): boolean {
  return held === undefined || new URL(address, held).pathname === new URL(held).pathname;
}

// Added before the router listens: it must not see a step in the history that is taken back.
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
        What you typed was not written to the file. It is lost when you leave this page.
      </Confirm>
    </Router>
  );
}
