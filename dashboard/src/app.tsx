/** Which page is shown: the door without a session, else the page of the address inside the frame. */
import {
  Activity,
  createElement,
  memo,
  useEffect,
  useState,
  type ComponentType,
  type ReactElement,
} from 'react';
import { Link, Redirect, useLocation } from 'wouter';
import { PageSession, useSession, type Role, type Session } from './api/session.ts';
import { isLeaving } from './api/sign-out.ts';
import { ErrorBoundary } from './components/error-boundary.tsx';
import { later } from './components/later.tsx';
import { holdsTyped, showsSecret } from './components/typed.ts';
import { Empty, ErrorPanel, Loading } from './components/state.tsx';
import { pages, pageOf, pagesOf, type PageEntry } from './pages/pages.ts';
import { Shell } from './shell/shell.tsx';
import { SignIn } from './shell/sign-in.tsx';

const views: ReadonlyMap<string, ComponentType> = new Map(
  pages.map(({ path, load }) => [path, later(load, <Loading />)]),
);

export function App(): ReactElement {
  const session = useSession();
  const kept = useKeptSession(session.data);
  if (session.data !== undefined) {
    const { signed_in: isSignedIn, sign_in: provider } = session.data;
    return (
      <>
        {kept === undefined ? null : (
          <Activity mode={isSignedIn ? 'visible' : 'hidden'}>
            <PageSession value={kept}>
              <Pages key={kept.person?.id ?? ''} roles={kept.roles} />
            </PageSession>
          </Activity>
        )}
        {isSignedIn ? null : <SignIn provider={provider} />}
      </>
    );
  }
  if (session.isError) {
    return <ErrorPanel error={session.error} onRetry={() => void session.refetch()} />;
  }
  return <Loading />;
}

/** How long typed text outlives its session, in milliseconds. */
const keptMs = 5 * 60_000;

/**
 * The session whose pages are kept: the current one. One that expired keeps them for five minutes if they hold typed text
 * and show no secret.
 */
function useKeptSession(session: Session | undefined): Session | undefined {
  const [kept, setKept] = useState<Session>();
  const [before, setBefore] = useState<Session>();
  if (session !== undefined && session !== before) {
    setBefore(session);
    if (session.signed_in) setKept(session);
    else if (before?.signed_in === true && (isLeaving() || showsSecret() || !holdsTyped())) {
      setKept(undefined);
    }
  }
  const isOver = session?.signed_in === false;
  useEffect(() => {
    if (!isOver) return undefined;
    const timer = setTimeout(() => setKept(undefined), keptMs);
    return () => clearTimeout(timer);
  }, [isOver]);
  return kept;
}

function viewOf(page: PageEntry | undefined): ReactElement {
  const view = views.get(page?.path ?? '');
  return view === undefined ? <NoPage /> : createElement(view);
}

interface PagesProps {
  readonly roles: readonly Role[];
}

/** Pages of a session that expired are not rendered again. */
const Pages = memo(function Pages({ roles }: PagesProps): ReactElement {
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
});

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
