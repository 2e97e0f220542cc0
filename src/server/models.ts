/** `GET /v1/models`: one body that both official SDKs read (messages.md §10.3). */
import type { ModelListing } from '../providers/registry.ts';

export interface ModelEntry {
  readonly id: string;
  readonly object: 'model';
  readonly type: 'model';
  readonly created: number;
  readonly created_at: string;
  readonly owned_by: string;
  readonly display_name: string;
}

/** One model. The release date is unknown; both formats allow the epoch for that. */
export function modelEntry(listing: ModelListing): ModelEntry {
  return {
    id: listing.id,
    object: 'model',
    type: 'model',
    created: 0,
    created_at: '1970-01-01T00:00:00Z',
    owned_by: listing.ownedBy,
    display_name: listing.id,
  };
}

/** The whole list in one page; what a pager of either SDK expects. */
export function modelList(listings: readonly ModelListing[]): {
  readonly object: 'list';
  readonly data: readonly ModelEntry[];
  readonly has_more: false;
  readonly first_id: string | null;
  readonly last_id: string | null;
} {
  return {
    object: 'list',
    data: listings.map(modelEntry),
    has_more: false,
    first_id: listings.at(0)?.id ?? null,
    last_id: listings.at(-1)?.id ?? null,
  };
}
