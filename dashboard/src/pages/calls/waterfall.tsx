/** When the tries of a call began and how long each took. */
import { Fragment, type ReactElement } from 'react';
import { firstTokenMs, type Attempt, type CallDetails } from '../../api/calls.ts';
import { classNames } from '../../components/class-names.ts';
import { CutText } from '../../components/cut-text.tsx';
import { span } from '../../format/time.ts';
import styles from './page.module.css';

export function Waterfall({ call }: { call: CallDetails }): ReactElement {
  const begin = Date.parse(call.started_at);
  // Starts are whole milliseconds: of a very short call one may seem to begin after its end.
  const endOf = (attempt: Attempt): number => Date.parse(attempt.started_at) - begin + attempt.ms;
  const whole = Math.max(call.total_ms, ...call.attempt_list.map(endOf), 0.1);
  return (
    <div className={styles.bars}>
      <Bar
        name="the call"
        outcome={call.outcome}
        from={0}
        ms={call.total_ms}
        whole={whole}
        mark={firstTokenMs(call)}
      />
      {call.attempt_list.map((attempt, i) => (
        <Fragment key={`${i}:${attempt.started_at}`}>
          <Bar
            name={`${i + 1}. ${attempt.provider}/${attempt.upstream_model}`}
            outcome={attempt.outcome}
            from={Date.parse(attempt.started_at) - begin}
            ms={attempt.ms}
            whole={whole}
          />
          <div className={styles.barAbout}>{aboutAttempt(attempt)}</div>
        </Fragment>
      ))}
    </div>
  );
}

function aboutAttempt(attempt: Attempt): string {
  const { outcome, status, error, credential, message } = attempt;
  const { maybe_billed: maybeBilled } = attempt;
  return [
    outcome,
    status === null ? '' : `status ${status}`,
    error ?? '',
    message ?? '',
    credential === null ? '' : `credential ${credential}`,
    maybeBilled ? 'sent but not answered: the provider may bill it' : '',
  ]
    .filter((part) => part !== '')
    .join(' · ');
}

interface BarProps {
  readonly name: string;
  readonly outcome: string;
  /** Milliseconds since the call began. */
  readonly from: number;
  readonly ms: number;
  readonly whole: number;
  /** When the first part of the answer came. */
  readonly mark?: number | null;
}

function Bar({ name, outcome, from, ms, whole, mark }: BarProps): ReactElement {
  const share = (value: number): string => `${Math.min(100, Math.max(0, (value / whole) * 100))}%`;
  return (
    <>
      <div className={styles.barName}>
        <CutText text={name} />
      </div>
      <div className={styles.track}>
        <div
          className={classNames(styles.bar, styles[`bar${outcome}`])}
          style={{ left: share(Math.min(from, whole * 0.99)), width: share(ms) }}
        />
        {mark === null || mark === undefined ? null : (
          <div
            className={styles.mark}
            style={{ left: share(mark) }}
            title={`first token after ${span(mark)}`}
          />
        )}
      </div>
      <div className={styles.barText}>{span(ms)}</div>
    </>
  );
}
