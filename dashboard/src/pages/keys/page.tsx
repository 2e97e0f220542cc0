/** Keys, teams and tags: who may call, what, and for how much. */
import type { ReactElement } from 'react';
import { useOpened } from '../../api/search.ts';
import { keyMakers, useMay, viewers } from '../../api/session.ts';
import { Button } from '../../components/button.tsx';
import layout from '../../components/layout.module.css';
import { PageHead } from '../../components/panel.tsx';
import { CreateKey } from './key-dialogs.tsx';
import { Holders } from './holders.tsx';
import { KeyList } from './key-list.tsx';

export function KeysPage(): ReactElement {
  const opened = useOpened('new');
  const create = (): void => opened.open('key');
  const mayCreate = useMay(keyMakers);
  const seesTags = useMay(viewers);
  return (
    <>
      <PageHead
        title="Keys"
        about="API keys, teams and tags with their models, limits and budgets."
        actions={
          mayCreate ? (
            <Button look="primary" icon="plus" onClick={create}>
              Create key
            </Button>
          ) : undefined
        }
      />
      <div className={layout.stack}>
        <KeyList onCreate={create} />
        <Holders kind="team" />
        {seesTags ? <Holders kind="tag" /> : null}
      </div>
      <CreateKey open={opened.id === 'key'} onClose={opened.close} />
    </>
  );
}
