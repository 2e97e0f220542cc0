/** Models and providers: what can be called, who answers, and how they are. */
import type { ReactElement } from 'react';
import { PageHead } from '../../components/panel.tsx';
import { ModelList } from './model-list.tsx';
import styles from './models.module.css';
import { Downloads, Providers } from './providers.tsx';

export function ModelsPage(): ReactElement {
  return (
    <>
      <PageHead title="Models" about="What can be called, who answers, and how they are." />
      <div className={styles.stack}>
        <Downloads />
        <ModelList />
        <Providers />
      </div>
    </>
  );
}
