// Panel with the connected peers of a p2p tunnel: direct or relayed path with the reason, traffic, and a button to disconnect a peer.
import { useQuery } from '@tanstack/react-query';
import type { EdgePeer, TunnelLogEntry } from '@tunnel/contract';
import { useMemo, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { connectPeerCommand, PEER_LISTEN_PORT } from '../../shared/client-commands.ts';
import { LoadedCard } from '../../shared/loaded-card.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Skeleton } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { countText, latencyText, plural } from '../../ui/format.ts';
import { type Column, Table } from '../../ui/table.tsx';
import { Bytes, Time } from '../../ui/values.tsx';
import { DismissPeerDialog } from './dismiss-peer-dialog.tsx';
import { StaleNotice } from './health-panel.tsx';
import { peerWay } from './path-text.ts';
import { peersQuery } from './queries.ts';

export const PeersPanel = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const peers = useQuery(peersQuery(useApi(), entry));
  const [dismissed, setDismissed] = useState<EdgePeer | null>(null);
  const columns = useMemo(() => columnsFor(setDismissed), []);
  return (
    <LoadedCard
      title="Peers"
      description="Clients connected to this tunnel, encrypted end to end. Direct traffic is free."
      query={peers}
      problem="Couldn't load the peers"
      pending={
        <div className="px-4 pb-4 sm:px-5">
          <Skeleton className="h-40 w-full" />
        </div>
      }
      dialogs={<DismissPeerDialog tunnelId={entry.id} peer={dismissed} onClose={() => setDismissed(null)} />}
    >
      {(list) => (
        <>
          <div className="px-4 sm:px-5">
            <StaleNotice query={peers} />
          </div>
          <Table
            caption="Connected peers"
            columns={columns}
            rows={list.peers}
            rowKey={({ peer_id }) => peer_id}
            empty={<NoPeers entry={entry} />}
          />
          {list.total > 0 && (
            <p role="status" className="border-line border-t px-4 py-2 text-muted text-sm sm:px-5">
              {plural(list.total, 'peer')} now
              {list.total > list.peers.length && `, the first ${countText(list.peers.length)} are shown`}
            </p>
          )}
        </>
      )}
    </LoadedCard>
  );
};

const columnsFor = (dismiss: (peer: EdgePeer) => void): readonly Column<EdgePeer>[] => [
  {
    key: 'peer',
    header: 'Peer',
    isHead: true,
    cell: ({ client_addr, peer_id }) => (
      <span className="min-w-0">
        <span className="block break-all font-mono text-sm">{client_addr}</span>
        <span className="block break-all font-normal text-muted text-sm">{peer_id}</span>
      </span>
    ),
  },
  { key: 'path', header: 'Path', cell: (peer) => <Way peer={peer} /> },
  {
    key: 'rtt',
    header: 'Round trip',
    align: 'end',
    cell: ({ rtt_ms }) => (rtt_ms === null ? '–' : latencyText(rtt_ms)),
  },
  { key: 'relayed', header: 'Relayed', align: 'end', cell: ({ relayed_bytes }) => <Bytes value={relayed_bytes} /> },
  {
    key: 'direct',
    header: 'Direct (free)',
    align: 'end',
    cell: ({ direct_bytes }) => <Bytes value={direct_bytes} />,
  },
  { key: 'since', header: 'Joined', cell: ({ connected_since }) => <Time at={connected_since} /> },
  {
    key: 'dismiss',
    header: 'Action',
    align: 'end',
    cell: (peer) => (
      <Button size="small" aria-label={`Disconnect the peer at ${peer.client_addr}`} onClick={() => dismiss(peer)}>
        Disconnect
      </Button>
    ),
  },
];

const Way = ({ peer }: { readonly peer: EdgePeer }) => {
  const { badge, tone, text } = peerWay(peer);
  return (
    <span className="inline-block min-w-0">
      <Badge tone={tone} dot={peer.path === 'direct'}>
        {badge}
      </Badge>
      <span className="mt-0.5 block text-muted text-sm">{text}</span>
    </span>
  );
};

const NoPeers = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  if (entry.unregistered_at !== null) {
    return <p className="px-4 pb-4 text-muted sm:px-5 sm:pb-5">Peers are shown while the tunnel is live.</p>;
  }
  const command = connectPeerCommand(entry.label);
  return (
    <Empty title="No connected peers" command={command}>
      <p>
        Run this on the other computer with the same secret. The service is available there on port {PEER_LISTEN_PORT}.
      </p>
    </Empty>
  );
};
