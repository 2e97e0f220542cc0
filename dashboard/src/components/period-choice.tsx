/** The period that a page shows; it is in the address. */
import { useState, type ReactElement } from 'react';
import { ranges, type Period } from '../api/period.ts';
import type { Search } from '../api/search.ts';
import { Choice } from './choice.tsx';
import { Dates } from './dates.tsx';

interface PeriodChoiceProps {
  readonly period: Period;
  readonly change: (change: Search) => void;
}

export function PeriodChoice({ period, change }: PeriodChoiceProps): ReactElement {
  const [isChoosing, setChoosing] = useState(false);
  return (
    <>
      <Choice
        label="Period"
        options={ranges}
        value={period.range}
        onChange={(range) =>
          range === 'own'
            ? setChoosing(true)
            : change({ range, since: undefined, until: undefined })
        }
      />
      <Dates
        open={isChoosing}
        onClose={() => setChoosing(false)}
        onChosen={(since, until) => change({ range: undefined, since, until })}
      />
    </>
  );
}
