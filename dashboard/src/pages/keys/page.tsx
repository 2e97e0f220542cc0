/** Keys, teams and tags: who may call, what, and for how much. */
import type { ReactElement } from 'react';
import { useOpened } from '../../api/search.ts';
import { Button } from '../../components/button.tsx';
import layout from '../../components/layout.module.css';
import { PageHead } from '../../components/panel.tsx';
import { CreateKey } from './key-dialogs.tsx';
import { Holders } from './holders.tsx';
import { KeyList } from './key-list.tsx';

export function KeysPage(): ReactElement {
  const opened = useOpened('new');
  const create = (): void => opened.open('key');
  return (
    <>
      <PageHead
        title="Keys"
        about="API keys, teams and tags with their models, limits and budgets."
        actions={
          <Button look="primary" icon="plus" onClick={create}>
            Create key
          </Button>
        }
      />
      <div className={layout.stack}>
        <KeyList onCreate={create} />
        <Holders kind="team" />
        <Holders kind="tag" />
      </div>
      <CreateKey open={opened.id === 'key'} onClose={opened.close} />
    </>
  );
}
