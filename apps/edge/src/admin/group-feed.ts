// Distributes health events of groups to event streams: the listeners of each group, the events visible to each listener, and the end of
// streams.
import { type GroupEvent, showProtocol } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { FairShare } from '@tunnel/rules/rate';
import { type Owner, ownerKey, sameOwner } from '@tunnel/rules/tunnels';
import type { Clock, Timer } from '@tunnel/runtime';
import type { Revocation } from '../backend/backend.ts';
import type { GroupWatcher, HealthChange } from '../routing/groups.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { type TunnelGroup } from '../routing/tunnel-group.rules.ts';
import { EventStream } from './event-stream.ts';

/** Interval of keep-alive comments in an event stream. */
export const SSE_KEEP_ALIVE_MS = 30_000;
/** Maximum concurrent event streams. Each stream occupies a REST connection. */
export const SSE_CONSUMERS_MAX = 512;
/**
 * Maximum concurrent event streams of an account, over all its API keys. The operator has the same limit.
 * @limit api: Event streams per account | 429 `API_STREAMS_BUSY`
 */
export const SSE_CONSUMERS_PER_OWNER = 64;
/** Delay before a listener rejected at the stream limit should retry. */
const SSE_BUSY_RETRY_MS = 5000;

type Group = TunnelGroup<Tunnel>;

export interface Listener {
  readonly owner: Owner;
  readonly keyId: string;
}

interface Consumer {
  readonly group: Group;
  readonly listener: Listener;
  readonly ownerKey: string;
  readonly stream: EventStream;
  readonly ping: Timer;
}

export class GroupFeed implements GroupWatcher {
  readonly #regionId: string;
  readonly #clock: Clock;
  readonly #consumers = new Set<Consumer>();
  /** Consumers by group. A consumer leaves the map when its stream starts to end. */
  readonly #byGroup = new Map<Group, Set<Consumer>>();
  readonly #slots = new FairShare({
    limit: SSE_CONSUMERS_MAX,
    perHolder: SSE_CONSUMERS_PER_OWNER,
  });
  /** Id of the latest event. Starts at the current time, so that ids keep increasing across restarts of the edge. */
  #lastId: number;
  #isClosed = false;

  constructor({ regionId, clock }: { readonly regionId: string; readonly clock: Clock }) {
    this.#regionId = regionId;
    this.#clock = clock;
    this.#lastId = clock.now();
  }

  get consumers(): number {
    return this.#consumers.size;
  }

  /** Opens an event stream. The caller must check that the listener can see the group. Throws a Fault if too many streams are open. */
  open(group: Group, listener: Listener): EventStream {
    this.#admit(listener.owner);
    const stream = new EventStream(() => this.#forget(consumer));
    const ping = this.#clock.setInterval(() => stream.ping(), SSE_KEEP_ALIVE_MS);
    const consumer: Consumer = { group, listener, ownerKey: ownerKey(listener.owner), stream, ping };
    this.#consumers.add(consumer);
    this.#slots.take(ownerKey(listener.owner));
    const others = this.#byGroup.get(group) ?? new Set();
    this.#byGroup.set(group, others.add(consumer));
    return stream;
  }

  memberHealthChanged(change: HealthChange): void {
    const consumers = this.#byGroup.get(change.group);
    if (consumers === undefined) return;
    this.#lastId += 1;
    // Counts depend on the owner, so the event text is created once per owner and shared by the owner's consumers.
    const texts = new Map<string, string>();
    for (const { listener, ownerKey: key, stream } of consumers) {
      const { owner } = listener;
      if (owner.kind === 'account' && !sameOwner(owner, change.member.owner)) continue;
      let text = texts.get(key);
      if (text === undefined) {
        text = this.#eventText(change, owner);
        texts.set(key, text);
      }
      stream.send(text);
    }
  }

  /** Ends the streams of an owner without a remaining member in the group. */
  memberLeft(group: Group, member: Tunnel): void {
    for (const consumer of this.#byGroup.get(group) ?? []) {
      const { owner } = consumer.listener;
      if (sameOwner(owner, member.owner) && !group.isVisibleTo(owner)) this.#end(consumer);
    }
  }

  groupRemoved(group: Group): void {
    for (const consumer of this.#byGroup.get(group) ?? []) this.#end(consumer);
  }

  revoked({ keyId, accountId }: Revocation): void {
    for (const { listener, stream } of this.#consumers) {
      const { owner } = listener;
      const isTheirs = owner.kind === 'account' && owner.accountId === accountId;
      if (isTheirs || listener.keyId === keyId) stream.cut();
    }
  }

  /** Ends all streams at once and rejects new streams. A drain does not wait for listeners. */
  close(): void {
    this.#isClosed = true;
    for (const { stream } of this.#consumers) stream.cut();
  }

  #admit(owner: Owner): void {
    if (this.#isClosed) throw new Fault('EDGE_SHUTTING_DOWN');
    const refusal = this.#slots.refusal(ownerKey(owner));
    if (refusal === null) return;
    const limit = refusal === 'holder-full' ? this.#slots.perHolder : this.#slots.taken;
    throw new Fault('API_STREAMS_BUSY', { limit, seconds: SSE_BUSY_RETRY_MS / 1000 });
  }

  #eventText({ group, member, healthy, reason, at }: HealthChange, viewer: Owner): string {
    const { healthyCount, memberCount } = group.tally(viewer);
    const data: GroupEvent = {
      protocol: showProtocol(group.protocol) as GroupEvent['protocol'],
      label: group.label,
      group_name: group.name,
      region_id: this.#regionId,
      tunnel_id: member.tunnelId,
      healthy,
      reason,
      healthy_count: healthyCount,
      member_count: memberCount,
      at: new Date(at).toISOString(),
    };
    return `id: ${this.#lastId}\nevent: group_event\ndata: ${JSON.stringify(data)}\n\n`;
  }

  /** Ends a stream. The consumer can still read queued events, because the events were visible to the consumer at the time. */
  #end(consumer: Consumer): void {
    this.#leaveGroup(consumer);
    consumer.ping.cancel();
    consumer.stream.end();
  }

  #forget(consumer: Consumer): void {
    if (!this.#consumers.delete(consumer)) return;
    this.#leaveGroup(consumer);
    consumer.ping.cancel();
    this.#slots.give(consumer.ownerKey);
  }

  #leaveGroup(consumer: Consumer): void {
    const consumers = this.#byGroup.get(consumer.group);
    consumers?.delete(consumer);
    if (consumers?.size === 0) this.#byGroup.delete(consumer.group);
  }
}
