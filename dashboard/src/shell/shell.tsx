/** The frame around every page: navigation at the side, or behind a button where there is no room for it. */
import { Dialog } from '@base-ui/react/dialog';
import { useEffect, useState, type ReactElement, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { usePageSession, useSignOut } from '../api/session.ts';
import { Button, IconButton } from '../components/button.tsx';
import { Icon, type IconName } from '../components/icon.tsx';
import { later } from '../components/later.tsx';
import { leave } from '../components/leaving.tsx';
import { prefetch } from '../components/once.ts';
import { useToast } from '../components/toast.tsx';
import { pageOf, type PageEntry } from '../pages/pages.ts';
import styles from './shell.module.css';
import { chooseTheme, themes, useTheme, type Theme } from './theme.ts';

interface ShellProps {
  /** Those that who is signed in may open. */
  readonly pages: readonly PageEntry[];
  readonly children: ReactNode;
}

export function Shell({ pages, children }: ShellProps): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const [isGoing, setGoing] = useState(false);
  useGoKey(() => setGoing(true));
  const go = (): void => {
    setOpen(false);
    setGoing(true);
  };
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#main">
        Skip to the page
      </a>
      <div className={styles.side}>
        <Brand />
        <GoTo onClick={go} />
        <Links pages={pages} />
        <Foot />
      </div>
      <div className={styles.top}>
        <Dialog.Root open={isOpen} onOpenChange={setOpen}>
          <Dialog.Trigger render={<IconButton icon="menu" label="Menu" />} />
          <Dialog.Portal>
            <Dialog.Backdrop className={styles.backdrop} />
            <Dialog.Popup className={styles.sheet} aria-label="Menu">
              <Brand />
              <GoTo onClick={go} />
              <Links pages={pages} onChosen={() => setOpen(false)} />
              <Foot />
            </Dialog.Popup>
          </Dialog.Portal>
        </Dialog.Root>
        <Brand />
      </div>
      <main className={styles.main} id="main" tabIndex={-1}>
        <div className={styles.content}>{children}</div>
      </main>
      {isGoing ? <Palette onClose={() => setGoing(false)} /> : null}
    </div>
  );
}

const Palette = later(async () => (await import('./palette.tsx')).Palette);

/** Ctrl-K, or Cmd-K where that is the key of commands. */
function useGoKey(go: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isAlone = !event.altKey && !event.shiftKey && event.ctrlKey !== event.metaKey;
      if (event.key.toLowerCase() !== 'k' || !isAlone) return;
      event.preventDefault();
      go();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
}

const goKeys = /Mac|iP(hone|ad)/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K';

function GoTo({ onClick }: { onClick: () => void }): ReactElement {
  return (
    <Button
      icon="search"
      className={styles.go}
      aria-keyshortcuts="Control+K Meta+K"
      onClick={onClick}
    >
      Go to… <kbd>{goKeys}</kbd>
    </Button>
  );
}

function Brand(): ReactElement {
  return (
    <div className={styles.brand}>
      <img src="/icon.svg" alt="" />
      Model Gateway
    </div>
  );
}

interface LinksProps extends Pick<ShellProps, 'pages'> {
  readonly onChosen?: () => void;
}

function Links({ pages, onChosen }: LinksProps): ReactElement {
  const used = pages.filter(({ group }) => group === undefined);
  const operated = pages.filter(({ group }) => group !== undefined);
  return (
    <nav aria-label="Pages" className={styles.nav}>
      <LinkList pages={used} {...(onChosen && { onChosen })} />
      {operated.length === 0 ? null : (
        <>
          <p className={styles.group}>Operate</p>
          <LinkList pages={operated} {...(onChosen && { onChosen })} />
        </>
      )}
    </nav>
  );
}

function LinkList({ pages, onChosen }: LinksProps): ReactElement {
  const [location] = useLocation();
  const current = pageOf(location);
  return (
    <ul className={styles.links}>
      {pages.map((page) => (
        <li key={page.path}>
          <Link
            href={page.path}
            className={styles.link}
            aria-current={page === current ? 'page' : undefined}
            // What is pointed at is fetched before it is clicked.
            onPointerEnter={() => prefetch(page.load)}
            onFocus={() => prefetch(page.load)}
            onClick={() => onChosen?.()}
          >
            <Icon name={page.icon} />
            {page.title}
          </Link>
        </li>
      ))}
    </ul>
  );
}

const themeIcons: { readonly [T in Theme]: IconName } = {
  system: 'system',
  light: 'sun',
  dark: 'moon',
};

function Foot(): ReactElement {
  const theme = useTheme();
  const signOut = useSignOut();
  const toast = useToast();
  const session = usePageSession();
  const following = themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system';
  const { person, roles = [] } = session ?? {};
  return (
    <div className={styles.foot}>
      {person === null || person === undefined ? null : (
        <p className={styles.who} title={person.id}>
          {person.name}
          <span>{roles.join(', ')}</span>
        </p>
      )}
      <Button
        look="quiet"
        small
        icon="leave"
        busy={signOut.isPending}
        onClick={() => leave(() => signOut.mutate(undefined, { onError: toast.failed }))}
      >
        Sign out
      </Button>
      <IconButton
        small
        icon={themeIcons[theme]}
        label={`Colours: ${theme}. Change to ${following}.`}
        onClick={() => chooseTheme(following)}
      />
    </div>
  );
}
