/** Who is configured, where from, and which model files are on their way. */
import type { ReactElement } from 'react';
import { Badge } from '../../components/badge.tsx';
import layout from '../../components/layout.module.css';
import { Panel } from '../../components/panel.tsx';
import { Empty, QueryState } from '../../components/state.tsx';
import { ago } from '../../format/time.ts';
import { useDownloads, useProviders, type Download, type Provider } from '../../api/models.ts';
import { bytes } from './bytes.ts';
import styles from './models.module.css';

export function Providers(): ReactElement {
  const query = useProviders();
  return (
    <Panel title="Providers" flush>
      <QueryState query={query}>
        {({ providers }) =>
          providers.length === 0 ? (
            <Empty title="No provider is configured">{howToAdd}</Empty>
          ) : (
            <ProviderList providers={providers} />
          )
        }
      </QueryState>
    </Panel>
  );
}

const howToAdd =
  'Providers come from their key variables, such as OPENAI_API_KEY, and from providers: in the config file. They are added and removed there.';

/** Those that were searched for and are not there are behind a fold. */
function ProviderList({ providers }: { readonly providers: readonly Provider[] }): ReactElement {
  const absent = providers.filter(({ there }) => !there);
  return (
    <ul className={styles.list}>
      {providers
        .filter(({ there }) => there)
        .map((provider) => (
          <ProviderItem key={provider.id} provider={provider} />
        ))}
      <li className={layout.muted}>{howToAdd}</li>
      {absent.length === 0 ? null : (
        <li className={styles.absent}>
          <details>
            <summary>Looked for and not found: {absent.map(({ id }) => id).join(', ')}</summary>
            <ul className={styles.list}>
              {absent.map((provider) => (
                <ProviderItem key={provider.id} provider={provider} />
              ))}
            </ul>
          </details>
        </li>
      )}
    </ul>
  );
}

function ProviderItem({ provider }: { readonly provider: Provider }): ReactElement {
  const { id, address, origin, there, credentials } = provider;
  return (
    <li className={styles.item}>
      <div className={layout.row}>
        <strong>{id}</strong>
        <Badge tone="neutral" text={there ? 'configured' : 'not found'} />
        <code>{address}</code>
      </div>
      <span className={layout.muted}>
        {origin}
        {credentials.length === 0 ? '' : ` · keys: ${credentials.join(', ')}`}
      </span>
    </li>
  );
}

/** Nothing while nothing is fetched. */
export function Downloads(): ReactElement | null {
  const { data } = useDownloads();
  if (data === undefined || data.downloads.length === 0) return null;
  return (
    <Panel title="Downloads of model files" flush>
      <ul className={styles.list}>
        {data.downloads.map((download) => (
          <DownloadItem key={download.name} download={download} />
        ))}
      </ul>
    </Panel>
  );
}

function DownloadItem({ download }: { readonly download: Download }): ReactElement {
  const { name, bytes: there, total_bytes: total, active, written_at: at } = download;
  return (
    <li className={styles.item}>
      <div className={layout.row}>
        <strong>local/{name}</strong>
        <Badge
          tone={active ? 'accent' : 'warn'}
          text={active ? 'fetching' : `interrupted ${ago(at)}`}
        />
        <span className={layout.muted}>
          {bytes(there)} of {total === null ? 'unknown size' : bytes(total)}
        </span>
      </div>
      {total === null ? null : (
        <progress aria-label={`Downloaded part of ${name}`} max={total} value={there} />
      )}
      {active ? null : (
        <span className={layout.muted}>Run the same model-gateway pull to resume.</span>
      )}
    </li>
  );
}
