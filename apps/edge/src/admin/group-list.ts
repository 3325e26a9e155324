// The list of groups as JSON text, made in parts as it is read: a pool of ten thousand must not hold up the traffic of others,
// and a caller that does not read must not make the edge keep the whole of it.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Owner, TunnelGroup } from '@tunnel/core';
import { EDGE_LIMITS } from '../limits.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { captureGroup, type GroupMoment, presentMember } from './present-group.ts';

type Group = TunnelGroup<Tunnel>;

export interface GroupListing {
  readonly groups: Iterable<Group>;
  readonly viewer: Owner;
  readonly regionId: string;
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
function* partsOf({ groups, viewer, regionId }: GroupListing): Generator<string, void> {
  let part = '[';
  let separator = '';
  for (const group of [...groups]) {
    // It may have ended since the list was begun.
    if (group.memberCount === 0 || !group.isVisibleTo(viewer)) continue;
    part += separator;
    separator = ',';
    for (const text of groupTexts(captureGroup(group, viewer, regionId))) {
      part += text;
      if (part.length < EDGE_LIMITS.API_CHUNK_BYTES) continue;
      yield part;
      part = '';
    }
  }
  yield `${part}]`;
}

/** One group, a member a piece. */
function* groupTexts({ head, members, healthy }: GroupMoment): Generator<string, void> {
  yield `${JSON.stringify(head).slice(0, -1)},"members":[`;
  for (const [at, member] of members.entries()) {
    yield (at === 0 ? '' : ',') + JSON.stringify(presentMember(member, healthy[at] ?? false));
  }
  yield ']}';
}
