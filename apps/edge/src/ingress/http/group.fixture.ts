// An HTTP ingress in front of a group. Each member has a real session and can have a separate local service. Used by tests only.

import type { MuxStream } from '@tunnel/mux';
import { CAPABILITY } from '@tunnel/protocol';
import { MemberHealth } from '@tunnel/rules/tunnels';
import { eventually, FakeClock, type SessionPair, sessionPair } from '@tunnel/testkit';
import { expect } from 'vitest';
import { captureStore } from '../../capture/capture.fixture.ts';
import type { CaptureRecorder } from '../../capture/recorder.ts';
import { NO_POLICY, type PolicyHolder } from '../../routing/route-policy.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { TunnelGroup } from '../../routing/tunnel-group.rules.ts';
import { MuxUpstream } from '../../upstream/upstream.ts';
import { dialLocal, type IngressOptions, newHttpTunnel, startIngress } from './http.fixture.ts';
import type { HttpIngress } from './http-ingress.ts';

export interface StandMember {
  readonly tunnel: Tunnel;
  readonly pair: SessionPair;
  readonly upstream: MuxUpstream;
  /** Number of streams offered to the client of this member since the start. */
  readonly offered: number;
  /** Handles a stream offered to the client. By default, the client dials the local service. */
  onStream: (stream: MuxStream) => void;
  /** From now on, the client refuses every stream because it cannot dial. */
  refuse(): void;
  /** Ends the session: the member leaves the group, and its streams are reset. */
  die(): void;
  /** Cuts the carriers. The session continues without a way to the client. */
  loseCarriers(): Promise<void>;
  setHealthy(healthy: boolean): void;
}

export interface MemberOptions {
  readonly localPort?: number;
  readonly http?: Partial<Tunnel['http']>;
  readonly accountId?: string;
  /** Capabilities of the client. By default, the client knows policies. */
  readonly capabilities?: readonly string[];
}

export interface GroupStand {
  readonly ingress: HttpIngress;
  readonly group: TunnelGroup<Tunnel>;
  readonly members: readonly StandMember[];
  readonly clock: FakeClock;
  readonly port: number;
  join(member: MemberOptions): Promise<StandMember>;
  /** Returns the captures of a member, newest first. */
  captured(member: StandMember): readonly CaptureRecorder[];
  stop(): void;
}

export const startGroupStand = async (
  members: readonly MemberOptions[],
  { policy = NO_POLICY, ...options }: Partial<IngressOptions> & { readonly policy?: PolicyHolder } = {},
): Promise<GroupStand> => {
  const clock = new FakeClock();
  const { store } = captureStore();
  const endpoint = { kind: 'name', name: 'web' } as const;
  const facts = { groupId: 'grp_1', name: 'web', keyHash: '', endpoint, label: 'web', policy };
  const group = new TunnelGroup<Tunnel>({ ...facts, protocol: 'http' });
  const joined: StandMember[] = [];
  let ids = 0;
  const join = async (member: MemberOptions): Promise<StandMember> => {
    ids += 1;
    const one = await joinMember(group, `tun_${ids}`, member);
    joined.push(one);
    return one;
  };
  for (const member of members) await join(member);
  const { ingress, port, stop } = await startIngress(group, { clock, captures: store, ...options });
  return {
    ingress,
    group,
    members: joined,
    clock,
    port,
    join,
    captured: ({ tunnel }) => store.list(tunnel.tunnelId, 200).recorders,
    stop: () => {
      stop();
      for (const { pair } of joined) pair.close();
    },
  };
};

const joinMember = async (
  group: TunnelGroup<Tunnel>,
  tunnelId: string,
  { localPort = 1, http, accountId = 'one', capabilities = [CAPABILITY.POLICY] }: MemberOptions,
): Promise<StandMember> => {
  const stand = { offered: 0, onStream: (stream: MuxStream) => dialLocal(stream, localPort) };
  const onStream = (stream: MuxStream): void => {
    stand.offered += 1;
    stand.onStream(stream);
  };
  const pair = await sessionPair({ kind: 'plain', carriers: 2, capabilities, client: { onStream } });
  const upstream = new MuxUpstream(pair.edge);
  const tunnel = newHttpTunnel(pair.edge, {
    tunnelId,
    group,
    upstream,
    http,
    endpoint: { kind: 'member', groupId: group.groupId },
    owner: { kind: 'account', accountId },
    health: new MemberHealth('http'),
    policy: group.policy,
  });
  group.transition({ kind: 'member-joined', member: tunnel }, 0);
  group.transition({ kind: 'reported-healthy', member: tunnel }, 0);
  return Object.assign(stand, {
    tunnel,
    pair,
    upstream,
    refuse: () => {
      stand.onStream = (stream) => stream.refuse({ code: 'dial-refused', text: 'ECONNREFUSED' });
    },
    die: () => {
      group.transition({ kind: 'member-left', member: tunnel }, 0);
      upstream.mux = null;
      pair.edge.close({ code: 'carrier-lost', text: 'the client is gone' });
    },
    loseCarriers: async () => {
      for (const carrier of pair.carriers) carrier.destroy('cut');
      await eventually(() => expect(pair.edge.liveCarriers).toBe(0));
    },
    setHealthy: (healthy: boolean) => {
      const report = { reason: 'down', consecutiveFailures: 1 };
      if (healthy) group.transition({ kind: 'reported-healthy', member: tunnel }, 0);
      else group.transition({ kind: 'reported-unhealthy', member: tunnel, ...report }, 0);
    },
  });
};
