// The list of groups as JSON text, made in parts as it is read: a pool of ten thousand must not hold up the traffic of others,
// and a caller that does not read must not make the edge keep the whole of it. Each viewer sees its own members, with counts and
// totals of them alone.
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type GroupMemberSummary,
  type GroupProtocol,
  type GroupSummary,
  type LastAlert,
  showProtocol,
} from '@tunnel/contract';
import { maySee, type Owner } from '@tunnel/rules/tunnels';
import type { Tunnel } from '../routing/tunnel.ts';
import { type TunnelGroup } from '../routing/tunnel-group.rules.ts';

/** a long list of groups is made and sent in parts of about this size, as fast as they are read */
const API_CHUNK_BYTES = 64 * 1024;

type Group = TunnelGroup<Tunnel>;

export interface GroupListing {
  readonly groups: Iterable<Group>;
  readonly viewer: Owner;
  readonly regionId: string;
  readonly lastAlertOf: (group: object, member: Tunnel) => LastAlert | null;
}

export const groupListBody = (listing: GroupListing): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder();
  const parts = partsOf(listing);
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        // Writing to a socket with room calls back in the same turn: without this, the parts would come all at once.
        await nextTurn();
        const part = parts.next();
        if (part.done === true) controller.close();
        else controller.enqueue(encoder.encode(part.value));
      },
    },
    { highWaterMark: 0 },
  );
};

/** Each group is told as of one moment; the list as a whole is not. */
function* partsOf({ groups, viewer, regionId, lastAlertOf }: GroupListing): Generator<string, void> {
  let part = '[';
  let separator = '';
  for (const group of [...groups]) {
    // It may have ended since the list was begun.
    if (group.memberCount === 0 || !group.isVisibleTo(viewer)) continue;
    part += separator;
    separator = ',';
    const alertTo = (member: Tunnel) => lastAlertOf(group, member);
    for (const text of groupTexts(snapshotOf(group, viewer, regionId), alertTo)) {
      part += text;
      if (part.length < API_CHUNK_BYTES) continue;
      yield part;
      part = '';
    }
  }
  yield `${part}]`;
}

/** Of a group: what became of the last alert to a member's URL. */
type AlertTo = (member: Tunnel) => LastAlert | null;

/** One group, a member a piece. */
function* groupTexts({ head, members, healthy }: GroupSnapshot, alertTo: AlertTo): Generator<string, void> {
  yield `${JSON.stringify(head).slice(0, -1)},"members":[`;
  for (const [at, member] of members.entries()) {
    yield (at === 0 ? '' : ',') + JSON.stringify(presentMember(member, healthy[at] ?? false, alertTo));
  }
  yield ']}';
}

/** The members that a viewer sees at one moment, each with its health bit at that moment. */
interface GroupSnapshot {
  /** All but the members. */
  readonly head: Omit<GroupSummary, 'members'>;
  readonly members: readonly Tunnel[];
  readonly healthy: readonly boolean[];
}

/** Quick, whatever the size of the group: what takes long, the text of the members, can be made of it later. */
const snapshotOf = (group: Group, viewer: Owner, regionId: string): GroupSnapshot => {
  const members: Tunnel[] = [];
  for (const member of group.members()) if (maySee(viewer, member.owner)) members.push(member);
  const { memberCount, healthyCount, totalDispatches, totalHealthFailures } = group.tally(viewer);
  const head = {
    protocol: showProtocol(group.protocol) as GroupProtocol,
    label: group.label,
    name: group.name,
    key_hash_short: group.keyHashShort,
    region_id: regionId,
    member_count: memberCount,
    healthy_count: healthyCount,
    unhealthy_count: memberCount - healthyCount,
    total_dispatches: totalDispatches,
    total_health_failures: totalHealthFailures,
  };
  return { head, members, healthy: members.map(({ health }) => health.healthy) };
};

const presentMember = (member: Tunnel, healthy: boolean, alertTo: AlertTo): GroupMemberSummary => {
  const { health } = member;
  const last_alert = alertTo(member);
  return {
    tunnel_id: member.tunnelId,
    session_id: member.sessionId,
    name: member.name,
    public_url: member.publicUrl,
    client_addr: member.clientAddr,
    ...(member.clientName === undefined ? {} : { client_name: member.clientName }),
    request_count: member.counters.requests,
    bytes_proxied: member.counters.bytes,
    healthy,
    consecutive_failures: health.consecutiveFailures,
    total_health_failures: health.totalFailures,
    ...(health.lastFailureReason === null ? {} : { last_failure_reason: health.lastFailureReason }),
    connected_since: new Date(member.connectedSince).toISOString(),
    ...(health.kind === null ? {} : { health_check_kind: health.kind }),
    has_alert_webhook: member.alertWebhook !== null,
    ...(last_alert === null ? {} : { last_alert }),
  };
};
