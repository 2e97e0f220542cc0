/** One side: the conversation as people read it, the request and the raw answer, what it took. */
import { useEffect, useRef, type ReactElement, type RefObject } from 'react';
import { Badge } from '../../components/badge.tsx';
import { Button, IconButton } from '../../components/button.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { Panel } from '../../components/panel.tsx';
import { Empty } from '../../components/state.tsx';
import { Tabs, type Tab } from '../../components/tabs.tsx';
import { CallFacts } from './call-facts.tsx';
import { CodeView } from './code-view.tsx';
import type { SettingError } from './formats/request.ts';
import { shortened } from './formats/shortened.ts';
import type { NextRequest } from './next-request.ts';
import type { Played } from './play.ts';
import styles from './playground.module.css';
import { endpointPaths, type ToolTurn } from './formats/turns.ts';
import { ToolResults, TurnView } from './turn-view.tsx';
import { UpstreamView } from './upstream-view.tsx';
import type { Side } from './use-side.ts';

interface SideViewProps {
  readonly title: string;
  readonly side: Side;
  readonly next: NextRequest | SettingError;
  /** Id of the key to call as; '' = none. */
  readonly asKey: string;
  readonly onAgain: () => void;
  readonly onResults: (turn: ToolTurn) => void;
}

export function SideView(props: SideViewProps): ReactElement {
  const { title, side, next, asKey, onAgain, onResults } = props;
  const { played, running } = side;
  const conversation = <Conversation side={side} onAgain={onAgain} onResults={onResults} />;
  const canRepeat = played !== undefined && !running && played.state !== 'failed';
  return (
    <Panel
      title={title}
      actions={
        <>
          {canRepeat ? (
            <IconButton small icon="refresh" label="Ask again" onClick={onAgain} />
          ) : null}
          {played === undefined ? null : <StateBadge played={played} />}
        </>
      }
    >
      <Tabs
        label={`Views of ${title}`}
        tabs={[
          { id: 'talk', title: 'Conversation', content: conversation },
          { id: 'code', title: 'Code', content: <CodeView next={next} /> },
          {
            id: 'upstream',
            title: 'Upstream',
            content: <UpstreamView next={next} asKey={asKey} />,
          },
          ...(played === undefined ? [] : sentTabs(played)),
        ]}
      />
      {played === undefined ? null : (
        <div className={styles.facts}>
          <CallFacts played={played} />
        </div>
      )}
    </Panel>
  );
}

/** What was sent and what came back, as it is. */
function sentTabs(played: Played): readonly Tab[] {
  const { answer, raw, headers } = played;
  const isStream = answer.finish === undefined || raw.length !== 1;
  const events = raw.join('\n\n');
  return [
    { id: 'request', title: 'Request', content: <RequestView played={played} /> },
    {
      id: 'events',
      title: isStream ? `Events ${raw.length}` : 'Answer',
      content: (
        <div className={styles.raw}>
          <CodeBlock
            label="Response headers"
            text={headers.map(([name, value]) => `${name}: ${value}`).join('\n')}
          />
          <CodeBlock label="Raw response" text={events === '' ? '(nothing yet)' : events} />
        </div>
      ),
    },
  ];
}

const states: { readonly [S in Played['state']]: Parameters<typeof Badge>[0] } = {
  running: { tone: 'accent', text: 'running' },
  done: { tone: 'good', text: 'done' },
  stopped: { tone: 'warn', text: 'stopped' },
  failed: { tone: 'bad', text: 'failed' },
};

function StateBadge({ played }: { played: Played }): ReactElement {
  return <Badge {...states[played.state]} />;
}

function Conversation({
  side,
  onAgain,
  onResults,
}: Pick<SideViewProps, 'side' | 'onAgain' | 'onResults'>): ReactElement {
  const { turns, played, running } = side;
  const list = useEndInSight((played?.answer.text.length ?? 0) + turns.length);
  if (turns.length === 0) {
    return (
      <Empty title="No messages yet">
        Messages below go through the gateway like every other call and appear in the ledger.
      </Empty>
    );
  }
  const last = turns.at(-1);
  const waits = !running && last?.role === 'assistant' && last.calls.length > 0;
  return (
    <div ref={list} className={styles.turns} tabIndex={0} role="region" aria-label="Conversation">
      {turns.map((turn, index) => (
        // Turns are only added, never moved.
        <TurnView key={`${index}-${turn.role}`} turn={turn} />
      ))}
      {running && played !== undefined ? <TurnView turn={played.answer} live /> : null}
      {played?.state === 'failed' ? <Failure played={played} onAgain={onAgain} /> : null}
      {waits ? <ToolResults calls={last.calls} onSend={onResults} /> : null}
    </div>
  );
}

interface FailureProps {
  readonly played: Played;
  readonly onAgain: () => void;
}

function Failure({ played, onAgain }: FailureProps): ReactElement {
  const { answer, failure } = played;
  return (
    <div className={styles.failure} role="alert">
      {answer.text === '' ? null : <p className={styles.text}>{answer.text}</p>}
      <p className={styles.text}>{failure}</p>
      <Button small icon="refresh" onClick={onAgain}>
        Ask again
      </Button>
    </div>
  );
}

/** Keeps the end of what grows in sight, unless the user scrolled up. */
function useEndInSight(size: number): RefObject<HTMLDivElement | null> {
  const list = useRef<HTMLDivElement>(null);
  const sizeBefore = useRef(0);
  useEffect(() => {
    const { current } = list;
    if (current === null || size === sizeBefore.current) return;
    sizeBefore.current = size;
    const hidden = current.scrollHeight - current.scrollTop - current.clientHeight;
    if (hidden < nearTheEnd) current.scrollTop = current.scrollHeight;
  }, [size]);
  return list;
}

/** Pixels: what one step of a stream adds, and more. */
const nearTheEnd = 160;

function RequestView({ played }: { played: Played }): ReactElement {
  const { endpoint, body, key } = played.asked;
  const path = `POST ${endpointPaths[endpoint]}`;
  return (
    <div className={styles.raw}>
      <p className={styles.hint}>
        {path}
        {key === '' ? ', with no key’s limits' : `, as key ${key}`}
      </p>
      <CodeBlock label="Request" text={JSON.stringify(shortened(body), null, 2)} />
    </div>
  );
}
