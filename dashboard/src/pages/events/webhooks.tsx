/** The webhooks of the configuration: what they got, what they did not get, and a test event. */
import { useState, type ReactElement } from 'react';
import { operators, useMay } from '../../api/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { SelectField } from '../../components/field.tsx';
import layout from '../../components/layout.module.css';
import { Panel } from '../../components/panel.tsx';
import { Empty, ErrorPanel, QueryState } from '../../components/state.tsx';
import { count } from '../../format/number.ts';
import { moment, span } from '../../format/time.ts';
import { useWebhooks, useWebhookTest, type Webhook } from './api.ts';
import styles from './events.module.css';

const formatNames: ReadonlyMap<string, string> = new Map([
  ['json', 'Signed JSON'],
  ['slack', 'Slack'],
  ['teams', 'Microsoft Teams'],
  ['discord', 'Discord'],
  ['pagerduty', 'PagerDuty'],
]);

export function WebhookPanel(): ReactElement {
  const query = useWebhooks();
  const [isAdding, setAdding] = useState(false);
  return (
    <Panel
      title="Webhooks"
      actions={
        <Button small icon="plus" onClick={() => setAdding(true)}>
          Add a webhook
        </Button>
      }
    >
      <QueryState query={query}>
        {({ webhooks }) =>
          webhooks.length === 0 ? (
            <Empty title="No webhooks">
              Events can be sent to Slack, Microsoft Teams, Discord, PagerDuty, or as signed JSON.
            </Empty>
          ) : (
            <ul className={styles.hooks}>
              {webhooks.map((hook) => (
                <Hook key={hook.id} hook={hook} />
              ))}
            </ul>
          )
        }
      </QueryState>
      {isAdding ? <AddWebhook onClose={() => setAdding(false)} /> : null}
    </Panel>
  );
}

function Hook({ hook }: { readonly hook: Webhook }): ReactElement {
  const { id, host, format, events, delivered, dropped, pending, failures } = hook;
  const mayTest = useMay(operators);
  const test = useWebhookTest();
  const deliveredAt = hook.delivered_at === null ? '' : `, last ${moment(hook.delivered_at)}`;
  return (
    <li className={styles.hook} aria-label={host}>
      <div className={styles.head}>
        <strong>{host}</strong>
        <HookBadge hook={hook} />
        <span className={layout.muted}>
          {formatNames.get(format) ?? format} · {events === null ? 'all events' : events.join(', ')}
        </span>
        {mayTest ? (
          <Button small busy={test.isPending} onClick={() => test.mutate(id)}>
            Send a test event
          </Button>
        ) : null}
      </div>
      <p className={layout.muted}>
        {`${count(delivered)} delivered${deliveredAt} · ${count(dropped)} dropped`}
        {pending === 0 ? '' : ` · ${count(pending)} on their way`}
      </p>
      {test.error === null ? null : <ErrorPanel error={test.error} />}
      {test.data === undefined || test.isPending ? null : (
        <p aria-live="polite" className={test.data.delivered ? styles.good : styles.bad}>
          {test.data.delivered
            ? `The test event was delivered in ${span(test.data.ms)}.`
            : `The test event was not delivered: ${test.data.reason ?? 'unknown'}.`}
        </p>
      )}
      {failures.length === 0 ? null : (
        <ul className={styles.failures} aria-label={`Last failures of ${host}`}>
          {failures.map((failure) => (
            <li key={`${failure.at}-${failure.event}`}>
              {moment(failure.at)} <code>{failure.event}</code> {failure.reason}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function HookBadge({ hook }: { readonly hook: Webhook }): ReactElement {
  const [last] = hook.failures;
  const { delivered_at: deliveredAt } = hook;
  if (last === undefined) {
    return deliveredAt === null ? <Badge text="no event yet" /> : <Badge tone="good" text="ok" />;
  }
  return deliveredAt !== null && deliveredAt > last.at ? (
    <Badge tone="warn" text="failed before" />
  ) : (
    <Badge tone="bad" text="failing" />
  );
}

/** Lines of the config by format; secrets as references. */
const snippets: ReadonlyMap<string, string> = new Map([
  [
    'slack',
    `webhooks:
  - format: slack
    url: \${SLACK_WEBHOOK_URL}   # https://hooks.slack.com/services/…`,
  ],
  [
    'teams',
    `webhooks:
  - format: teams
    url: \${TEAMS_WEBHOOK_URL}   # of the workflow "Post to a channel when a webhook request is received"`,
  ],
  [
    'discord',
    `webhooks:
  - format: discord
    url: \${DISCORD_WEBHOOK_URL}   # https://discord.com/api/webhooks/…`,
  ],
  [
    'pagerduty',
    `webhooks:
  - format: pagerduty
    url: https://events.pagerduty.com/v2/enqueue
    secret: \${PAGERDUTY_INTEGRATION_KEY}   # of an integration "Events API v2"`,
  ],
  [
    'json',
    `webhooks:
  - url: https://hooks.example.com/gateway
    secret: \${HOOK_SECRET}   # at least 16 characters; signs each event`,
  ],
]);

function AddWebhook({ onClose }: { readonly onClose: () => void }): ReactElement {
  const [format, setFormat] = useState('slack');
  return (
    <Dialog
      open
      onClose={onClose}
      title="Add a webhook"
      description="Webhooks are part of the configuration. Add these lines to gateway.yaml; the gateway reads the file again by itself."
    >
      <div className={layout.sections}>
        <SelectField
          label="Send to"
          value={format}
          choices={[...snippets.keys()].map((value) => ({
            value,
            label: formatNames.get(value) ?? value,
          }))}
          onChange={setFormat}
        />
        <CodeBlock
          label="Lines of gateway.yaml"
          text={`${snippets.get(format) ?? ''}\n    events: [budget, target, credential, store]   # default: all`}
        />
      </div>
    </Dialog>
  );
}
