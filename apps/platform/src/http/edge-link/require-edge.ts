// The bearer check in front of everything that edges call.

import { Fault } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';
import type { MiddlewareHandler } from 'hono';
import type { Db } from '../../db/database.ts';
import { verifyCredential } from '../../services/edges/credentials.ts';
import type { PlatformEnv } from '../platform-env.ts';

const BEARER = /^bearer +(\S+) *$/i;

export const requireEdge =
  (db: Db): MiddlewareHandler<PlatformEnv> =>
  async (context, next) => {
    const credential = BEARER.exec(context.req.header('authorization') ?? '')?.[1];
    const edge = credential === undefined ? null : await verifyCredential(db, new Secret(credential));
    if (edge === null) throw new Fault('EDGE_CREDENTIAL_INVALID');
    context.set('edge', edge);
    await next();
  };
