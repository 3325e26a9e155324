// The hub of the groups' events: who listens to which group, what each may see of it, and when a stream is over.
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

/** how often a stream of events says that it is alive */
export const SSE_KEEP_ALIVE_MS = 30_000;
/** streams of events at once; each takes one of the connections to the REST */
export const SSE_CONSUMERS_MAX = 512;
/**
 * the same for one account, whichever of its keys asks, and for the operator
 * @limit api: Event streams per account | 429 `API_STREAMS_BUSY`
 */
export const SSE_CONSUMERS_PER_OWNER = 64;
/** after which one that was too many is told to ask again */
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
  /** Those whose streams go on. */
  readonly #byGroup = new Map<Group, Set<Consumer>>();
  readonly #slots = new FairShare({
    limit: SSE_CONSUMERS_MAX,
    perHolder: SSE_CONSUMERS_PER_OWNER,
  });
  /** Begins at the time, so that ids rise over a restart of the edge, too. */
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

  /** The caller has made sure that the listener may see the group. Throws a Fault when there are too many already. */
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
    // Each owner has counts of its own, and all its consumers the same text.
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

  /** Whoever has no member in the group any more may not go on looking. */
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

  /** Ends every stream at once, and takes no further one: a drain does not wait for those who only look on. */
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

  /** What it has not read yet it may still read: it was allowed to see that. */
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
