/** What a call asked and was answered, or why that is not known. */
import type { ReactElement, ReactNode } from 'react';
import type { CallDetails } from '../../api/calls.ts';
import type { CallContent, LoggedBody, LoggedHeader, LoggedRequest } from '../../api/content.ts';
import { useExplanation } from '../../api/explain.ts';
import { CodeBlock } from '../../components/code-block.tsx';
import { Facts } from '../../components/panel.tsx';
import { QueryState } from '../../components/state.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { bytes } from '../models/bytes.ts';
import { callEndpoints, endpointPaths, type Endpoint } from '../playground/formats/turns.ts';
import { ExplanationView } from '../playground/upstream-view.tsx';
import { conversationOf } from './conversation/read.ts';
import { ConversationView } from './conversation/view.tsx';
import styles from './page.module.css';
import { Section } from './section.tsx';

interface ContentProps {
  readonly call: CallDetails;
  readonly content: CallContent;
}

export function Content({ call, content }: ContentProps): ReactElement {
  const endpoint = callEndpoints[call.endpoint];
  if (content.state !== 'kept' || content.request === null) {
    return (
      <Section title="Request and answer">
        <p className={styles.muted}>{whyNot(content)}</p>
      </Section>
    );
  }
  const raw = <Raw {...content} request={content.request} />;
  const conversation = endpoint === undefined ? undefined : conversationOf(endpoint, content);
  if (endpoint === undefined || conversation === undefined) return raw;
  const { body } = content.request;
  return (
    <Section title="Request and answer">
      <Tabs
        label="Request and answer"
        tabs={[
          {
            id: 'conversation',
            title: 'Conversation',
            content: <ConversationView {...conversation} />,
          },
          { id: 'raw', title: 'Raw', content: raw },
          {
            id: 'upstream',
            title: 'To the upstream',
            content: <ToUpstream endpoint={endpoint} asKey={call.key} body={body?.content} />,
          },
        ]}
      />
    </Section>
  );
}

interface ToUpstreamProps {
  readonly endpoint: Endpoint;
  readonly asKey: string;
  readonly body: unknown;
}

/** What the redactor writes in the place of media (docs/user/content.md). */
const withoutMedia = /, \d+ bytes left out\]/;

/** The request is not stored as it was sent to the upstream, so it is made again with today's configuration. */
function ToUpstream({ endpoint, asKey, body }: ToUpstreamProps): ReactElement {
  const text = JSON.stringify(body);
  if (withoutMedia.test(text)) {
    return (
      <p className={styles.muted}>
        Media of this request were not stored, so what the upstream got cannot be shown.
      </p>
    );
  }
  return <Explained endpoint={endpointPaths[endpoint]} asKey={asKey} body={text} />;
}

interface ExplainedProps {
  readonly endpoint: string;
  readonly asKey: string;
  readonly body: string;
}

function Explained({ endpoint, asKey, body }: ExplainedProps): ReactElement {
  const explanation = useExplanation({ endpoint, body, key: asKey });
  return (
    <QueryState query={explanation}>
      {(shown) => (
        <div className={styles.upstream}>
          <p className={styles.muted}>
            What an upstream gets of this request with today&apos;s configuration.
          </p>
          <ExplanationView explanation={shown} sent={JSON.parse(body)} />
        </div>
      )}
    </QueryState>
  );
}

type RawProps = Pick<CallContent, 'answer' | 'attempts'> & { readonly request: LoggedRequest };

function Raw({ request, answer, attempts }: RawProps): ReactElement {
  return (
    <>
      <Section title="Request">
        <Headers label="Request headers" headers={request.headers} />
        {request.body === null ? (
          <p className={styles.muted}>The body was not read.</p>
        ) : (
          <Body label="request body" body={request.body} />
        )}
      </Section>
      <Section title="Answer">
        {answer === null ? (
          <p className={styles.muted}>Nothing was sent to the client.</p>
        ) : (
          <>
            <Headers label="Answer headers" headers={answer.headers} />
            <Body
              label="answer"
              body={answer.body}
              more={answer.whole ? '' : ' It is incomplete.'}
            />
          </>
        )}
      </Section>
      {attempts.length === 0 ? null : (
        <Section title="Error answers of providers">
          {attempts.map(({ target, status, body }, i) => (
            <Body
              key={`${i}:${target}`}
              label={`answer of ${target}`}
              body={body}
              more={` ${target}, status ${status ?? 'none'}.`}
            />
          ))}
        </Section>
      )}
      <p className={styles.muted}>
        Keys, credentials and media data were removed before it was stored.
      </p>
    </>
  );
}

function whyNot({ state, logged_now: isLogged }: CallContent): ReactNode {
  if (state === 'locked') {
    return 'The content is encrypted with a key that this gateway does not have (MODEL_GATEWAY_CONTENT_KEY, or content.key in the data directory).';
  }
  if (state === 'unreadable') return 'The content is damaged and cannot be read.';
  if (isLogged) {
    return 'No content is stored for this call: its key did not log content then, the content has expired, or it was lost.';
  }
  return (
    <>
      No content is stored, since the key of this call does not log content. Turn it on for later
      calls with “Log content” in the form of the key, or with{' '}
      <code>model-gateway keys update ID --log-content</code>.
    </>
  );
}

interface HeadersProps {
  readonly label: string;
  readonly headers: readonly LoggedHeader[];
}

/** Names may be there several times. */
function Headers({ label, headers }: HeadersProps): ReactElement | null {
  if (headers.length === 0) return null;
  const values = Map.groupBy(headers, ({ name }) => name);
  const facts = [...values].map(
    ([name, all]) => [name, all.map(({ value }) => value ?? 'not stored').join(', ')] as const,
  );
  return (
    <details className={styles.headers}>
      <summary>
        {label} ({headers.length})
      </summary>
      <Facts facts={facts} />
    </details>
  );
}

interface BodyProps {
  readonly label: string;
  readonly body: LoggedBody;
  readonly more?: string;
}

function Body({ label, body, more = '' }: BodyProps): ReactElement {
  return (
    <>
      <p className={styles.muted}>
        {aboutBody(body)}
        {more}
      </p>
      <CodeBlock label={label} text={bodyText(body)} />
    </>
  );
}

function aboutBody({ bytes: length, cut, form }: LoggedBody): string {
  const what = form === 'events' ? ' Its deltas are joined.' : '';
  return `${bytes(length)}.${what}${cut ? ' It was truncated.' : ''}`;
}

export function bodyText({ form, content }: LoggedBody): string {
  if (form === 'text') return String(content);
  if (form === 'events' && Array.isArray(content)) {
    return content
      .map((event: unknown) => (typeof event === 'string' ? event : JSON.stringify(event, null, 2)))
      .join('\n');
  }
  return JSON.stringify(content, null, 2);
}
