/** The state of the playground: settings, up to four sides, the message that is written, and what was opened. */
import { useState } from 'react';
import { useListedModels } from '../../components/model-field.tsx';
import { SettingError } from './formats/request.ts';
import { noSettings, type CallSettings, type Turn } from './formats/turns.ts';
import type { Snapshot } from './formats/snapshot.ts';
import type { AskedModel, PlaygroundSettings } from './settings-form.tsx';
import { noDraft, useCallAgain, useSharedLink, type Opened } from './use-opened.ts';
import { useSide, type Side } from './use-side.ts';

const begin: PlaygroundSettings = { ...noSettings, models: [{ slot: 0, name: '' }], key: '' };

export interface ShownSide {
  readonly model: AskedModel;
  readonly side: Side;
  readonly settings: CallSettings;
}

export function usePlayground() {
  const [settings, setSettings] = useState(begin);
  const [draft, setDraft] = useState(noDraft);
  const [wrong, setWrong] = useState<SettingError>();
  const [notice, setNotice] = useState('');
  const slots = useSlots();
  // Until the user names one. Not in the field: what comes late must not be before what is typed.
  const firstModel = useListedModels().data?.[0]?.id ?? '';
  const shown = settings.models.flatMap((model): readonly ShownSide[] => {
    const side = slots[model.slot];
    const own = { ...settings, model: model.name || firstModel };
    return side === undefined ? [] : [{ model, side, settings: own }];
  });

  /** False: a setting is wrong, and nothing was sent to the sides behind it. */
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
      // Stop the call of a model that is no longer shown.
      for (const { model, side } of shown) {
        if (models.every(({ slot }) => slot !== model.slot)) side.load([]);
      }
    }
    setSettings((before) => ({ ...before, ...changed }));
  };
  const open = ({ snapshot, notice: text }: Opened): void => {
    setNotice(text);
    if (snapshot === undefined) return;
    const { sides, draft: written, settings: own } = snapshot;
    setWrong(undefined);
    setSettings(({ key }) => ({
      ...own,
      models: sides.map(({ model }, slot) => ({ slot, name: model })),
      key,
    }));
    setDraft(written);
    for (const [slot, side] of slots.entries()) side.load(sides[slot]?.turns ?? []);
  };
  useSharedLink(open);
  const again = useCallAgain(open);
  const current = snapshotOf(settings, shown, draft);
  return {
    settings,
    change,
    wrong,
    firstModel,
    shown,
    ask,
    draft,
    setDraft,
    again,
    notice,
    closeNotice: () => setNotice(''),
    current,
    open,
  };
}

function snapshotOf(
  { models: _models, key: _key, ...settings }: PlaygroundSettings,
  shown: readonly ShownSide[],
  draft: Snapshot['draft'],
): Snapshot {
  const sides = shown.map(({ settings: { model }, side: { turns } }) => ({ model, turns }));
  return { settings, sides, draft };
}

/** Sides for as many models as can be compared. */
function useSlots(): readonly Side[] {
  return [useSide(), useSide(), useSide(), useSide()];
}
