/** What the configuration must know of providers that it does not declare itself. */

export interface KnownProvider {
  /** The wire format that it speaks; absent for what cannot be declared. */
  readonly dialect?: string;
  /** Environment variable of the key; absent for engines that need none. */
  readonly keyVariable?: string;
  /** Environment variable that replaces the vendor's address. */
  readonly baseUrlVariable?: string;
  /** Part of the gateway itself: its name cannot be declared. */
  readonly embedded?: true;
}

/** Vendors and engines with presets, and the embedded engine, by id. */
export type KnownProviders = ReadonlyMap<string, KnownProvider>;
