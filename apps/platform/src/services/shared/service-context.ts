// Dependencies and actors of the services. A service is one operation in one transaction; the services of an entity share a file.

import type { ServerConfig } from '@tunnel/config/server';
import type { Clock, Logger } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';

export interface ServiceContext {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Section [platform] of server.toml. */
  readonly settings: ServerConfig['platform'];
}

/** Caller with a valid access token. */
export interface UserActor {
  readonly kind: 'user';
  readonly userId: string;
}

/** Caller with the access token of a sign-in. */
export interface LoggedInActor extends UserActor {
  /** Epoch of the account when the token was signed. Operations that a password change must end compare it with the current epoch. */
  readonly epoch: number;
}

/** Operator at the console of the server. */
export interface OperatorActor {
  readonly kind: 'operator';
  readonly name: string;
}

/** Edge that authenticated with its credential. */
export interface EdgeActor {
  readonly kind: 'edge';
  readonly edgeId: string;
}

/** Dependencies of the operators' services, which also run outside the platform process, in a command with only a database. */
export type OperatorContext = Pick<ServiceContext, 'db' | 'clock'>;
