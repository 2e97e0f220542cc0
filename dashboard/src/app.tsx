/** Which page is shown: the door without a session, else the page of the address inside the frame. */
import { createElement, type ComponentType, type ReactElement } from 'react';
import { Link, Redirect, useLocation } from 'wouter';
import { useSession, type Role } from './api/session.ts';
import { ErrorBoundary } from './components/error-boundary.tsx';
import { later } from './components/later.tsx';
import { Empty, ErrorPanel, Loading } from './components/state.tsx';
import { pages, pageOf, pagesOf, type PageEntry } from './pages/pages.ts';
import { Shell } from './shell/shell.tsx';
import { SignIn } from './shell/sign-in.tsx';

const views: ReadonlyMap<string, ComponentType> = new Map(
  pages.map(({ path, load }) => [path, later(load, <Loading />)]),
);

export function App(): ReactElement {
  const session = useSession();
  if (session.data !== undefined) {
    const { signed_in: isSignedIn, roles, sign_in: provider } = session.data;
    return isSignedIn ? <Pages roles={roles} /> : <SignIn provider={provider} />;
  }
  if (session.isError) {
    return <ErrorPanel error={session.error} onRetry={() => void session.refetch()} />;
  }
  return <Loading />;
}

function viewOf(page: PageEntry | undefined): ReactElement {
  const view = views.get(page?.path ?? '');
  return view === undefined ? <NoPage /> : createElement(view);
}

function Pages({ roles }: { roles: readonly Role[] }): ReactElement {
  const [location] = useLocation();
  const page = pageOf(location);
  const own = pagesOf(roles);
  const isOthers = page !== undefined && !own.includes(page);
  return (
    <Shell pages={own}>
      <ErrorBoundary resetBy={location}>
        {isOthers ? <NotYours page={page} own={own} /> : viewOf(page)}
      </ErrorBoundary>
    </Shell>
  );
}

interface NotYoursProps {
  readonly page: PageEntry;
  readonly own: readonly PageEntry[];
}

/** The first page is what everybody is led to: those who may not see it are led on. */
function NotYours({ page, own }: NotYoursProps): ReactElement {
  const [first] = own;
  if (page.path === '/' && first !== undefined) return <Redirect to={first.path} replace />;
  return (
    <Empty
      title="This page is not for your role"
      action={first === undefined ? undefined : <Link href={first.path}>Go to {first.title}</Link>}
    >
      {page.title} is for the roles {page.roles?.join(', ')}.
    </Empty>
  );
}

function NoPage(): ReactElement {
  return (
    <Empty title="Page not found" action={<Link href="/">Go to the overview</Link>}>
      The address may belong to another version of the gateway.
    </Empty>
  );
}
