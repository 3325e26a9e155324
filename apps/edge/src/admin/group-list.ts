// List of groups as JSON text, generated in parts while the caller reads. A group with ten thousand members must not delay other traffic,
// and a caller that does not read must not make the edge keep the whole text in memory. A viewer sees only its own members, with counts
// and totals of only these members.
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

/** Approximate size of a part of the group list. The next part is generated when the previous part was read. */
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
        // A socket with free space calls back within the same turn of the event loop. Without a pause, all parts would be generated in a
        // single turn.
        await nextTurn();
        const part = parts.next();
        if (part.done === true) controller.close();
        else controller.enqueue(encoder.encode(part.value));
      },
    },
    { highWaterMark: 0 },
  );
};

/** Generates the list in parts. Each group is a consistent snapshot; the list as a whole is not. */
function* partsOf({ groups, viewer, regionId, lastAlertOf }: GroupListing): Generator<string, void> {
  let part = '[';
  let separator = '';
  for (const group of [...groups]) {
    // The group may have ended since the edge started to generate the list.
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

/** Returns the result of a group's last alert to the URL of a member. Null if no result exists. */
type AlertTo = (member: Tunnel) => LastAlert | null;

/** Generates the JSON text of a group, one member per part. */
function* groupTexts({ head, members, healthy }: GroupSnapshot, alertTo: AlertTo): Generator<string, void> {
  yield `${JSON.stringify(head).slice(0, -1)},"members":[`;
  for (const [at, member] of members.entries()) {
    yield (at === 0 ? '' : ',') + JSON.stringify(presentMember(member, healthy[at] ?? false, alertTo));
  }
  yield ']}';
}

/** Snapshot of the group members visible to a viewer, with the health of each member at the same moment. */
interface GroupSnapshot {
  /** Summary of the group without its members. */
  readonly head: Omit<GroupSummary, 'members'>;
  readonly members: readonly Tunnel[];
  readonly healthy: readonly boolean[];
}

/** Takes a snapshot of a group. Fast even for a large group: the slow part, the text of the members, is generated later. */
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
