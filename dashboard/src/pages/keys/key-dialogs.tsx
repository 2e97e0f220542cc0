/** Making and changing a key. The secret is shown once, in the window that made it. */
import { useState, type ReactElement } from 'react';
import { Button } from '../../components/button.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { Dialog } from '../../components/dialog.tsx';
import layout from '../../components/layout.module.css';
import { ErrorPanel } from '../../components/state.tsx';
import { keyPath, useChange, type Key, type NewKey } from './api.ts';
import { changedOnly, emptyKey, keyChange, keyFieldsOf, newKeyBody } from './form.ts';
import { KeyForm } from './key-form.tsx';
import { wrongOf } from './policy-form.tsx';

interface WindowProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

export function CreateKey({ open, onClose }: WindowProps): ReactElement {
  const [fields, setFields] = useState(emptyKey);
  const create = useChange<NewKey>();
  const close = (): void => {
    setFields(emptyKey);
    create.reset();
    onClose();
  };
  if (create.data !== undefined) {
    return <SecretOnce open={open} onClose={close} made={create.data} />;
  }
  const submit = (): void =>
    create.mutate({ method: 'POST', path: '/api/keys', body: newKeyBody(fields) });
  return (
    <Dialog
      open={open}
      onClose={close}
      title="Create a key"
      shape="wide"
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button look="primary" busy={create.isPending} onClick={submit}>
            Create key
          </Button>
        </>
      }
    >
      <div className={layout.sections}>
        {create.error === null ? null : <ErrorPanel error={create.error} />}
        <KeyForm fields={fields} onChange={setFields} wrong={wrongOf(create.error)} />
      </div>
    </Dialog>
  );
}

/** After making or rotating a key. */
export function SecretOnce({
  open,
  onClose,
  made,
}: WindowProps & { readonly made: NewKey }): ReactElement {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Copy the secret now"
      description="It is shown only now and is not stored. Anyone who has it can call with this key."
      footer={
        <Button look="primary" onClick={onClose}>
          I have copied it
        </Button>
      }
    >
      <div className={layout.sections}>
        <CodeBlock text={made.key} label="The secret of the key" />
        <p className={layout.muted}>
          Send it as <code>Authorization: Bearer …</code> or <code>x-api-key</code>. The Setup page
          has snippets for each client.
        </p>
      </div>
    </Dialog>
  );
}

export function EditKey({
  subject,
  onClose,
}: {
  readonly subject: Key;
  readonly onClose: () => void;
}): ReactElement {
  const [before] = useState(() => keyFieldsOf(subject));
  const [fields, setFields] = useState(before);
  const change = useChange<Key>();
  const submit = (): void =>
    change.mutate(
      {
        method: 'PATCH',
        path: keyPath(subject.id),
        body: changedOnly(keyChange(fields), keyChange(before)),
      },
      { onSuccess: onClose },
    );
  return (
    <Dialog
      open
      onClose={onClose}
      title="Change the key"
      description="Changes apply from the next call on."
      shape="wide"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={change.isPending} onClick={submit}>
            Save
          </Button>
        </>
      }
    >
      <div className={layout.sections}>
        {change.error === null ? null : <ErrorPanel error={change.error} />}
        <KeyForm fields={fields} onChange={setFields} wrong={wrongOf(change.error)} />
      </div>
    </Dialog>
  );
}
