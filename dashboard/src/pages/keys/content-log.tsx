/** Content logging of a key: switched on in its form, and what was stored is removed from its sheet. */
import { useState, type ReactElement } from 'react';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/dialog.tsx';
import { CheckField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { keyPath, useChange, type Key } from './api.ts';
import type { KeyFields } from './form.ts';

interface FieldProps {
  readonly fields: KeyFields;
  readonly onChange: (fields: KeyFields) => void;
}

export function LogContentField({ fields, onChange }: FieldProps): ReactElement {
  return (
    <CheckField
      label="Log content"
      hint="Store the requests and answers of its calls, visible to everyone with access to this dashboard. Keys and media are removed, the rest is stored encrypted and deleted after some days. Off: only counts and costs are stored."
      checked={fields.logContent}
      onChange={(logContent) => onChange({ ...fields, logContent })}
    />
  );
}

/** Of any key: what was stored stays when logging is switched off. */
export function ForgetContent({ subject }: { readonly subject: Key }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const [removed, setRemoved] = useState<number>();
  const forget = useChange<{ readonly removed: number }>();
  return (
    <div className={layout.row}>
      <Button small look={subject.log_content ? 'danger' : 'quiet'} onClick={() => setOpen(true)}>
        Remove stored content
      </Button>
      {removed === undefined ? null : (
        <span className={layout.muted} role="status">
          Removed the content of {removed} {removed === 1 ? 'call' : 'calls'}.
        </span>
      )}
      <Confirm
        open={isOpen}
        onClose={() => setOpen(false)}
        title="Remove the stored content of this key?"
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
        The stored requests and answers are deleted permanently, and the responses that clients can
        continue. The calls stay in the ledger.
      </Confirm>
    </div>
  );
}
