/** Try any model on any endpoint, up to four at a time. */
import { useState, type ReactElement } from 'react';
import { Button, IconButton } from '../../components/button.tsx';
import { PageHead } from '../../components/panel.tsx';
import { ErrorPanel } from '../../components/state.tsx';
import { Composer } from './composer.tsx';
import type { Snapshot } from './formats/snapshot.ts';
import type { Turn } from './formats/turns.ts';
import { nextRequest } from './next-request.ts';
import styles from './playground.module.css';
import { SavedDialog } from './saved-dialog.tsx';
import { ParametersForm, SettingsForm } from './settings-form.tsx';
import { ShareDialog } from './share-dialog.tsx';
import { SideView } from './side-view.tsx';
import { usePlayground } from './use-playground.ts';

export function PlaygroundPage(): ReactElement {
  const { settings, shown, ask, open, ...state } = usePlayground();
  const { draft, firstModel, wrong, again, notice } = state;
  const form = { settings, firstModel, wrong, onChange: state.change };
  return (
    <>
      <PageHead
        title="Playground"
        about="Playground calls are real calls: they use fallbacks, cost money and appear in the ledger."
        actions={
          <Keeping current={state.current} onOpen={(snapshot) => open({ snapshot, notice: '' })} />
        }
      />
      {again.isError ? <ErrorPanel error={again.error} /> : null}
      {notice === '' ? null : (
        <div className={styles.notice} role="note" aria-label="What was opened">
          <p>{notice}</p>
          <IconButton small icon="close" label="Close the note" onClick={state.closeNotice} />
        </div>
      )}
      <div className={styles.page}>
        <SettingsForm {...form} />
        <div className={styles.play}>
          <div className={styles.sides} data-count={shown.length}>
            {shown.map((each) => (
              <SideView
                key={each.model.slot}
                title={each.settings.model === '' ? 'No model chosen' : each.settings.model}
                side={each.side}
                asKey={settings.key}
                next={nextRequest(each.settings, each.side.turns, draft)}
                onAgain={() => ask([each], [])}
                onResults={(turn) => ask([each], [turn])}
              />
            ))}
          </div>
          <Composer
            draft={draft}
            onDraft={state.setDraft}
            running={shown.some(({ side }) => side.running)}
            waiting={shown.every(({ side }) => isQuestion(side.turns.at(-1)))}
            onSend={(added) => ask(shown, added)}
            onStop={() => shown.forEach(({ side }) => side.stop())}
            onClear={() => shown.forEach(({ side }) => side.load([]))}
          />
        </div>
        <ParametersForm {...form} />
      </div>
    </>
  );
}

function isQuestion(turn: Turn | undefined): boolean {
  return turn !== undefined && turn.role !== 'assistant';
}

interface KeepingProps {
  readonly current: Snapshot;
  readonly onOpen: (snapshot: Snapshot) => void;
}

/** The ways to have it again: in this browser, and by a link. */
function Keeping({ current, onOpen }: KeepingProps): ReactElement {
  const [shared, setShared] = useState<Snapshot>();
  const [isListOpen, setListOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setListOpen(true)}>Saved prompts</Button>
      <Button icon="external" onClick={() => setShared(current)}>
        Share
      </Button>
      {isListOpen ? (
        <SavedDialog
          current={current}
          onClose={() => setListOpen(false)}
          onOpen={(snapshot) => {
            setListOpen(false);
            onOpen(snapshot);
          }}
        />
      ) : null}
      {shared === undefined ? null : (
        <ShareDialog snapshot={shared} onClose={() => setShared(undefined)} />
      )}
    </>
  );
}
