/** Buttons. A busy one keeps its focus and cannot be pressed twice. */
import type { ComponentProps, ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import styles from './button.module.css';
import { classNames } from './class-names.ts';
import { Icon, type IconName } from './icon.tsx';

export interface ButtonProps extends ComponentProps<'button'> {
  readonly look?: 'plain' | 'primary' | 'danger' | 'quiet';
  readonly small?: boolean;
  readonly busy?: boolean;
  readonly icon?: IconName;
  readonly children?: ReactNode;
}

export function Button(props: ButtonProps): ReactElement {
  const {
    look = 'plain',
    small,
    busy = false,
    icon,
    children,
    className,
    onClick,
    ...rest
  } = props;
  return (
    <button
      type="button"
      {...rest}
      className={classNames(
        styles.button,
        look !== 'plain' && styles[look],
        small === true && styles.small,
        className,
      )}
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      onClick={(event) => {
        if (busy) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      {children}
    </button>
  );
}

interface DownloadLinkProps {
  /** Answers with a file and its name. */
  readonly href: string;
  readonly children: ReactNode;
}

interface ButtonLinkProps {
  readonly href: string;
  readonly onClick?: () => void;
  readonly children: ReactNode;
}

/** A link that looks like the main button: the browser leaves the page. */
export function ButtonLink({ href, onClick, children }: ButtonLinkProps): ReactElement {
  return (
    <a className={classNames(styles.button, styles.primary)} href={href} onClick={onClick}>
      {children}
    </a>
  );
}

/** A link that looks like the main button, to another page of the dashboard. */
export function PageLink({ href, children }: Omit<ButtonLinkProps, 'onClick'>): ReactElement {
  return (
    <Link className={classNames(styles.button, styles.primary)} href={href}>
      {children}
    </Link>
  );
}

/** A link that looks like a button: the browser saves what it leads to. */
export function DownloadLink({ href, children }: DownloadLinkProps): ReactElement {
  return (
    <a className={styles.button} href={href} download>
      <Icon name="download" />
      {children}
    </a>
  );
}

export interface IconButtonProps extends Omit<ButtonProps, 'children' | 'icon'> {
  readonly icon: IconName;
  /** What it does: read aloud and shown on hover. */
  readonly label: string;
}

/** A button that shows an icon only. */
export function IconButton({ label, className, ...rest }: IconButtonProps): ReactElement {
  return (
    <Button
      look="quiet"
      {...rest}
      aria-label={label}
      title={label}
      className={classNames(styles.icon, className)}
    />
  );
}
