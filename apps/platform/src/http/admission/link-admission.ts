// Admission of edges' calls, separate from API calls: fair between edges, and between the accounts for which edges register tunnels. Only
// a credential accepted before gets a turn here. A call with another credential waits among the API calls before the credential is looked
// up in the database.
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
  /** Database connections reserved for calls of edges. */
  readonly db: Db;
  readonly clock: Clock;
  /** Admission and database connections for callers with an unknown credential. Absent if credentials are checked without a turn. */
  readonly strangers?: { readonly db: Db; readonly admission: Pick<ApiAdmission, 'inTurn' | 'networkOf'> } | undefined;
  /** Credential of the edge of the same stack, known from its first call on. Absent without such an edge. */
  readonly ownCredential?: Secret | undefined;
}

/** Name under which the edge of the same stack takes turns. The edge's id is known only once the tables exist. */
const OWN_EDGE = 'own';

/**
 * Places for edges' calls: a place per database connection for edges, except the connection that listens for changes. An account never
 * gets more places than its share, even without other callers, because calls that wait for a row of the account hold their connections.
 * The wait is shorter than the 5 s after which an edge gives up.
 */
const CALLS = { atOnce: 7, aloneAtOnce: 0, waitingMax: 10_000, waitMs: 4000, callersMax: 0 };

const EDGE_BEARER = /^bearer +(\S+) *$/i;

/** Middleware for all calls of edges: checks the bearer credential and waits for the turn. */
export const requireEdge = ({
  db,
  clock,
  strangers,
  ownCredential,
}: LinkAdmissionDeps): MiddlewareHandler<PlatformEnv> => {
  /** Edges by the hash of their credential, for credentials accepted before. */
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
  /** Looks up the edge of a credential not seen before. Resolves with null if the credential is unknown. */
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
      // Checked on every call, so that the next call of a revoked edge is refused.
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

/**
 * Finds the caller of an edge's call. A registration counts for the account of its tunnel, so that an account with many registrations
 * delays no other account. Other calls count for the edge.
 */
const callerOf = async (context: Context<PlatformEnv>, edgeId: string): Promise<ApiCaller> => {
  const { method, path } = context.req;
  const account = method === 'POST' && path === `${EDGE_LINK_PATH}/tunnels` ? await accountIn(context) : null;
  return account === null ? { kind: 'unbounded', id: edgeId } : { kind: 'account', id: account };
};

/** Reads the account id in the body. Returns null if there is no valid id; the route reports an invalid body. */
const accountIn = async (context: Context<PlatformEnv>): Promise<string | null> => {
  try {
    const { account_id } = (await context.req.json()) as { account_id?: unknown };
    return typeof account_id === 'string' ? account_id : null;
  } catch {
    return null;
  }
};
