/**
 * Addresses that mean the machine itself or a network behind it. A client's URL of that kind is refused
 * (reliability.md B61): whoever fetched it would fetch it from the inside. The gateway fetches none.
 */
import { AddressRange } from './address-range.ts';

const ranges = [
  // This host, private, carrier-grade, loopback, link-local, special, benchmarks, multicast, reserved.
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's metadata, outside of the ranges above.
  '168.63.129.16',
  // Unspecified and loopback with all IPv4-compatible ones, unique local, link-local, site-local, multicast.
  '::/96',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
  // IPv4 in other clothes: NAT64 (also local-use), 6to4, Teredo, translated. Nobody serves images there.
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  '2001::/32',
  '::ffff:0:0:0/96',
].map((text) => new AddressRange(text));

const names: ReadonlySet<string> = new Set(['metadata.goog']);
/** Of networks that are nobody else's; `.svc` is what Kubernetes calls its services. */
const endings = [
  '.localhost',
  '.local',
  '.localdomain',
  '.internal',
  '.intranet',
  '.private',
  '.corp',
  '.home',
  '.lan',
  '.home.arpa',
  '.svc',
];

/**
 * Whether the URL's host is such an address or name, in whatever spelling: the URL parser of the web
 * reads `0x7f.1`, `2130706433` and `ⓛocalhost` as what they mean. True for what is no URL.
 */
export function isInternalUrl(url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed === null) return true;
  const host = withoutDots(parsed.hostname.replace(/^\[|\]$/g, ''));
  return (
    host === '' ||
    // A name without a dot is looked up in the network's own domain: `localhost`, `redis`, `metadata`.
    !/[.:]/.test(host) ||
    names.has(host) ||
    endings.some((ending) => host.endsWith(ending)) ||
    ranges.some((range) => range.holds(host))
  );
}

/** Without the dots at its end; a pattern for them takes time by the square of their number (S22). */
function withoutDots(host: string): string {
  let end = host.length;
  while (host[end - 1] === '.') end -= 1;
  return host.slice(0, end);
}
