// What the REST's middleware and handlers share: the types of one request's context, and everything the app is given.
import type { HttpBindings } from '@hono/node-server';
import type { EdgeRegion, EdgeStatus } from '@tunnel/contract';
import type { CallerAddress, GroupDirectory, Owner } from '@tunnel/core';
import type { Fault } from '@tunnel/errors';
import type { Logger, Secret } from '@tunnel/runtime';
import type { Backend } from '../backend/backend.ts';
import type { CaptureDesk } from '../capture/capture-desk.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { GroupFeed } from './group-feed.ts';

export interface RestEnv {
  /** Empty when the request came without a socket. */
  Bindings: Partial<HttpBindings>;
  Variables: { requestId: string; caller: Owner; keyId: string };
}

/** Refused keys per address; one for the control port and the REST together, or each would be a way around the other. */
export interface AuthFailureGate {
  /** 0: the address may try. */
  blockedForSecs(address: string): number;
  failed(address: string): void;
}

export interface RestDependencies {
  readonly backend: Pick<Backend, 'verifyKey'>;
  /** Of this run, and told to the platform alone: its bearer may ask as any account. */
  readonly platformSecret: Secret;
  readonly tunnels: { get(tunnelId: string): Tunnel | undefined; values(): Iterable<Tunnel> };
  /** Without a single one while load balancing is off. */
  readonly groups: Pick<GroupDirectory<Tunnel>, 'values' | 'at'>;
  readonly feed: GroupFeed;
  /** false: it was gone already. */
  readonly closeTunnel: (tunnelId: string, fault: Fault) => boolean;
  readonly captures: CaptureDesk;
  readonly status: () => Omit<EdgeStatus, 'ok' | 'version' | 'region_id'>;
  readonly region: Omit<EdgeRegion, 'current'>;
  readonly version: string;
  readonly authFailures: AuthFailureGate;
  readonly callerAddress: CallerAddress;
  readonly newRequestId: () => string;
  readonly logger: Logger;
}
