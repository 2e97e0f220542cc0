/** Windows over the page: focus stays inside, Escape closes, and the focus returns to where it was. */
import { AlertDialog } from '@base-ui/react/alert-dialog';
import { Dialog as Base } from '@base-ui/react/dialog';
import { useLayoutEffect, useRef, useState, type ReactElement, type ReactNode } from 'react';
import { Button, IconButton } from './button.tsx';
import { classNames } from './class-names.ts';
import styles from './dialog.module.css';
import { ErrorPanel } from './state.tsx';

export interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: ReactNode;
  readonly description?: ReactNode;
  readonly children: ReactNode;
  /** Buttons at its foot. */
  readonly footer?: ReactNode;
  /** `side`: a sheet at the right edge, for details. */
  readonly shape?: 'center' | 'wide' | 'side';
}

/**
 * What a person came to fill in or to copy: Enter on the button that closes would throw it away. A sheet at the side is
 * read from its top.
 */
const beginnings = ['input:not([type=hidden]), select, textarea', '[tabindex="0"]'] as const;

function beginningOf(body: HTMLElement | null): HTMLElement | true {
  for (const selector of beginnings) {
    const found = body?.querySelector<HTMLElement>(selector);
    if (found !== null && found !== undefined) return found;
  }
  return true;
}

export function Dialog(props: DialogProps): ReactElement {
  const { open, onClose, title, description, children, footer, shape = 'center' } = props;
  const body = useRef<HTMLDivElement>(null);
  const shapeClass =
    shape === 'side'
      ? styles.side
      : classNames(styles.center, shape === 'wide' ? styles.wide : undefined);
  return (
    <Base.Root open={open} onOpenChange={(isOpen) => (isOpen ? undefined : onClose())}>
      <Base.Portal>
        <Base.Backdrop className={styles.backdrop} />
        <Base.Popup
          className={classNames(styles.popup, shapeClass)}
          initialFocus={() => (shape === 'side' ? true : beginningOf(body.current))}
        >
          <div className={styles.head}>
            <div className={styles.titles}>
              <Base.Title className={styles.title}>{title}</Base.Title>
              {description === undefined ? null : (
                <Base.Description className={styles.description}>{description}</Base.Description>
              )}
            </div>
            <Base.Close render={<IconButton icon="close" label="Close" small />} />
          </div>
          <div ref={body} className={styles.body}>
            {children}
          </div>
          {footer === undefined ? null : <div className={styles.foot}>{footer}</div>}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

export interface ConfirmProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  /** What will happen, and whether it can be undone. */
  readonly children: ReactNode;
  /** The verb on the button: `Revoke key`. */
  readonly action: string;
  readonly danger?: boolean;
  /** Closes when it resolves; what it throws is shown. */
  readonly onConfirm: () => Promise<unknown>;
}

/**
 * Where the focus goes when the button that asked is gone, as *Revoke* of a key that is revoked: else it would go to what
 * is behind this window.
 */
function topWindow(): HTMLElement | undefined {
  return [...document.querySelectorAll<HTMLElement>('[role=dialog]')].at(-1);
}

/** Asks before something happens that cannot be taken back. */
export function Confirm(props: ConfirmProps): ReactElement {
  const { open, onClose, title, children, action, danger = false, onConfirm } = props;
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const opener = useRef<Element>(null);
  useLayoutEffect(() => {
    if (open) opener.current = document.activeElement;
  }, [open]);
  const close = (): void => {
    setError(undefined);
    onClose();
  };
  const confirm = (): void => {
    setBusy(true);
    setError(undefined);
    onConfirm()
      .then(close, setError)
      .finally(() => setBusy(false));
  };
  return (
    // What was confirmed is heard first: its answer may be a secret, or a failure.
    <AlertDialog.Root
      open={open}
      onOpenChange={(isOpen) => (isOpen || isBusy ? undefined : close())}
    >
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className={styles.backdrop} />
        <AlertDialog.Popup
          className={classNames(styles.popup, styles.center)}
          finalFocus={() => opener.current?.isConnected === true || (topWindow() ?? true)}
        >
          <div className={styles.head}>
            <AlertDialog.Title className={classNames(styles.title, styles.titles)}>
              {title}
            </AlertDialog.Title>
          </div>
          <div className={styles.body}>
            <AlertDialog.Description render={<div />}>{children}</AlertDialog.Description>
            {error === undefined ? null : <ErrorPanel error={error} />}
          </div>
          <div className={styles.foot}>
            <AlertDialog.Close render={<Button>Cancel</Button>} />
            <Button look={danger ? 'danger' : 'primary'} busy={isBusy} onClick={confirm}>
              {action}
            </Button>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
