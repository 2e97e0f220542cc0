/** Try any model on any endpoint, one or two at a time. */
import { useState, type ReactElement } from 'react';
import { useListedModels } from '../../components/model-field.tsx';
import { PageHead } from '../../components/panel.tsx';
import { Composer } from './composer.tsx';
import styles from './playground.module.css';
import { SettingError } from './request.ts';
import { SettingsForm, type PlaygroundSettings } from './settings-form.tsx';
import { SideView } from './side-view.tsx';
import type { Turn } from './turns.ts';
import { useSide, type Side } from './use-side.ts';

const begin: PlaygroundSettings = {
  endpoint: 'chat',
  model: '',
  second: '',
  compare: false,
  key: '',
  stream: true,
  system: '',
  maxTokens: '',
  temperature: '',
  tools: '',
  more: '',
};

export function PlaygroundPage(): ReactElement {
  const [settings, setSettings] = useState(begin);
  const [wrong, setWrong] = useState<SettingError>();
  const first = useSide();
  const second = useSide();
  // Until the user names one. Not in the field: what comes late must not stand before what is typed.
  const firstModel = useListedModels().data?.[0]?.id ?? '';
  const sides = settings.compare ? [first, second] : [first];
  const settingsOf = (side: Side): PlaygroundSettings => ({
    ...settings,
    model: side === second ? settings.second : settings.model || firstModel,
  });

  const ask = (wanted: readonly Side[], added: readonly Turn[]): boolean => {
    setWrong(undefined);
    try {
      for (const side of wanted) side.ask(settingsOf(side), settings.key, added);
      return true;
    } catch (error) {
      if (!(error instanceof SettingError)) throw error;
      setWrong(error);
      return false;
    }
  };
  return (
    <>
      <PageHead
        title="Playground"
        about="Playground calls are real calls: they use fallbacks, cost money and appear in the ledger."
      />
      <div className={styles.page}>
        <SettingsForm
          settings={settings}
          firstModel={firstModel}
          wrong={wrong}
          onChange={(change) => setSettings((before) => ({ ...before, ...change }))}
        />
        <div className={styles.play}>
          <div className={styles.sides} data-count={sides.length}>
            {sides.map((side) => (
              <SideView
                key={side === first ? 'first' : 'second'}
                title={settingsOf(side).model === '' ? 'No model chosen' : settingsOf(side).model}
                side={side}
                onAgain={() => ask([side], [])}
                onResults={(turn) => ask([side], [turn])}
              />
            ))}
          </div>
          <Composer
            running={sides.some(({ running }) => running)}
            onSend={(turn) => ask(sides, [turn])}
            onStop={() => onAll([first, second], 'stop')}
            onClear={() => onAll([first, second], 'clear')}
          />
        </div>
      </div>
    </>
  );
}

function onAll(sides: readonly Side[], what: 'stop' | 'clear'): void {
  for (const side of sides) side[what]();
}
