// Who may see which captured requests, and have them sent again: the two verbs behind the REST.
import type { CapturedRequest, CaptureList } from '@tunnel/contract';
import { type Owner, sameOwner } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { maySee } from '../admin/present-tunnel.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { CaptureStore } from './capture-store.ts';
import { type CaptureView, presentCapture } from './present-capture.ts';
import type { Replays } from './replay.ts';

export interface CaptureDeskOptions {
  readonly store: CaptureStore;
  readonly tunnels: { get(tunnelId: string): Tunnel | undefined };
  readonly replays: Pick<Replays, 'replay'>;
}

interface Sight {
  /** undefined: it has ended. */
  readonly tunnel: Tunnel | undefined;
  readonly view: CaptureView;
}

export class CaptureDesk {
  readonly #store: CaptureStore;
  readonly #tunnels: CaptureDeskOptions['tunnels'];
  readonly #replays: CaptureDeskOptions['replays'];

  constructor({ store, tunnels, replays }: CaptureDeskOptions) {
    this.#store = store;
    this.#tunnels = tunnels;
    this.#replays = replays;
  }

  async list(caller: Owner, tunnelId: string, limit: number): Promise<CaptureList> {
    const { view } = this.#see(caller, tunnelId);
    const { recorders, truncated } = this.#store.list(tunnelId, limit);
    const requests: CapturedRequest[] = [];
    // One after the other: unpacking a hundred bodies at once would keep others from the threads that do it.
    for (const recorder of recorders) requests.push(await presentCapture(recorder, view));
    return { tunnel_id: tunnelId, requests, truncated };
  }

  async replay(caller: Owner, tunnelId: string, requestId: string, visitorAddress: string): Promise<CapturedRequest> {
    const { tunnel, view } = this.#see(caller, tunnelId);
    const original = this.#store.find(tunnelId, requestId);
    if (original === undefined) throw new Fault('CAPTURE_UNKNOWN');
    return presentCapture(await this.#replays.replay({ tunnel, original, visitorAddress }), view);
  }

  #see(caller: Owner, tunnelId: string): Sight {
    const tunnel = this.#tunnels.get(tunnelId);
    const owner = tunnel?.owner ?? this.#store.ownerOf(tunnelId);
    if (owner === undefined || !maySee(caller, { owner })) throw new Fault('TUNNEL_UNKNOWN');
    if (tunnel !== undefined && tunnel.http === null) {
      throw new Fault('TUNNEL_NOT_HTTP', { protocol: tunnel.protocol });
    }
    const idOf = (sequence: number): string => this.#store.idOf(sequence);
    // What people send each other is their own business: the operator sees an account's requests without bodies.
    return { tunnel, view: { tunnelId, withBodies: sameOwner(caller, owner), idOf } };
  }
}
