/** Keys and teams: who may call, what, and for how much. */
import { useState, type ReactElement } from 'react';
import { Button } from '../../components/button.tsx';
import layout from '../../components/layout.module.css';
import { PageHead } from '../../components/panel.tsx';
import { CreateKey } from './key-dialogs.tsx';
import { KeyList } from './key-list.tsx';
import { Teams } from './teams.tsx';

export function KeysPage(): ReactElement {
  const [isCreating, setCreating] = useState(false);
  const create = (): void => setCreating(true);
  return (
    <>
      <PageHead
        title="Keys"
        about="API keys with their models, limits and budgets."
        actions={
          <Button look="primary" icon="plus" onClick={create}>
            Create key
          </Button>
        }
      />
      <div className={layout.stack}>
        <KeyList onCreate={create} />
        <Teams />
      </div>
      <CreateKey open={isCreating} onClose={() => setCreating(false)} />
    </>
  );
}
