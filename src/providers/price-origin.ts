/** Where the prices of a provider's models stand: a vendor's list, or nowhere but in the config. */
import type { PriceOrigin } from '../core/price.ts';
import { providerRow, providerRows, type ProviderRow } from './compatible.ts';
import type { DeclaredProvider } from './registry.ts';

/** The embedded engine's provider. */
const embedded = 'local';

/**
 * A provider has the prices of the vendor whose name or ways it has, or whose address. An engine of
 * one's own has none: what it costs only its owner knows.
 */
export function priceOrigins(
  declared: readonly Pick<DeclaredProvider, 'id' | 'like' | 'baseUrl'>[],
): (provider: string) => PriceOrigin | undefined {
  const byId = new Map(declared.map((each) => [each.id, each]));
  return (id) => {
    if (id === embedded) return { kind: 'free' };
    const { like, baseUrl } = byId.get(id) ?? {};
    const row = providerRow(like ?? id) ?? rowAt(baseUrl);
    return row?.prices === undefined ? undefined : { kind: 'list', name: row.prices };
  };
}

function rowAt(baseUrl: string | undefined): ProviderRow | undefined {
  const host = hostOf(baseUrl);
  return host === undefined ? undefined : providerRows.find((row) => hostOf(row.baseUrl) === host);
}

function hostOf(address: string | undefined): string | undefined {
  return address !== undefined && URL.canParse(address) ? new URL(address).host : undefined;
}
