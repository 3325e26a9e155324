// What every service is given, and who may ask one for something. A service is one verb and one transaction; the verbs of an
// entity share a file.

import type { ServerConfig } from '@tunnel/config/server';
import type { Clock, Logger } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';

export interface ServiceContext {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  /** [platform] of server.toml. */
  readonly settings: ServerConfig['platform'];
}

/** Somebody with a valid access token. */
export interface UserActor {
  readonly kind: 'user';
  readonly userId: string;
}

/** With the access token of a log-in. */
export interface LoggedInActor extends UserActor {
  /** The account's, when the token was signed: what must end with a new password is not given to one of before. */
  readonly epoch: number;
}

/** Somebody at the console of the server. */
export interface OperatorActor {
  readonly kind: 'operator';
  readonly name: string;
}

/** An edge that showed its credential. */
export interface EdgeActor {
  readonly kind: 'edge';
  readonly edgeId: string;
}

/**
 * What the verbs of operators are given: they run beside the platform too, from a command with a database and nothing else.
 */
export type OperatorContext = Pick<ServiceContext, 'db' | 'clock'>;
