/** All pages: their address, their place in the navigation, and the code that is fetched when one is opened. */
import type { ComponentType } from 'react';
import type { IconName } from '../components/icon.tsx';

export interface PageEntry {
  /** First part of the address; a page may have more below it. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly load: () => Promise<ComponentType>;
}

export const pages: readonly PageEntry[] = [
  {
    path: '/',
    title: 'Overview',
    icon: 'overview',
    load: async () => (await import('./overview/page.tsx')).OverviewPage,
  },
  {
    path: '/calls',
    title: 'Calls',
    icon: 'calls',
    load: async () => (await import('./calls/page.tsx')).CallsPage,
  },
  {
    path: '/errors',
    title: 'Errors',
    icon: 'errors',
    load: async () => (await import('./errors/page.tsx')).ErrorsPage,
  },
  {
    path: '/keys',
    title: 'Keys',
    icon: 'keys',
    load: async () => (await import('./keys/page.tsx')).KeysPage,
  },
  {
    path: '/models',
    title: 'Models',
    icon: 'models',
    load: async () => (await import('./models/page.tsx')).ModelsPage,
  },
  {
    path: '/playground',
    title: 'Playground',
    icon: 'playground',
    load: async () => (await import('./playground/page.tsx')).PlaygroundPage,
  },
  {
    path: '/setup',
    title: 'Setup',
    icon: 'setup',
    load: async () => (await import('./setup/page.tsx')).SetupPage,
  },
];

/** The page of an address; undefined when there is none. */
export function pageOf(location: string): PageEntry | undefined {
  const [, first = ''] = location.split('/');
  return pages.find(({ path }) => path === `/${first}`);
}
