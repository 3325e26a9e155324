// The turns of edges' calls, apart from those of the API: fairly between edges, and between the accounts whose tunnels they register. Only a credential
// that was accepted before has a turn here. A caller with another one waits as a stranger does, before the database is asked for it.
import { EDGE_LINK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { socketOf } from '@tunnel/http-shell';
import { Cache, type Clock, Secret, sha256Hex } from '@tunnel/runtime';
import type { Context, MiddlewareHandler } from 'hono';
import type { Db } from '../../db/database.ts';
import { notReady } from '../../db/database-away.ts';
import { LIMITS } from '../../limits.ts';
import { verifyCredential } from '../../services/edges/credentials.ts';
import type { PlatformEnv } from '../shared/platform-env.ts';
import type { ApiAdmission } from './api-admission.ts';
import { type ApiCaller, CallQueue } from './call-queue.ts';

export interface LinkAdmissionDeps {
  /** For edges alone. */
  readonly db: Db;
  readonly clock: Clock;
  /** The turns of strangers, and the connections for them. Absent: there are no others. */
  readonly strangers?: { readonly db: Db; readonly admission: Pick<ApiAdmission, 'inTurn' | 'networkOf'> } | undefined;
  /** Of the edge of the same stack, which is no stranger from its first call on; absent: there is no such edge. */
  readonly ownCredential?: Secret | undefined;
}

/** Whose turns the edge of the same stack takes: its id is known once the tables are. */
const OWN_EDGE = 'own';

/**
 * One at once for each database connection of edges, but for the one that listens. An account has as many alone as beside others: calls that wait for a
 * row of the account hold their connections. An edge itself gives up after 5 s.
 */
const CALLS = { atOnce: 7, aloneAtOnce: 0, waitingMax: 10_000, waitMs: 4000, callersMax: 0 };

const EDGE_BEARER = /^bearer +(\S+) *$/i;

/** The bearer check, and the turn, in front of everything that edges call. */
export const requireEdge = ({
  db,
  clock,
  strangers,
  ownCredential,
}: LinkAdmissionDeps): MiddlewareHandler<PlatformEnv> => {
  /** Edges by the hashes of credentials that were accepted before. */
  const known = new Cache<string, string>({ max: LIMITS.LINK_EDGES_MAX });
  if (ownCredential !== undefined) known.set(sha256Hex(ownCredential.reveal()), OWN_EDGE);
  const queue = new CallQueue(
    { clock, refusal: () => notReady() },
    {
      ...CALLS,
      account: { atOnce: 3, perSecond: null },
      network: { atOnce: CALLS.atOnce, perSecond: null },
    },
  );
  /** The edge that a credential is new for; null: it is nobody's. */
  const firstSeen = async (context: Context<PlatformEnv>, credential: Secret): Promise<string | null> => {
    const edge =
      strangers === undefined
        ? await verifyCredential(db, credential)
        : await strangers.admission.inTurn(
            socketOf(context).outgoing,
            strangers.admission.networkOf(context.get('address')),
            () => verifyCredential(strangers.db, credential),
          );
    return edge?.edgeId ?? null;
  };
  return async (context, next) => {
    const shown = EDGE_BEARER.exec(context.req.header('authorization') ?? '')?.[1];
    if (shown === undefined) throw new Fault('EDGE_CREDENTIAL_INVALID');
    const credential = new Secret(shown);
    const hash = sha256Hex(shown);
    const edgeId = known.get(hash) ?? (await firstSeen(context, credential));
    if (edgeId === null) throw new Fault('EDGE_CREDENTIAL_INVALID');
    known.set(hash, edgeId);
    await queue.inTurn(socketOf(context).outgoing, await callerOf(context, edgeId), async () => {
      // At each call: an edge that was revoked is refused from its next one on.
      const edge = await verifyCredential(db, credential);
      if (edge === null) {
        known.delete(hash);
        throw new Fault('EDGE_CREDENTIAL_INVALID');
      }
      context.set('edge', edge);
      await next();
    });
  };
};

/** A registration counts for the account of its tunnel: one account that registers many delays no other. All else is the edge's own. */
const callerOf = async (context: Context<PlatformEnv>, edgeId: string): Promise<ApiCaller> => {
  const { method, path } = context.req;
  const account = method === 'POST' && path === `${EDGE_LINK_PATH}/tunnels` ? await accountIn(context) : null;
  return account === null ? { kind: 'unbounded', id: edgeId } : { kind: 'account', id: account };
};

/** null: the body says none; what is wrong with it is told by its route. */
const accountIn = async (context: Context<PlatformEnv>): Promise<string | null> => {
  try {
    const { account_id } = (await context.req.json()) as { account_id?: unknown };
    return typeof account_id === 'string' ? account_id : null;
  } catch {
    return null;
  }
};
