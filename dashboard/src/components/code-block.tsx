/** Text to read and copy: commands, JSON, headers. */
import { useState, type ReactElement } from 'react';
import { ApiError } from '../api/api-error.ts';
import { IconButton } from './button.tsx';
import styles from './code-block.module.css';
import { useToast } from './toast.tsx';

const cannotCopy = new ApiError({
  kind: 'refused',
  what: 'The browser blocks copying from this page.',
  where: 'in the browser',
  next: 'Select the text and copy it by hand; over https:// or on localhost the button works.',
});

const shownMs = 1_500;

interface CopyButtonProps {
  readonly text: string;
  /** What is copied: `Copy the command`. */
  readonly label?: string;
}

export function CopyButton({ text, label = 'Copy' }: CopyButtonProps): ReactElement {
  const [isCopied, setCopied] = useState(false);
  const toast = useToast();
  const copy = async (): Promise<void> => {
    try {
      await writeClipboard(text);
      setCopied(true);
      setTimeout(() => setCopied(false), shownMs);
    } catch {
      toast.failed(cannotCopy);
    }
  };
  return (
    <IconButton
      small
      icon={isCopied ? 'check' : 'copy'}
      label={isCopied ? 'Copied' : label}
      onClick={() => void copy()}
    />
  );
}

/** Over plain HTTP from another machine browsers have no clipboard at all. */
async function writeClipboard(text: string): Promise<void> {
  const clipboard = (navigator as { readonly clipboard?: Clipboard }).clipboard;
  if (clipboard === undefined) throw new Error('no clipboard');
  await clipboard.writeText(text);
}

export function CodeBlock({ text, label }: { text: string; label: string }): ReactElement {
  return (
    <div className={styles.frame}>
      {/* It scrolls, so the keyboard must reach it. */}
      <pre className={styles.code} tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <div className={styles.copy}>
        <CopyButton text={text} label={`Copy: ${label}`} />
      </div>
    </div>
  );
}
