/** A period of one's own: from, and to or now. */
import { useState, type ReactElement } from 'react';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { TextField } from './field.tsx';
import layout from './layout.module.css';

interface DatesProps {
  readonly open: boolean;
  readonly onClose: () => void;
  /** ISO 8601 with zone; `until` undefined: now. */
  readonly onChosen: (since: string, until: string | undefined) => void;
}

export function Dates({ open, onClose, onChosen }: DatesProps): ReactElement {
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const since = Date.parse(from);
  const until = to === '' ? undefined : Date.parse(to);
  const isOrder = Number.isNaN(since) || until === undefined || since < until;
  const choose = (): void => {
    onChosen(
      new Date(since).toISOString(),
      until === undefined ? undefined : new Date(until).toISOString(),
    );
    onClose();
  };
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Period"
      description="In the time zone of this browser."
      footer={
        <Button look="primary" disabled={Number.isNaN(since) || !isOrder} onClick={choose}>
          Show
        </Button>
      }
    >
      <div className={layout.sections}>
        <TextField label="From" type="datetime-local" required value={from} onChange={setFrom} />
        <TextField
          label="To"
          type="datetime-local"
          hint="Empty: until now, and ongoing."
          value={to}
          onChange={setTo}
          error={isOrder ? undefined : 'Must be after the beginning.'}
        />
      </div>
    </Dialog>
  );
}
