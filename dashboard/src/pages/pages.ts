/** All pages: their address, their place in the navigation, and the code that is fetched when one is opened. */
import type { ComponentType } from 'react';
import { operators, type Role, viewers } from '../api/session.ts';
import type { IconName } from '../components/icon.tsx';
import { once } from '../components/once.ts';

export interface PageEntry {
  /** First part of the address; a page may have more below it. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** Heading of the navigation that it is under; absent: none. */
  readonly group?: 'Operate';
  /** Roles that may open it; absent: all. */
  readonly roles?: readonly Role[];
  /** Fetches its code, once. */
  readonly load: () => Promise<ComponentType>;
}

export const pages: readonly PageEntry[] = [
  {
    path: '/',
    title: 'Overview',
    icon: 'overview',
    roles: viewers,
    load: once(async () => (await import('./overview/page.tsx')).OverviewPage),
  },
  {
    path: '/calls',
    title: 'Calls',
    icon: 'calls',
    load: once(async () => (await import('./calls/page.tsx')).CallsPage),
  },
  {
    path: '/errors',
    title: 'Errors',
    icon: 'errors',
    roles: viewers,
    load: once(async () => (await import('./errors/page.tsx')).ErrorsPage),
  },
  {
    path: '/keys',
    title: 'Keys',
    icon: 'keys',
    load: once(async () => (await import('./keys/page.tsx')).KeysPage),
  },
  {
    path: '/models',
    title: 'Models',
    icon: 'models',
    roles: viewers,
    load: once(async () => (await import('./models/page.tsx')).ModelsPage),
  },
  {
    path: '/playground',
    title: 'Playground',
    icon: 'playground',
    roles: operators,
    load: once(async () => (await import('./playground/page.tsx')).PlaygroundPage),
  },
  {
    path: '/events',
    title: 'Events',
    icon: 'events',
    group: 'Operate',
    roles: viewers,
    load: once(async () => (await import('./events/page.tsx')).EventsPage),
  },
  {
    path: '/audit',
    title: 'Audit log',
    icon: 'audit',
    group: 'Operate',
    roles: viewers,
    load: once(async () => (await import('./audit/page.tsx')).AuditPage),
  },
  {
    path: '/diagnostics',
    title: 'Diagnostics',
    icon: 'info',
    group: 'Operate',
    roles: viewers,
    load: once(async () => (await import('./diagnostics/page.tsx')).DiagnosticsPage),
  },
  {
    path: '/setup',
    title: 'Setup',
    icon: 'setup',
    group: 'Operate',
    roles: viewers,
    load: once(async () => (await import('./setup/page.tsx')).SetupPage),
  },
  {
    path: '/sessions',
    title: 'Sessions',
    icon: 'people',
    group: 'Operate',
    load: once(async () => (await import('./sessions/page.tsx')).SessionsPage),
  },
];

/** Those that one of the roles may open. */
export function pagesOf(roles: readonly Role[]): readonly PageEntry[] {
  return pages.filter((page) => page.roles?.some((role) => roles.includes(role)) ?? true);
}

/** The page of an address; undefined when there is none. */
export function pageOf(location: string): PageEntry | undefined {
  const [, first = ''] = location.split('/');
  return pages.find(({ path }) => path === `/${first}`);
}
