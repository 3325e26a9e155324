// Tunnel kinds by protocol. A new protocol needs a file in this folder and a line in the table.
import type { TunnelProtocol } from '@tunnel/protocol';
import { httpKind, httpsKind } from './http.ts';
import { p2pKind } from './p2p.ts';
import { tcpKind } from './tcp.ts';
import { tlsKind } from './tls.ts';
import type { ProtocolTraits, TunnelKind } from './tunnel-kind.ts';
import { udpKind } from './udp.ts';

const KINDS: Readonly<Record<TunnelProtocol, TunnelKind>> = {
  tcp: tcpKind,
  tls: tlsKind,
  http: httpKind,
  https: httpsKind,
  udp: udpKind,
  p2p: p2pKind,
};

export const kindOf = (protocol: TunnelProtocol): TunnelKind => KINDS[protocol];

export const protocolTraits = (protocol: TunnelProtocol): ProtocolTraits => KINDS[protocol];
