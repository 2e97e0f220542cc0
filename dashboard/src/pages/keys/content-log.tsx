/** Content logging of a key: switched on in its form, and what was kept is removed from its sheet. */
import { useState, type ReactElement } from 'react';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/dialog.tsx';
import { CheckField } from '../../components/field.tsx';
import { keyPath, useChange, type Key } from './api.ts';
import type { KeyFields } from './form.ts';
import styles from './keys.module.css';

interface FieldProps {
  readonly fields: KeyFields;
  readonly onChange: (fields: KeyFields) => void;
}

export function LogContentField({ fields, onChange }: FieldProps): ReactElement {
  return (
    <CheckField
      label="Log content"
      hint="Keep what its calls ask and are answered, for everybody who may open this dashboard. Keys and media are taken out, the rest is sealed in the store and removed after some days. Off: only counts and costs are kept."
      checked={fields.logContent}
      onChange={(logContent) => onChange({ ...fields, logContent })}
    />
  );
}

/** Of any key: what was kept stays when logging is switched off. */
export function ForgetContent({ subject }: { readonly subject: Key }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const [removed, setRemoved] = useState<number>();
  const forget = useChange<{ readonly removed: number }>();
  return (
    <div className={styles.row}>
      <Button small look="danger" onClick={() => setOpen(true)}>
        Remove kept content
      </Button>
      {removed === undefined ? null : (
        <span className={styles.muted} role="status">
          Removed what {removed} {removed === 1 ? 'call' : 'calls'} said.
        </span>
      )}
      <Confirm
        open={isOpen}
        onClose={() => setOpen(false)}
        title="Remove what the calls of this key said?"
        action="Remove content"
        danger
        onConfirm={async () => {
          const done = await forget.mutateAsync({
            method: 'DELETE',
            path: keyPath(subject.id, '/content'),
          });
          setRemoved(done.removed);
        }}
      >
        What was kept of its requests and answers is removed for ever. Its rows in the ledger stay.
      </Confirm>
    </div>
  );
}
