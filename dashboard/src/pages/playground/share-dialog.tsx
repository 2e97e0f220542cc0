/** A link that has the conversation and its settings in itself. */
import { useEffect, useState, type ReactElement } from 'react';
import { CodeBlock } from '../../components/code-block.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { count } from '../../format/number.ts';
import { maxLink, shareFragment } from './formats/share.ts';
import type { Snapshot } from './formats/snapshot.ts';
import styles from './playground.module.css';

interface ShareDialogProps {
  readonly snapshot: Snapshot;
  readonly onClose: () => void;
}

export function ShareDialog({ snapshot, onClose }: ShareDialogProps): ReactElement {
  const [link, setLink] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    const make = async (): Promise<void> => {
      const fragment = await shareFragment(snapshot);
      if (isCurrent) setLink(location.origin + location.pathname + fragment);
    };
    void make();
    return () => {
      isCurrent = false;
    };
  }, [snapshot]);
  return (
    <Dialog
      open
      title="Link to share"
      description="Opens the playground with this conversation and its settings, for people who may use the playground. It has no key, and nothing is stored on the gateway."
      onClose={onClose}
    >
      {link === undefined ? null : link.length > maxLink ? (
        <p className={styles.failure} role="alert">
          The conversation is too long for a link: {count(link.length)} characters, and at most{' '}
          {count(maxLink)} fit. Remove images, or share a shorter conversation.
        </p>
      ) : (
        <CodeBlock label="Link" text={link} />
      )}
    </Dialog>
  );
}
