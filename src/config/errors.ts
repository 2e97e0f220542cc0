/** Everything that is wrong with the configuration, reported together. */
import { isIPv6 } from 'node:net';
import { AddressRange } from '../core/addresses.ts';
import { nearest } from '../core/nearest.ts';

export interface ConfigIssue {
  /** As a person would write it; absent if the value comes from a flag or a variable. */
  readonly file?: string;
  /** From 1. */
  readonly line?: number;
  /** `providers.team.dialekt`, `--listen` or `MODEL_GATEWAY_LISTEN`; empty for the file as a whole. */
  readonly path: string;
  /** Never holds a value that came from a reference: such values may be secrets. */
  readonly message: string;
  /** The value is a reference to something that is not here, e.g. in the environment of another program. */
  readonly unresolved?: true;
}

/** An issue of the file, before its position is put into words. */
export interface Finding {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly line?: number;
  readonly unresolved?: true;
}

/** `message` is one line an issue: `gateway.yaml:12: providers.team.dialekt: unknown key`. */
export class ConfigError extends Error {
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    super(issues.map(issueText).join('\n'));
    this.name = 'ConfigError';
    this.issues = issues;
  }
}

/** One issue as one line. */
export function issueText(issue: ConfigIssue): string {
  const prefix = issue.file === undefined ? [] : [fileAndLine(issue.file, issue.line)];
  return [...prefix, ...(issue.path === '' ? [] : [issue.path]), issue.message].join(': ');
}

/** `gateway.yaml:12` */
export function fileAndLine(file: string, line: number | undefined): string {
  return line === undefined ? file : `${file}:${line}`;
}

/** A path as people write it: `models.fast.targets[1].weight`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? String(step) : `.${String(step)}`;
  }
  return text;
}

/** ` (did you mean "dialect"?)`, or nothing. */
export function suggestion(name: string, candidates: Iterable<string>): string {
  const meant = nearest(name, candidates);
  return meant === undefined ? '' : ` (did you mean "${meant}"?)`;
}

// Addresses to listen on.

export interface Address {
  /** Without brackets. */
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

const loopback = '127.0.0.1';
/** Of addresses: a name like 127.example.com may lead anywhere. */
const loopbackRanges = [new AddressRange('127.0.0.0/8'), new AddressRange('::1')];
const hostForm = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/;

/**
 * Reads `HOST:PORT`, `:PORT` or `PORT` (loopback: opening a port to others must be said) or `[::1]:PORT`.
 * Undefined when it is none of them.
 */
export function readAddress(text: string): Address | undefined {
  const colon = text.lastIndexOf(':');
  const portText = text.slice(colon + 1);
  if (!/^\d{1,5}$/.test(portText)) return undefined;
  const port = Number(portText);
  if (port > 65_535) return undefined;
  const host = readHost(text.slice(0, Math.max(0, colon)));
  return host === undefined ? undefined : { host, port };
}

function readHost(text: string): string | undefined {
  if (text === '') return loopback;
  if (text.startsWith('[') && text.endsWith(']')) {
    const inner = text.slice(1, -1);
    return isIPv6(inner) ? inner : undefined;
  }
  return hostForm.test(text) ? text : undefined;
}

/** `HOST:PORT`, IPv6 in brackets: ready to stand after `http://`. */
export function addressText({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether only programs of this machine can reach the host. */
export function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, '');
  return (
    bare === 'localhost' ||
    bare.endsWith('.localhost') ||
    loopbackRanges.some((range) => range.holds(bare))
  );
}

/** Whether the host means all addresses of the machine. */
function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::' || host === '[::]';
}

/** Whether a base address leads to the listener itself: every call would call the gateway again. */
export function leadsTo(url: URL, address: Address, ownNames: ReadonlySet<string>): boolean {
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  if (port !== address.port || address.port === 0) return false;
  const host = url.hostname.toLowerCase().replace(/^\[|\]$/g, '');
  if (host === address.host.toLowerCase()) return true;
  const own = isLoopback(host) || isEveryAddress(host) || ownNames.has(host);
  if (isEveryAddress(address.host)) return own;
  return isLoopback(address.host) && (isLoopback(host) || isEveryAddress(host));
}
