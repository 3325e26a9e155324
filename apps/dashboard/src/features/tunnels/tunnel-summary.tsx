// One-line summary of a tunnel: state, policy, computer, uptime and counts. Wraps on phones.
import { useQuery } from '@tanstack/react-query';
import type { TunnelLogEntry } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { kindOf, originText, protocolText } from '../../shared/tunnel-address.ts';
import { Badge } from '../../ui/badge.tsx';
import { Skeleton } from '../../ui/card.tsx';
import { countText, momentText, plural } from '../../ui/format.ts';
import { Bytes, Duration, Time } from '../../ui/values.tsx';
import { policyQuery } from './queries.ts';
import { TunnelState, visitsText } from './tunnel-row.tsx';

export const TunnelSummary = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const origin = originText(entry);
  return (
    <div className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-1 text-muted">
      <span className="flex items-center gap-2">
        <TunnelState entry={entry} />
        <PolicyBadge entry={entry} />
      </span>
      <span className="wrap-anywhere min-w-0">
        {protocolText(kindOf(entry))} tunnel{origin !== '' && `: ${origin}`}
      </span>
      <Uptime entry={entry} />
      <span title={countText(entry.request_count)}>{visitsText(entry.protocol, entry.request_count)}</span>
      <span>
        <Bytes value={entry.bytes_proxied} /> {entry.protocol === 'p2p' ? 'through the relay' : 'in and out'}
      </span>
    </div>
  );
};

const Uptime = ({ entry: { registered_at: from, unregistered_at: until } }: { readonly entry: TunnelLogEntry }) => (
  <span title={`Started ${momentText(Date.parse(from))}`}>
    {until === null ? 'Up ' : 'Was up '}
    <Duration {...{ from, until }} />
    {until !== null && (
      <>
        , ended <Time at={until} />
      </>
    )}
  </span>
);

/**
 * Badge with the number of access rules. Only for live tunnels, because ended tunnels have no known rules, and not for p2p tunnels, where
 * peers need the tunnel's secret.
 */
const PolicyBadge = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const isAsked = entry.unregistered_at === null && entry.protocol !== 'p2p';
  const { data: policy, isPending } = useQuery({ ...policyQuery(useApi(), entry), enabled: isAsked });
  if (!isAsked) return null;
  if (isPending) return <Skeleton className="h-5 w-24 rounded-full" />;
  if (policy === undefined) return null;
  if (policy === null) {
    return (
      <Badge tone="warn" title="No rules: anyone with the URL can visit.">
        Open to everyone
      </Badge>
    );
  }
  return <Badge title="Rules are listed below.">{plural(policy.rules.length, 'rule')}</Badge>;
};
