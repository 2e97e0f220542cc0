/** What can be called, and how those are who answer. */
import { useMemo, useState, type ReactElement } from 'react';
import { useOpened } from '../../api/search.ts';
import { CutText } from '../../components/cut-text.tsx';
import { DataTable, type Column } from '../../components/data-table.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { TextField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { Panel } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { useModels, type Model } from '../../api/models.ts';
import { HealthBadge, worstHealth } from './health.tsx';
import { ModelSheet } from './model-sheet.tsx';
import styles from './models.module.css';

const columns: readonly Column<Model>[] = [
  {
    id: 'id',
    title: 'Model',
    width: 'minmax(12rem, 2fr)',
    cell: ({ id }) => <CutText text={id} />,
  },
  {
    id: 'targets',
    title: 'Answered by',
    width: 'minmax(12rem, 3fr)',
    cell: ({ targets }) => <CutText text={targets.map(({ target }) => target).join(' → ')} />,
  },
  {
    id: 'health',
    title: 'Health',
    width: 'minmax(8rem, 1fr)',
    cell: (model) => <HealthBadge health={worstHealth(model)} />,
  },
];

export function ModelList(): ReactElement {
  const query = useModels();
  const [text, setText] = useState('');
  const opened = useOpened('model');
  const part = text.trim().toLowerCase();
  const models = useMemo(
    () => query.data?.models.filter(({ id }) => id.toLowerCase().includes(part)) ?? [],
    [query.data, part],
  );
  const shown = query.data?.models.find(({ id }) => id === opened.id);
  return (
    <Panel flush>
      <div className={layout.tools}>
        <TextField
          label="Find models"
          quietLabel
          type="search"
          placeholder="Find by name"
          value={text}
          onChange={setText}
        />
      </div>
      <QueryState query={query}>
        {({ problems }) => (
          <>
            {models.length === 0 ? (
              <Empty title="No model name contains this text" />
            ) : (
              <DataTable
                label="Models"
                columns={columns}
                count={models.length}
                rowAt={(index) => models[index]}
                rowKey={({ id }) => id}
                onOpen={({ id }) => opened.open(id)}
                selected={opened.id}
                minWidth="40rem"
              />
            )}
            {problems.length === 0 ? null : (
              <ul className={styles.list} aria-label="Files that cannot be used">
                {problems.map(({ subject, why }) => (
                  <li key={subject} className={layout.muted}>
                    {subject}: {why}
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </QueryState>
      {shown === undefined ? null : <ModelSheet model={shown} onClose={opened.close} />}
      {opened.id !== undefined && query.isSuccess && shown === undefined ? (
        <Dialog open onClose={opened.close} title={opened.id} shape="side">
          <Empty title="Model not found">It may have been renamed or removed.</Empty>
        </Dialog>
      ) : null}
    </Panel>
  );
}
