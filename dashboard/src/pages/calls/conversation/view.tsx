/** A call as a conversation: what was asked, then what was answered. Text of models is formatted, and no markup (S12). */
import { useState, type ReactElement } from 'react';
import { Button } from '../../../components/button.tsx';
import { CodeBlock } from '../../../components/code-block.tsx';
import { Markdown } from '../../../components/markdown/markdown.tsx';
import { Facts } from '../../../components/panel.tsx';
import { count } from '../../../format/number.ts';
import styles from './conversation.module.css';
import type { Message, Part } from './parts.ts';
import type { Conversation } from './read.ts';

/** Agents send hundreds of messages with each call; the end is what a person searches for. */
const shownMessages = 12;

export function ConversationView({ asked, answered, tools, settings }: Conversation): ReactElement {
  const [isWhole, setWhole] = useState(false);
  const hidden = isWhole ? 0 : Math.max(0, asked.length - shownMessages);
  return (
    <div className={styles.conversation}>
      {settings.length === 0 && tools.length === 0 ? null : (
        <details className={styles.fold}>
          <summary>
            Settings ({settings.length}) and tools ({tools.length})
          </summary>
          <Facts
            facts={[
              ...settings.map(([name, json]) => [name, <code key={name}>{json}</code>] as const),
              ...(tools.length === 0 ? [] : [['tools', tools.join(', ')] as const]),
            ]}
          />
        </details>
      )}
      {hidden === 0 ? null : (
        <Button small onClick={() => setWhole(true)}>
          Show {count(hidden)} earlier messages
        </Button>
      )}
      {asked.slice(hidden).map((message, index) => (
        <MessageView key={`${hidden + index}`} message={message} />
      ))}
      {answered.map((message, index) => (
        <MessageView key={`answer ${index}`} message={message} isAnswer />
      ))}
      {answered.length > 0 ? null : (
        <p className={styles.muted}>The answer has no message. Raw shows what the client got.</p>
      )}
    </div>
  );
}

const roles: { readonly [role: string]: string } = {
  system: 'System',
  developer: 'Developer',
  user: 'User',
  assistant: 'Model',
  tool: 'Tool results',
};

function MessageView({
  message: { role, parts },
  isAnswer = false,
}: {
  message: Message;
  isAnswer?: boolean;
}): ReactElement {
  return (
    <article className={styles.message} data-role={role} data-answer={isAnswer || undefined}>
      <h4 className={styles.who}>{isAnswer ? 'Answer' : (roles[role] ?? (role || 'Item'))}</h4>
      {parts.length === 0 ? <p className={styles.muted}>(empty)</p> : null}
      {parts.map((part, index) => (
        <PartView key={`${index} ${part.kind}`} part={part} isFormatted={role === 'assistant'} />
      ))}
    </article>
  );
}

function PartView({ part, isFormatted }: { part: Part; isFormatted: boolean }): ReactElement {
  switch (part.kind) {
    case 'text':
      return <TextView text={part.text} isFormatted={isFormatted} />;
    case 'reasoning':
      if (part.text === '') return <p className={styles.muted}>Reasoning, hidden or encrypted</p>;
      return (
        <details className={styles.fold}>
          <summary>Reasoning</summary>
          <Markdown text={part.text} />
        </details>
      );
    case 'call':
      return (
        <CodeBlock label={`Call of ${part.name} ${part.id}`} text={`${part.name}(${part.input})`} />
      );
    case 'result':
      return (
        <div className={styles.result}>
          <p className={styles.muted}>
            {part.isError ? 'Error' : 'Result'} of <code>{part.id}</code>
          </p>
          {part.parts.map((inner, index) => (
            <PartView key={`${index} ${inner.kind}`} part={inner} isFormatted={false} />
          ))}
        </div>
      );
    case 'media':
      return (
        <p className={styles.media}>
          {part.type}: {part.about === '' ? 'not stored' : part.about}
        </p>
      );
    case 'other':
      return <CodeBlock label={part.type === '' ? 'Part' : part.type} text={part.json} />;
  }
}

/** System prompts of agents have tens of thousands of characters. */
const shownCharacters = 3_000;

function TextView({ text, isFormatted }: { text: string; isFormatted: boolean }): ReactElement {
  const [isWhole, setWhole] = useState(text.length <= shownCharacters);
  if (isFormatted && isWhole) return <Markdown text={text} />;
  return (
    <>
      <p className={styles.text} dir="auto">
        {isWhole ? text : `${text.slice(0, shownCharacters)}…`}
      </p>
      {isWhole ? null : (
        <Button small onClick={() => setWhole(true)}>
          Show all {count(text.length)} characters
        </Button>
      )}
    </>
  );
}
