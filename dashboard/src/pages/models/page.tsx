/** Models and providers: what can be called, which targets answer, and their health. */
import type { ReactElement } from 'react';
import layout from '../../components/layout.module.css';
import { PageHead } from '../../components/panel.tsx';
import { ModelList } from './model-list.tsx';
import { Downloads, Providers } from './providers.tsx';

export function ModelsPage(): ReactElement {
  return (
    <>
      <PageHead title="Models" about="Models that can be called, their targets and their health." />
      <div className={layout.stack}>
        <Downloads />
        <ModelList />
        <Providers />
      </div>
    </>
  );
}
