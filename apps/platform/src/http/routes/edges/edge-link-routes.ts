// Routes called by edges, under /internal/edge. Not part of the public API document, because edge and platform are developed and released
// together.
import {
  apiErrorOf,
  EDGE_LINK_PATH,
  heartbeat,
  keyQuestion,
  nameQuestion,
  recordBatch,
  tunnelQuestion,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import type { MasterKey } from '../../../db/master-key.ts';
import type { ChangeFeed } from '../../../services/edges/change-feed.ts';
import { heartbeat as takeHeartbeat } from '../../../services/edges/heartbeat.ts';
import { type KeyUses, verifyKey } from '../../../services/keys/verify-key.ts';
import { checkName, nameSnapshot } from '../../../services/names/edge-names.ts';
import type { NameSettings } from '../../../services/names/name-rows.ts';
import { openTunnel } from '../../../services/tunnels/open-tunnel.ts';
import { storeRecords } from '../../../services/tunnels/store-records.ts';
import { type LinkAdmissionDeps, requireEdge } from '../../admission/link-admission.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../../shared/platform-env.ts';
import { addEdgeCertificateRoutes, type EdgeCertificateDeps } from './edge-certificate-routes.ts';
import { LINES, readBody } from './edge-link-bodies.ts';

export interface EdgeLinkDeps
  extends Pick<EdgeCertificateDeps, 'certificates'>,
    Pick<LinkAdmissionDeps, 'strangers' | 'ownCredential'> {
  readonly keyUses: Pick<KeyUses, 'note'>;
  readonly names: NameSettings;
  readonly changes: Pick<ChangeFeed, 'open'>;
  /** Returns the master key. Only available once the database tables exist. */
  readonly masterKey: () => MasterKey;
}

export const addEdgeLinkRoutes = (app: PlatformApp, context: RouteContext & EdgeLinkDeps): void => {
  app.use(`${EDGE_LINK_PATH}/*`, requireEdge(context));
  addEdgeCertificateRoutes(app, context);

  app.post(`${EDGE_LINK_PATH}/heartbeat`, async (call) => {
    const told = await readBody(call, heartbeat);
    refuseNul({ ...told, ...told.region });
    const answer = await takeHeartbeat(context, call.get('edge'), told);
    return call.json({ ...answer, public_url: context.settings.public_url }, 200);
  });

  app.post(`${EDGE_LINK_PATH}/keys/verify`, async (call) => {
    const { token_hash } = await readBody(call, keyQuestion);
    return call.json(await verifyKey(context, token_hash), 200);
  });

  app.post(`${EDGE_LINK_PATH}/tunnels`, async (call) => {
    const question = await readBody(call, tunnelQuestion);
    refuseNul({ ...question, ...question.endpoint });
    return call.json(await openTunnel(context, call.get('edge'), question, call.req.raw.signal), 200);
  });

  app.post(`${EDGE_LINK_PATH}/records`, async (call) => {
    const batch = await readBody(call, recordBatch);
    refuseNul(batch);
    const { refused, ...answer } = await storeRecords(context, call.get('edge'), batch);
    if (refused === null) return call.json(answer, 200);
    return call.json({ ...answer, ...apiErrorOf(refused, call.get('requestId')) }, 409);
  });

  app.post(`${EDGE_LINK_PATH}/names/check`, async (call) => {
    const question = await readBody(call, nameQuestion);
    refuseNul(question);
    return call.json(await checkName(context, call.get('edge'), question), 200);
  });

  app.get(`${EDGE_LINK_PATH}/names`, (call) =>
    call.req.method === 'HEAD'
      ? call.body(null, 200, LINES)
      : call.body(
          nameSnapshot(context.db, call.get('edge'), { domains: call.req.query('domains') === '1' }),
          200,
          LINES,
        ),
  );

  app.get(`${EDGE_LINK_PATH}/changes`, (call) => {
    const since = sinceOf(call);
    if (call.req.method === 'HEAD') return call.body(null, 200, LINES);
    const line = context.changes.open(call.get('edge').edgeId, since);
    // If the caller has already disconnected, the body is never read and would never end. A call within the process has no socket.
    const outgoing = (call.env as PlatformEnv['Bindings'] | undefined)?.outgoing;
    if (outgoing?.destroyed === true) line.end();
    else outgoing?.once('close', () => line.end());
    return call.body(line.body, 200, LINES);
  });
};

const sinceOf = (call: Context<PlatformEnv>): number => {
  const text = call.req.query('since') ?? '';
  if (!/^\d{1,15}$/.test(text)) throw new Fault('API_BAD_REQUEST', { reason: 'since: must be the number of a change' });
  return Number(text);
};

/** Rejects texts with a NUL character, which PostgreSQL cannot store. */
const refuseNul = (texts: Readonly<Record<string, unknown>>): void => {
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text === 'string' && text.includes('\0')) {
      throw new Fault('API_BAD_REQUEST', { reason: `${name}: contains an invalid character` });
    }
  }
};
