/** A name of any length and direction on one line, cut with an ellipsis; all of it on hover. */
import type { ReactElement } from 'react';
import styles from './cut-text.module.css';

export function CutText({ text }: { text: string }): ReactElement {
  return (
    <span className={styles.cut} title={text} dir="auto">
      {text}
    </span>
  );
}
