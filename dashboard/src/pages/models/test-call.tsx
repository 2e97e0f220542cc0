/** One short call to a model, from here: whether it answers, how fast, and what. */
import { useState, type ReactElement } from 'react';
import { Link } from 'wouter';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import layout from '../../components/layout.module.css';
import { span } from '../../format/time.ts';
import { play, startOf, type Asked, type Played } from '../playground/play.ts';

/** Models that reason need some before the first word. */
const maxTokens = 256;

export function TestCall({ model }: { readonly model: string }): ReactElement {
  const [played, setPlayed] = useState<Played>();
  const isRunning = played?.state === 'running';
  const call = (): void => {
    const body = {
      model,
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: 'Say hello.' }],
    };
    const asked: Asked = { endpoint: 'chat', body, key: '' };
    setPlayed(startOf(asked));
    void play(asked, new AbortController().signal, setPlayed);
  };
  return (
    <div className={layout.sections}>
      <div className={layout.row}>
        <Button small busy={isRunning} onClick={call}>
          Test call
        </Button>
        <span className={layout.muted}>Sends “Say hello.” and is charged like any call.</span>
      </div>
      {played === undefined || isRunning ? null : <Result played={played} />}
    </div>
  );
}

function Result({ played }: { readonly played: Played }): ReactElement {
  const { state, status, answer, failure, totalMs, requestId } = played;
  const isGood = state === 'done';
  const text = answer.text.trim();
  return (
    <div className={layout.sections} role="region" aria-label="Result of the test call">
      <div className={layout.row}>
        <Badge
          tone={isGood ? 'good' : 'bad'}
          text={`${status ?? 'no answer'}${isGood ? ' ok' : ''}`}
        />
        <span>in {span(totalMs)}</span>
        {requestId === undefined ? null : <Link href={`/calls/${requestId}`}>Show the call</Link>}
      </div>
      <p>{isGood ? (text === '' ? 'The answer has no text.' : text) : failure}</p>
    </div>
  );
}
