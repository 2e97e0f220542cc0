/** Which page is shown: the door without a session, else the page of the address inside the frame. */
import { createElement, lazy, Suspense, type ComponentType, type ReactElement } from 'react';
import { Link, useLocation } from 'wouter';
import { useSession } from './api/session.ts';
import { ErrorBoundary } from './components/error-boundary.tsx';
import { Empty, ErrorPanel, Loading } from './components/state.tsx';
import { pages, pageOf, type PageEntry } from './pages/pages.ts';
import { Shell } from './shell/shell.tsx';
import { SignIn } from './shell/sign-in.tsx';

const views: ReadonlyMap<string, ComponentType> = new Map(
  pages.map(({ path, load }) => [path, lazy(async () => ({ default: await load() }))]),
);

export function App(): ReactElement {
  const session = useSession();
  if (session.data !== undefined) return session.data.signed_in ? <Pages /> : <SignIn />;
  if (session.isError) {
    return <ErrorPanel error={session.error} onRetry={() => void session.refetch()} />;
  }
  return <Loading />;
}

function viewOf(page: PageEntry | undefined): ReactElement {
  const view = views.get(page?.path ?? '');
  return view === undefined ? <NoPage /> : createElement(view);
}

function Pages(): ReactElement {
  const [location] = useLocation();
  const page = pageOf(location);
  return (
    <Shell>
      <ErrorBoundary resetBy={location}>
        <Suspense fallback={<Loading />}>{viewOf(page)}</Suspense>
      </ErrorBoundary>
    </Shell>
  );
}

function NoPage(): ReactElement {
  return (
    <Empty title="Page not found" action={<Link href="/">Go to the overview</Link>}>
      The address may belong to another version of the gateway.
    </Empty>
  );
}
