/** Try any model on any endpoint, up to four at a time. */
import { useState, type ReactElement } from 'react';
import { useListedModels } from '../../components/model-field.tsx';
import { PageHead } from '../../components/panel.tsx';
import { Composer } from './composer.tsx';
import { SettingError } from './formats/request.ts';
import { noSettings, type CallSettings, type Turn, type UserTurn } from './formats/turns.ts';
import { nextRequest } from './next-request.ts';
import styles from './playground.module.css';
import {
  ParametersForm,
  SettingsForm,
  type AskedModel,
  type PlaygroundSettings,
} from './settings-form.tsx';
import { SideView } from './side-view.tsx';
import { useSide, type Side } from './use-side.ts';

const begin: PlaygroundSettings = { ...noSettings, models: [{ slot: 0, name: '' }], key: '' };

const noDraft: UserTurn = { role: 'user', text: '', pictures: [] };

interface ShownSide {
  readonly model: AskedModel;
  readonly side: Side;
  readonly settings: CallSettings;
}

export function PlaygroundPage(): ReactElement {
  const [settings, setSettings] = useState(begin);
  const [draft, setDraft] = useState(noDraft);
  const [wrong, setWrong] = useState<SettingError>();
  const slots = useSlots();
  // Until the user names one. Not in the field: what comes late must not stand before what is typed.
  const firstModel = useListedModels().data?.[0]?.id ?? '';
  const shown = settings.models.flatMap((model): readonly ShownSide[] => {
    const side = slots[model.slot];
    const own = { ...settings, model: model.name || firstModel };
    return side === undefined ? [] : [{ model, side, settings: own }];
  });

  const ask = (wanted: readonly ShownSide[], added: readonly Turn[]): boolean => {
    setWrong(undefined);
    try {
      for (const { side, settings: own } of wanted) side.ask(own, settings.key, added);
      return true;
    } catch (error) {
      if (!(error instanceof SettingError)) throw error;
      setWrong(error);
      return false;
    }
  };
  const change = (changed: Partial<PlaygroundSettings>): void => {
    const { models } = changed;
    if (models !== undefined) {
      // A side that is not shown is no call that someone waits for.
      for (const { model, side } of shown) {
        if (models.every(({ slot }) => slot !== model.slot)) side.load([]);
      }
    }
    setSettings((before) => ({ ...before, ...changed }));
  };
  const form = { settings, firstModel, wrong, onChange: change };
  return (
    <>
      <PageHead
        title="Playground"
        about="Playground calls are real calls: they use fallbacks, cost money and appear in the ledger."
      />
      <div className={styles.page}>
        <SettingsForm {...form} />
        <div className={styles.play}>
          <div className={styles.sides} data-count={shown.length}>
            {shown.map((each) => (
              <SideView
                key={each.model.slot}
                title={each.settings.model === '' ? 'No model chosen' : each.settings.model}
                side={each.side}
                next={nextRequest(each.settings, each.side.turns, draft)}
                onAgain={() => ask([each], [])}
                onResults={(turn) => ask([each], [turn])}
              />
            ))}
          </div>
          <Composer
            draft={draft}
            onDraft={setDraft}
            running={shown.some(({ side }) => side.running)}
            waiting={shown.every(({ side }) => side.turns.at(-1)?.role === 'user')}
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

/** Sides for as many models as can be compared. */
function useSlots(): readonly Side[] {
  return [useSide(), useSide(), useSide(), useSide()];
}
