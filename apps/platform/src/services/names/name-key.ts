// Key of the row that decides about a name, and the text for a tunnel's endpoint in the log.
import type { JournalRecord } from '@tunnel/contract';
import { owningLabel } from '@tunnel/rules/names';
import { endpointOfDomain } from '../domains/domain-rows.ts';
import type { NameKey } from '../shared/edge-changes.ts';

/** Key of the row that decides about a label. `a.shop` and `*.shop` are decided by the row of `shop`. */
export const decidingKey = (kind: NameKey['kind'], label: string, regionId: string | null): NameKey =>
  kind === 'subdomain' ? { kind, regionId: '', label: owningLabel(label) } : { kind, regionId: regionId ?? '', label };

/** Key as a text, for a database index. Kinds and labels contain no slash. */
export const textOfKey = ({ kind, regionId, label }: NameKey): string => `${kind}/${regionId}/${label}`;

type Opened = Extract<JournalRecord, { kind: 'opened' }>;

type PlacedTunnel = Pick<Opened, 'endpoint' | 'domain' | 'protocol' | 'label'>;

/** Endpoint of an opened tunnel, as stored in the log. Null if visitors cannot reach the tunnel by a name or a port. */
export const endpointOfOpened = (opened: PlacedTunnel, regionId: string | null): string | null => {
  if (opened.domain !== undefined) return opened.label === '' ? null : endpointOfDomain(opened.domain);
  const key = keyOfOpened(opened, regionId);
  return key && textOfKey(key);
};

/**
 * Key of the name or port used by an opened tunnel. Null if the tunnel uses no name or port of the edge, for example on a custom domain.
 */
export const keyOfOpened = (
  { endpoint, domain, protocol, label }: PlacedTunnel,
  regionId: string | null,
): NameKey | null => {
  if (label === '' || domain !== undefined) return null;
  // Edges of an earlier version do not send an endpoint. Their records have the name or port in the label.
  if (endpoint === undefined) {
    return protocol === 'p2p' ? null : decidingKey(protocol === 'http' ? 'subdomain' : protocol, label, regionId);
  }
  // For a subdomain, the requested label counts, because the record's label of a TLS tunnel is a hostname. A port is known only after
  // opening, so the record's label counts.
  const got = endpoint.kind === 'subdomain' ? endpoint.label : label;
  return got === null ? null : decidingKey(endpoint.kind, got, regionId);
};
