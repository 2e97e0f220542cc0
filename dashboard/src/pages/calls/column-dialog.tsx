/** Which columns the table of calls has. */
import type { ReactElement } from 'react';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { CheckField } from '../../components/field.tsx';
import type { ColumnChoice } from './columns.tsx';
import styles from './page.module.css';

interface ColumnDialogProps {
  readonly columns: ColumnChoice;
  readonly open: boolean;
  readonly onClose: () => void;
}

export function ColumnDialog({ columns, open, onClose }: ColumnDialogProps): ReactElement {
  const { all, shown, choose } = columns;
  const ids = shown.map(({ id }) => id);
  const toggle = (id: string, isShown: boolean): void =>
    choose(isShown ? [...ids, id] : ids.filter((each) => each !== id));
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Columns"
      description="Remembered in this browser."
      footer={
        <>
          <Button onClick={() => choose(undefined)}>Reset</Button>
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </>
      }
    >
      <div className={styles.columns}>
        {all.map(({ id, title }) => (
          <CheckField
            key={id}
            label={title}
            checked={ids.includes(id)}
            // A table has at least one.
            disabled={ids.length === 1 && ids.includes(id)}
            onChange={(isShown) => toggle(id, isShown)}
          />
        ))}
      </div>
    </Dialog>
  );
}
