// What a client tells about the requests that pass through its http tunnels.
import type { Tunnel } from '../tunnel.ts';

interface RequestFacts {
  readonly id: string;
  readonly tunnel: Tunnel;
  readonly method: string;
  /** With its query; values of fields named like a secret are shown as `…`. */
  readonly path: string;
  /** When its head had come: milliseconds since the epoch. */
  readonly at: number;
  /** The id of the request that was sent again from the inspector, or null for a visitor's own. */
  readonly replayOf: string | null;
}

export type RequestEvent =
  | (RequestFacts & { readonly type: 'request-started' })
  | (RequestFacts & {
      readonly type: 'request-finished';
      /** null: no response came. */
      readonly status: number | null;
      /** From the request's head to the last byte of the response. */
      readonly durationMs: number;
      /** Of the bodies alone. */
      readonly requestBytes: number;
      readonly responseBytes: number;
      /** The connection ended before the response did. */
      readonly aborted: boolean;
    });

export type RequestListener = (event: RequestEvent) => void;
