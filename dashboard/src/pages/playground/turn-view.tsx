/** One turn of a conversation. What a model wrote is formatted, and no markup (S12). */
import { useState, type FormEvent, type ReactElement } from 'react';
import { Button } from '../../components/button.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { TextArea } from '../../components/field.tsx';
import { Markdown } from '../../components/markdown/markdown.tsx';
import styles from './playground.module.css';
import { pictureUrl } from './formats/request.ts';
import type { AssistantTurn, ToolCall, ToolTurn, Turn } from './formats/turns.ts';

const names: { readonly [R in Turn['role']]: string } = {
  user: 'You',
  assistant: 'Model',
  tool: 'Tool results',
};

export function TurnView({ turn, live = false }: { turn: Turn; live?: boolean }): ReactElement {
  return (
    <article className={styles.turn} data-role={turn.role} aria-busy={live || undefined}>
      <h3 className={styles.who}>{names[turn.role]}</h3>
      <Said turn={turn} live={live} />
    </article>
  );
}

function Said({ turn, live }: { turn: Turn; live: boolean }): ReactElement {
  switch (turn.role) {
    case 'user':
      return (
        <>
          {turn.pictures.map((picture) => (
            <img
              key={picture.name + picture.base64.length}
              className={styles.picture}
              src={pictureUrl(picture)}
              alt={picture.name}
            />
          ))}
          <p className={styles.text} dir="auto">
            {turn.text}
          </p>
        </>
      );
    case 'tool':
      return (
        <>
          {turn.results.map(({ id, text }) => (
            <CodeBlock key={id} label={`Result of ${id}`} text={text} />
          ))}
        </>
      );
    case 'assistant':
      return <Answered turn={turn} live={live} />;
  }
}

function Answered({ turn, live }: { turn: AssistantTurn; live: boolean }): ReactElement {
  const { text, reasoning, calls } = turn;
  const isEmpty = text === '' && reasoning === '' && calls.length === 0;
  return (
    <>
      {reasoning === '' ? null : (
        <details className={styles.reasoning} open={live && text === ''}>
          <summary>Reasoning</summary>
          <Markdown text={reasoning} />
        </details>
      )}
      {text === '' ? null : <Markdown text={text} />}
      {isEmpty ? <p className={styles.hint}>{live ? 'Waiting…' : '(an empty answer)'}</p> : null}
      {calls.map((call, index) => (
        <CodeBlock
          key={`${index}-${call.id}`}
          label={`Call of ${call.name}`}
          text={`${call.name}(${readable(call.arguments)})`}
        />
      ))}
    </>
  );
}

function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

interface ToolResultsProps {
  readonly calls: readonly ToolCall[];
  readonly onSend: (turn: ToolTurn) => void;
}

/** The person plays the tools. */
export function ToolResults({ calls, onSend }: ToolResultsProps): ReactElement {
  const [texts, setTexts] = useState<readonly string[]>(calls.map(() => ''));
  const send = (event: FormEvent): void => {
    event.preventDefault();
    const results = calls.map(({ id }, index) => ({ id, text: texts[index] ?? '' }));
    onSend({ role: 'tool', results });
  };
  return (
    <form className={styles.results} onSubmit={send}>
      {calls.map((call, index) => (
        <TextArea
          key={`${index}-${call.id}`}
          label={`Result of ${call.name}`}
          mono
          rows={2}
          value={texts[index] ?? ''}
          onChange={(text) =>
            setTexts((before) => before.map((old, place) => (place === index ? text : old)))
          }
        />
      ))}
      <div>
        <Button type="submit" look="primary" small>
          Send the results
        </Button>
      </div>
    </form>
  );
}
