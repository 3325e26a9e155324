// Which row a name is decided by, and how the log says what a tunnel is at.
import type { JournalRecord } from '@tunnel/contract';
import { owningLabel } from '@tunnel/rules/names';
import { endpointOfDomain } from '../domains/domain-rows.ts';
import type { NameKey } from '../shared/edge-changes.ts';

/** The row that decides: of `a.shop` and `*.shop` that of `shop`. */
export const decidingKey = (kind: NameKey['kind'], label: string, regionId: string | null): NameKey =>
  kind === 'subdomain' ? { kind, regionId: '', label: owningLabel(label) } : { kind, regionId: regionId ?? '', label };

/** As one text, for an index. Neither kinds nor labels have a slash. */
export const textOfKey = ({ kind, regionId, label }: NameKey): string => `${kind}/${regionId}/${label}`;

type Opened = Extract<JournalRecord, { kind: 'opened' }>;

type PlacedTunnel = Pick<Opened, 'endpoint' | 'domain' | 'protocol' | 'label'>;

/** What a tunnel is at that has its place, as the log says it. null: nothing that visitors reach by a name or a port. */
export const endpointOfOpened = (opened: PlacedTunnel, regionId: string | null): string | null => {
  if (opened.domain !== undefined) return opened.label === '' ? null : endpointOfDomain(opened.domain);
  const key = keyOfOpened(opened, regionId);
  return key && textOfKey(key);
};

/** The name or port of it. null: it is at none of the edge's. */
export const keyOfOpened = (
  { endpoint, domain, protocol, label }: PlacedTunnel,
  regionId: string | null,
): NameKey | null => {
  if (label === '' || domain !== undefined) return null;
  // An edge of before: what it has is in the label.
  if (endpoint === undefined) {
    return protocol === 'p2p' ? null : decidingKey(protocol === 'http' ? 'subdomain' : protocol, label, regionId);
  }
  // Of a subdomain that of the question: the label of a tls tunnel is its host. A port is known once it was opened.
  const got = endpoint.kind === 'subdomain' ? endpoint.label : label;
  return got === null ? null : decidingKey(endpoint.kind, got, regionId);
};
